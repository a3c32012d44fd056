package classical

import (
	"math"
	"math/rand/v2"
	"time"
)

// A record is the observed anomalies of a series, cell by cell. Only cells
// that were seen at least once have a row.
type record struct {
	frames int
	cells  []int32   // cell of the grid of each row
	start  []int     // index of the first entry of each row, and the end
	frame  []int32   // frame of each entry, ascending within a row
	value  []float32 // anomaly about the mean map
	spread float64   // root mean square of all values
}

// newRecord gathers all observations of s.
func newRecord(s Series, bg background) *record {
	n := s.Grid.Len()
	count := make([]int, n)
	for f := range s.Frames {
		for c := range n {
			if s.observed(f, c) {
				count[c]++
			}
		}
	}
	r := &record{frames: len(s.Frames), start: []int{0}}
	next := make([]int, n)
	for c, k := range count {
		if k > 0 {
			next[c] = r.start[len(r.cells)]
			r.cells = append(r.cells, int32(c))
			r.start = append(r.start, next[c]+k)
		}
	}
	total := r.start[len(r.cells)]
	r.frame, r.value = make([]int32, total), make([]float32, total)
	for f := range s.Frames {
		for c, v := range s.Frames[f].Values {
			if s.observed(f, c) {
				r.frame[next[c]], r.value[next[c]] = int32(f), v-bg.mean[c]
				next[c]++
			}
		}
	}
	r.measure()
	return r
}

// perFrame returns the number of observations of each frame.
func (r *record) perFrame() []int {
	count := make([]int, r.frames)
	for _, f := range r.frame {
		count[f]++
	}
	return count
}

// dense returns the record without the frames that observed less than the given
// share of its cells, or the record itself if that would leave nothing.
func (r *record) dense(least float64) *record {
	count := r.perFrame()
	enough := func(e int) bool { return float64(count[r.frame[e]]) >= least*float64(len(r.cells)) }
	out, _ := r.split(func(e int) bool { return !enough(e) })
	if len(out.value) == 0 {
		return r
	}
	return out
}

// split returns the record without the entries for which take is true, and
// those entries. Rows stay the same.
func (r *record) split(take func(entry int) bool) (kept *record, taken []heldOut) {
	kept = &record{frames: r.frames, cells: r.cells, start: []int{0}}
	for row := range r.cells {
		for e := r.start[row]; e < r.start[row+1]; e++ {
			if take(e) {
				taken = append(taken, heldOut{row: row, frame: r.frame[e], value: r.value[e]})
				continue
			}
			kept.frame = append(kept.frame, r.frame[e])
			kept.value = append(kept.value, r.value[e])
		}
		kept.start = append(kept.start, len(kept.value))
	}
	kept.measure()
	return kept, taken
}

// measure stores the spread of the values.
func (r *record) measure() {
	sum := 0.0
	for _, v := range r.value {
		sum += float64(v) * float64(v)
	}
	r.spread = math.Sqrt(sum / float64(max(len(r.value), 1)))
}

// A heldOut is an observation that was held out.
type heldOut struct {
	row   int
	frame int32
	value float32
}

// holdOut splits the record into the observations that an expansion is fitted
// to and those that judge it: the given share, in the shape of clouds.
func (r *record) holdOut(s Series, d DINEOF) (kept *record, held []heldOut) {
	hidden := r.clouds(s, d)
	place := make([]int32, len(r.value)) // the cell of each entry
	for row, c := range r.cells {
		for e := r.start[row]; e < r.start[row+1]; e++ {
			place[e] = c
		}
	}
	return r.split(func(e int) bool { return hidden[observation{r.frame[e], place[e]}] })
}

// An observation is one cell of one frame.
type observation struct {
	frame, cell int32
}

// triesPerFrame bounds the search for clouds on series that have hardly any.
const triesPerFrame = 20

// clouds draws the observations to hide: the gaps of one frame, within a
// window of half the grid, laid over another, which keeps enough of its own.
// Single cells would be too easy to guess from their neighbours; they are drawn
// only if the series has no gaps.
func (r *record) clouds(s Series, d DINEOF) map[observation]bool {
	rng := rand.New(rand.NewPCG(d.Seed, uint64(r.frames)))
	wanted := int(math.Ceil(d.HoldOut * float64(len(r.value))))
	least := max(leastCells, int(d.LeastCoverage*float64(len(r.cells))))
	seen := r.perFrame()
	hidden, clouded := map[observation]bool{}, map[int]bool{}
	for try := 0; try < triesPerFrame*r.frames && len(hidden) < wanted; try++ {
		target, lender := rng.IntN(r.frames), rng.IntN(r.frames)
		cloud := s.cloud(target, lender, rng)
		if clouded[target] || seen[lender] == 0 || len(cloud) == 0 || seen[target]-len(cloud) < least {
			continue
		}
		for _, o := range cloud {
			hidden[o] = true
		}
		clouded[target] = true // one cloud a frame
	}
	if len(hidden) == 0 {
		s.hideCells(hidden, wanted, rng)
	}
	return hidden
}

// cloud returns the observations of the target that lie under the gaps of the
// lender within a random window.
func (s Series) cloud(target, lender int, rng *rand.Rand) []observation {
	h, w := s.Grid.Height(), s.Grid.Width()
	high, wide := (h+1)/2, (w+1)/2
	top, left := rng.IntN(h-high+1), rng.IntN(w-wide+1)
	var out []observation
	for i := top; i < top+high; i++ {
		for c := i*w + left; c < i*w+left+wide; c++ {
			if s.observed(target, c) && !s.observed(lender, c) {
				out = append(out, observation{int32(target), int32(c)})
			}
		}
	}
	return out
}

// hideCells hides single cells at random.
func (s Series) hideCells(hidden map[observation]bool, wanted int, rng *rand.Rand) {
	n := s.Grid.Len()
	for try := 0; try < 10*wanted && len(hidden) < wanted; try++ {
		o := observation{int32(rng.IntN(len(s.Frames))), int32(rng.IntN(n))}
		if s.observed(int(o.frame), int(o.cell)) {
			hidden[o] = true
		}
	}
}

// A timeFilter is a symmetric smoothing of the frames; nil does nothing.
type timeFilter [][]float64

// newTimeFilter returns a Gaussian of the given standard deviation over the
// times of the frames. Rows and columns both sum to about one: each weight is
// divided by the root of the sums of its row and of its column.
func newTimeFilter(s Series, days float64) timeFilter {
	if days == 0 {
		return nil
	}
	n := len(s.Frames)
	f := make(timeFilter, n)
	sums := make([]float64, n)
	for i := range f {
		f[i] = make([]float64, n)
		for j := range f[i] {
			lag := float64(s.Frames[i].Time.Sub(s.Frames[j].Time)) / float64(24*time.Hour) / days
			f[i][j] = math.Exp(-lag * lag / 2)
			sums[i] += f[i][j]
		}
	}
	for i := range f {
		for j := range f[i] {
			f[i][j] /= math.Sqrt(sums[i] * sums[j])
		}
	}
	return f
}

// apply returns the filtered columns of x, which has width columns and a row
// for each frame.
func (f timeFilter) apply(x []float64, width int) []float64 {
	if f == nil {
		return x
	}
	out := make([]float64, len(x))
	for i, weights := range f {
		row := out[i*width : (i+1)*width]
		for j, w := range weights {
			if w == 0 {
				continue
			}
			for c, v := range x[j*width : (j+1)*width] {
				row[c] += w * v
			}
		}
	}
	return out
}
