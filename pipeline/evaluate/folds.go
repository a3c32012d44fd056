package evaluate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Folds are two halves of the cases of an exam, by blocks of consecutive days, and
// the cases that calibrate each: those of the other half that lie far enough from
// all of its days. The error of a day is like that of the days around it, so that
// a sigma that was fitted to them would look better than it is.
type Folds struct {
	Half []int    // half of each case: 0 or 1
	By   [2][]int // cases that calibrate each half
	// Self says that the days lie too close together for two halves: all cases
	// calibrate both, themselves included.
	Self bool
}

// Folds returns the halves of the exam. It is a function of the days of the cases
// alone.
func (e *Exam) Folds() Folds {
	days := make([]int64, len(e.overlays))
	for i, o := range e.overlays {
		days[i] = o.Time.UTC().Truncate(24*time.Hour).Unix() / (24 * 3600)
	}
	return foldsOf(days, int64(e.apartDays))
}

// foldsOf returns the halves of cases by their days, with at least apart days
// between a case and those that calibrate it. Of the blocks that days can be cut
// into it takes those that leave the most cases to the half that has fewer.
func foldsOf(days []int64, apart int64) Folds {
	sorted := slices.Compact(slices.Sorted(slices.Values(days)))
	// Whole stretches, and parts of them that lose half of their days to the distance.
	ways := [][]int64{cutsOf(sorted, apart, math.MaxInt64), cutsOf(sorted, apart, 4*max(apart, 1))}
	for _, cut := range sorted[1:] {
		ways = append(ways, []int64{sorted[0], cut})
	}
	best := Folds{Self: true, Half: make([]int, len(days))}
	most := 0
	for _, cuts := range ways {
		f := halvesOf(days, cuts)
		f.By = calibrating(days, f.Half, apart)
		if fewer := min(len(f.By[0]), len(f.By[1])); fewer > most {
			best, most = f, fewer
		}
	}
	if best.Self {
		all := make([]int, len(days))
		for i := range all {
			all[i] = i
		}
		best.By = [2][]int{all, all}
	}
	return best
}

// cutsOf returns the first day of each block: of each stretch of days without a
// hole of apart days, and within a stretch of each part of about length days.
func cutsOf(sorted []int64, apart, length int64) []int64 {
	var cuts []int64
	for first := 0; first < len(sorted); {
		end := first + 1
		for end < len(sorted) && sorted[end]-sorted[end-1] <= max(apart, 1) {
			end++
		}
		span := sorted[end-1] - sorted[first] + 1
		parts := max(span/length, 1)
		for p := range parts {
			cuts = append(cuts, sorted[first]+p*span/parts)
		}
		first = end
	}
	return cuts
}

// halvesOf assigns blocks to halves in order of time, each to the half with fewer
// cases so far.
func halvesOf(days, cuts []int64) Folds {
	f := Folds{Half: make([]int, len(days))}
	blocks := make([][]int, len(cuts))
	for i, d := range days {
		at, found := slices.BinarySearch(cuts, d)
		if !found {
			at--
		}
		blocks[at] = append(blocks[at], i)
	}
	count := [2]int{}
	for _, block := range blocks {
		half := 0
		if count[1] < count[0] {
			half = 1
		}
		for _, i := range block {
			f.Half[i] = half
		}
		count[half] += len(block)
	}
	return f
}

// calibrating returns the cases of each other half that are apart from all cases
// of a half.
func calibrating(days []int64, half []int, apart int64) (by [2][]int) {
	var own [2][]int64
	for i, d := range days {
		own[half[i]] = append(own[half[i]], d)
	}
	for h := range own {
		slices.Sort(own[h])
	}
	for i, d := range days {
		h := 1 - half[i]
		at, _ := slices.BinarySearchFunc(own[h], d, cmp.Compare)
		near := at < len(own[h]) && own[h][at]-d <= apart || at > 0 && d-own[h][at-1] <= apart
		if len(own[h]) > 0 && !near {
			by[h] = append(by[h], i)
		}
	}
	return by
}
