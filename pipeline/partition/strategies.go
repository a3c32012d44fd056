package partition

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Saliency takes half of the context from the steeper half of the observed
// cells and half from the flatter one; the query is the rest. It guarantees a
// partition with a context of exactly ctxShare of the cells, rounded, at least
// one and not all. A slope is known from observed neighbours only: no value
// that is not there takes part.
func Saliency(ctxShare float64) Strategy {
	return byRule{"saliency", func(p samples.Patch, observed []bool, stream noise.Stream) Parts {
		cells := indices(observed)
		steep := slopes(p.Values, p.Window.Height, p.Window.Width)
		slices.SortStableFunc(cells, func(a, b int) int { return cmp.Compare(steep[b], steep[a]) })
		wanted := shareOf(len(cells), ctxShare)
		half, fromSteep := len(cells)/2, wanted/2 // wanted is less than all, so each half has enough

		ctx := make([]bool, len(observed))
		r := stream.Rand(0)
		choose(ctx, cells[:half], fromSteep, r)
		choose(ctx, cells[half:], wanted-fromSteep, r)
		return Rest(observed, ctx)
	}}
}

// shareOf returns share·n, rounded, such that neither it nor its rest is
// empty.
func shareOf(n int, share float64) int {
	return min(max(int(math.Round(share*float64(n))), 1), n-1)
}

func choose(dst []bool, from []int, n int, r *rand.Rand) {
	for _, k := range r.Perm(len(from))[:n] {
		dst[from[k]] = true
	}
}

// slopes returns the length of the gradient of values, from central
// differences where both neighbours hold a value, one-sided ones where one
// does, and zero along an axis where none does.
func slopes(values []float32, height, width int) []float64 {
	out := make([]float64, len(values))
	at := func(i, j int) (float64, bool) {
		if i < 0 || j < 0 || i >= height || j >= width {
			return 0, false
		}
		v := values[i*width+j]
		return float64(v), v == v // not NaN
	}
	for i := range height {
		for j := range width {
			own, ok := at(i, j)
			if !ok {
				continue
			}
			along := func(di, dj int) float64 {
				before, hasBefore := at(i-di, j-dj)
				after, hasAfter := at(i+di, j+dj)
				switch {
				case hasBefore && hasAfter:
					return (after - before) / 2
				case hasBefore:
					return own - before
				case hasAfter:
					return after - own
				}
				return 0
			}
			out[i*width+j] = math.Hypot(along(1, 0), along(0, 1))
		}
	}
	return out
}

// Coherent needs no prior: it cuts a smooth random field at a random level.
// It guarantees a partition, of which between a tenth and nine tenths, rounded,
// are context, in whole regions.
func Coherent() Strategy {
	return byRule{"coherent", func(p samples.Patch, observed []bool, stream noise.Stream) Parts {
		share := Retention(stream.Sub(coherentDraws).Rand(0))
		return Rest(observed, CoherentCut(p.Window, observed, share, stream))
	}}
}

// Numbers of coherent thinning: short enough for a small cloud, long enough
// for a front, at the 64×64 cells they were measured on; and the share that is
// kept, never all and never nothing.
const (
	lengthMinCells = 2
	lengthMaxCells = 16
	retentionMin   = 0.1
	retentionMax   = 0.9
)

// Retention draws the share of the observed cells that a coherent cut keeps.
func Retention(r *rand.Rand) float64 {
	return retentionMin + (retentionMax-retentionMin)*r.Float64()
}

// Streams below the one of a coherent cut.
const (
	coherentDraws = iota // numbers that choose retention
	coherentLength
	coherentNoise
)

// CoherentCut returns the retention of the observed cells, rounded, that lie
// highest in a smooth random field; at least one and not all.
func CoherentCut(w samples.Window, observed []bool, retention float64, stream noise.Stream) []bool {
	lengthCells := lengthMinCells * math.Pow(lengthMaxCells/lengthMinCells, stream.Sub(coherentLength).Rand(0).Float64())
	f := noise.SmoothField(w.Height, w.Width, lengthCells, stream.Sub(coherentNoise))
	cells := indices(observed)
	slices.SortFunc(cells, func(a, b int) int { return cmp.Or(cmp.Compare(f[b], f[a]), cmp.Compare(a, b)) })
	out := make([]bool, len(observed))
	for _, cell := range cells[:shareOf(len(cells), retention)] {
		out[cell] = true
	}
	return out
}

// Empirical takes as context the cells that another training day, drawn at
// random, has observed in the same place. It guarantees a partition and that the other
// mask is of the training side and of another time than the patch. A day that
// would leave context or query empty is passed over; where all would, the
// patch is split as Coherent does.
func Empirical(train samples.Train) Strategy { return empirical{train} }

type empirical struct{ train samples.Train }

// Name implements Strategy.
func (e empirical) Name() string { return "empirical" }

// Partition implements Strategy.
func (e empirical) Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]Parts, error) {
	if e.train.Days() < 2 {
		return nil, errors.New("take masks from other days: there is only one training day; give more files")
	}
	strategy := byRule{e.Name(), e.split}
	return strategy.Partition(ctx, patches, stream)
}

func (e empirical) split(p samples.Patch, observed []bool, stream noise.Stream) Parts {
	r := stream.Rand(0)
	const tries = 64 // a bound for windows that are nearly never seen
	for range tries {
		first, end := e.train.Places()[p.Place].Days()
		day := first + r.IntN(end-first)
		if e.train.Time(day).Equal(p.Time) {
			continue
		}
		other := e.train.Cut(samples.Ref{Day: day, Window: p.Window})
		if part, ok := Intersect(observed, other.Observed()); ok {
			return part
		}
	}
	return Rest(observed, CoherentCut(p.Window, observed, Retention(r), stream))
}
