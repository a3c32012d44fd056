package evaluate

import (
	"cmp"
	"slices"
	"time"
)

// Folds are blocks of the cases of an exam, by consecutive days, and the cases that
// calibrate each: those that lie far enough from all of its days. The error of a
// day is like that of the days around it, so that a sigma that was fitted to them
// would look better than it is.
type Folds struct {
	Of []int   // fold of each case
	By [][]int // cases that calibrate each fold
	// Self says that the days lie too close together for two folds: all cases
	// calibrate themselves.
	Self bool
}

// Folds returns the folds of the exam. They are a function of the days of the cases
// alone.
func (e *Exam) Folds() Folds {
	days := make([]int64, len(e.overlays))
	for i, o := range e.overlays {
		days[i] = o.Time.UTC().Truncate(24*time.Hour).Unix() / (24 * 3600)
	}
	return foldsOf(days, int64(e.apartDays))
}

// foldsOf returns the folds of cases by their days, with at least apart days
// between a case and those that calibrate it. Where blocks of a month or two leave
// too few cases, as in a series of one month, it is the best cut in two.
func foldsOf(days []int64, apart int64) Folds {
	const enough = 0.25 // share of the cases that is to calibrate every fold
	sorted := slices.Compact(slices.Sorted(slices.Values(days)))
	best := foldsBy(days, blocksOf(sorted, apart), apart)
	most := best.fewest()
	if float64(most) < enough*float64(len(days)) {
		for _, cut := range sorted[1:] {
			if f := foldsBy(days, []int64{sorted[0], cut}, apart); f.fewest() > most {
				best, most = f, f.fewest()
			}
		}
	}
	if most > 0 {
		return best
	}
	self := Folds{Of: make([]int, len(days)), By: make([][]int, 1), Self: true}
	for i := range days {
		self.By[0] = append(self.By[0], i)
	}
	return self
}

// blocksOf returns the first day of each block: of each stretch of days without a
// hole of apart days, and within a longer stretch of parts of some length, which
// lose few of the others to the distance.
func blocksOf(sorted []int64, apart int64) []int64 {
	length := 4 * max(apart, 1)
	var blocks []int64
	for first := 0; first < len(sorted); {
		end := first + 1
		for end < len(sorted) && sorted[end]-sorted[end-1] <= max(apart, 1) {
			end++
		}
		span := sorted[end-1] - sorted[first] + 1
		parts := max(span/length, 1)
		for p := range parts {
			blocks = append(blocks, sorted[first]+p*span/parts)
		}
		first = end
	}
	return blocks
}

// foldsBy returns the folds of blocks, given by their first days.
func foldsBy(days, blocks []int64, apart int64) Folds {
	f := Folds{Of: make([]int, len(days)), By: make([][]int, len(blocks))}
	own := make([][]int64, len(blocks))
	for i, d := range days {
		at, found := slices.BinarySearch(blocks, d)
		if !found {
			at--
		}
		f.Of[i], own[at] = at, append(own[at], d)
	}
	for b := range own {
		slices.Sort(own[b])
		for i, d := range days {
			at, _ := slices.BinarySearchFunc(own[b], d, cmp.Compare)
			near := at < len(own[b]) && own[b][at]-d <= apart || at > 0 && d-own[b][at-1] <= apart
			if f.Of[i] != b && !near {
				f.By[b] = append(f.By[b], i)
			}
		}
	}
	return f
}

// fewest returns the number of cases that calibrate the fold with the fewest.
func (f Folds) fewest() int {
	fewest := len(f.Of)
	for _, by := range f.By {
		fewest = min(fewest, len(by))
	}
	return fewest
}
