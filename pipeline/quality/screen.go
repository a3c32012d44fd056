package quality

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lacuna/pipeline/field"
)

// A Frame is a field of a scene in the space in which errors are additive, NaN for
// a gap.
type Frame struct {
	Time   time.Time
	Values []float32
}

// A Scene is a field with the fields around it, in any order.
type Scene struct {
	Grid   field.Grid
	Frames []Frame
	Sea    field.Mask // nil: not known, all of it is sea
	// Climatology returns that of a time, in the space of the frames; nil: the test
	// of the range makes one of the frames.
	Climatology func(time.Time) Climatology
}

// A Verdict says of each cell of a frame which test refused it.
type Verdict []Cause

// Count adds the refused cells to counts.
func (v Verdict) Count(counts Counts) {
	for _, c := range v {
		if c != Passed {
			counts[c.String()]++
		}
	}
}

// Counts returns a count of 0 for each test that is on.
func (t Tests) Counts() Counts {
	out := Counts{}
	for _, test := range []struct {
		on    bool
		cause Cause
	}{{t.Range.On, ByRange}, {t.Edge.On, ByEdge}, {t.Spike.On, BySpike}} {
		if test.on {
			out[test.cause.String()] = 0
		}
	}
	return out
}

// Screen judges every frame of a scene. The frames are left as they are.
//
// The tests are made one after the other, each on what those before it have left;
// within a test all frames are judged before any cell is taken out, so that the
// order of the frames has no influence.
func (t Tests) Screen(s Scene) []Verdict {
	out := make([]Verdict, len(s.Frames))
	left := make([][]float32, len(s.Frames))
	for i, f := range s.Frames {
		out[i], left[i] = make(Verdict, len(f.Values)), slices.Clone(f.Values)
	}
	pass := func(cause Cause, judge func(frame int) field.Mask) {
		refused := make([]field.Mask, len(left))
		each(len(left), func(i int) { refused[i] = judge(i) })
		for i, mask := range refused {
			for c, no := range mask {
				if no {
					out[i][c], left[i][c] = cause, field.NaN()
				}
			}
		}
	}
	area := area{width: s.Grid.Width(), height: s.Grid.Height(), wraps: s.Grid.Periodic()}
	if t.Range.On {
		climatology := s.Climatology
		if climatology == nil {
			of := OfDays(left)
			climatology = func(time.Time) Climatology { return of }
		}
		pass(ByRange, func(i int) field.Mask { return climatology(s.Frames[i].Time).outside(left[i], t.Range.Sigmas) })
	}
	if t.Edge.On {
		sky := shadeable(s)
		pass(ByEdge, func(i int) field.Mask {
			at := edge{Edge: t.Edge, area: area, near: area.beside(s.Frames[i].Values, sky, t.Edge.Cells)}
			return at.refused(left[i], nearestDay(s.Frames, left, i))
		})
	}
	if t.Spike.On {
		pass(BySpike, func(i int) field.Mask { return area.spikes(left[i], nearestDay(s.Frames, left, i), t.Spike.Sigmas) })
	}
	return out
}

// fewestDays is the number of days from which on a cell that none of them shows is
// taken for one that is never observed, and the climatology of a cell is known.
const fewestDays = 5

// shadeable returns the cells of the sea where a gap is cloud: not those that none
// of the frames shows, as along a coast that the mask has a little wrong.
func shadeable(s Scene) field.Mask {
	out := make(field.Mask, s.Grid.Len())
	for c := range out {
		out[c] = (s.Sea == nil || s.Sea[c]) && (len(s.Frames) < fewestDays ||
			slices.ContainsFunc(s.Frames, func(f Frame) bool { return f.Values[c] == f.Values[c] }))
	}
	return out
}

// nearestDay returns for each cell the value nearest in time to a frame, of the
// others; NaN where there is none. Of two days as near the earlier one counts.
func nearestDay(frames []Frame, left [][]float32, target int) []float32 {
	order := make([]int, 0, len(frames))
	for i := range frames {
		if i != target {
			order = append(order, i)
		}
	}
	at := frames[target].Time
	slices.SortStableFunc(order, func(a, b int) int {
		ta, tb := frames[a].Time, frames[b].Time
		return cmp.Or(cmp.Compare(ta.Sub(at).Abs(), tb.Sub(at).Abs()), ta.Compare(tb))
	})
	out := make([]float32, len(left[target]))
	for c := range out {
		out[c] = field.NaN()
		if v := left[target][c]; v != v { // a gap is compared with nothing
			continue
		}
		for _, i := range order {
			if v := left[i][c]; v == v {
				out[c] = v
				break
			}
		}
	}
	return out
}

// each calls f for 0 to n-1 on all cores.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Median returns the median of the values that are not NaN.
func Median(values []float32) float64 { return field.Quantiles(values, 0.5)[0] }

// Spread returns the robust standard deviation of values, 1.4826 times the median
// distance from the median, and never 0, so that rounding in a constant map
// refuses nothing. See Rousseeuw and Croux, Journal of the American Statistical
// Association 88 (1993), 1273-1283.
func Spread(values []float32) float64 {
	middle := Median(values)
	off := make([]float32, len(values))
	for i, v := range values {
		off[i] = float32(math.Abs(float64(v) - middle))
	}
	return max(normal*Median(off), 1e-6)
}

// normal is the standard deviation of a normal distribution whose median distance
// from its median is 1.
const normal = 1.4826
