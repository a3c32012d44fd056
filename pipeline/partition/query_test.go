package partition

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// A strategy with dead zones must be found out: a fixed split never asks for
// its left half.
func TestFixedSplitHasADeadZone(t *testing.T) {
	p := samplestest.Cloudy(1, 16)[0]
	fixed := byRule{"fixed", func(_ samples.Patch, observed []bool, _ noise.Stream) Parts {
		left := make([]bool, len(observed))
		for c, o := range observed {
			left[c] = o && c%16 < 8
		}
		return Rest(observed, left)
	}}
	const draws = 256
	for _, by := range []Strategy{fixed, Coherent()} {
		q := NewQueryMap(16, 16)
		if err := DrawQueries(t.Context(), by, []samples.Patch{p}, draws, q, noise.New(1, "query")); err != nil {
			t.Fatal(err)
		}
		lowest, err := q.Lowest(draws)
		if err != nil {
			t.Fatal(err)
		}
		if alive := lowest.Bound > 0; alive != (by.Name() == "coherent") {
			t.Errorf("%s: lowest P(query) is %+v", by.Name(), lowest)
		}
		if lowest.Cells != field.Mask(p.Observed()).Count() {
			t.Errorf("%s: %d cells, want the %d observed ones", by.Name(), lowest.Cells, field.Mask(p.Observed()).Count())
		}
	}
}

func TestLowerBoundIsClopperPearson(t *testing.T) {
	// R: binom.test(k, n, alternative = "greater")$conf.int[1]
	for _, tt := range []struct {
		k, n int
		want float64
	}{{0, 16, 0}, {1, 16, 0.003201}, {8, 16, 0.278603}, {16, 16, 0.829250}} {
		if got := LowerBound(tt.k, tt.n, 0.05); math.Abs(got-tt.want) > 1e-5 {
			t.Errorf("%d of %d: %.6f, want %.6f", tt.k, tt.n, got, tt.want)
		}
	}
	if got := DrawsFor(0.17, 1); got != 17 {
		t.Errorf("%d draws to see a probability of 0.17, want 17", got)
	}
}

func TestQueryMapCountsOnTheWholeGrid(t *testing.T) {
	p := samplestest.Cloudy(1, 16)[0]
	p.Window.Row, p.Window.Col = -4, 20 // partly beyond a grid of 32 × 32
	q := NewQueryMap(32, 32)
	parts, err := Coherent().Partition(t.Context(), []samples.Patch{p}, noise.New(1, "grid"))
	if err != nil {
		t.Fatal(err)
	}
	q.Add(p, parts[0])
	for c, o := range p.Observed() {
		row, col := c/16-4, c%16+20
		if row < 0 || col >= 32 {
			continue
		}
		if q.Drawn[row*32+col] != int(indicator(o)) || q.Queried[row*32+col] != int(indicator(parts[0].Query[c])) {
			t.Fatalf("cell %d is counted wrongly", c)
		}
	}
}

// known is a strategy whose cells are query independently with probability p.
func known(p []float64) Strategy {
	return byRule{"known", func(_ samples.Patch, observed []bool, stream noise.Stream) Parts {
		r := stream.Rand(0)
		ctx := make([]bool, len(observed))
		for c, o := range observed {
			ctx[c] = o && r.Float64() >= p[c]
		}
		return Rest(observed, ctx)
	}}
}

// The bound lies below the true lowest probability in 95 % of the cases, and not
// far below it, over many repetitions.
func TestBoundOfTheLowestPOfQueryHolds(t *testing.T) {
	const least, repetitions = 0.1, 250
	patches := samplestest.Cloudy(1, 16)
	p := make([]float64, 16*16)
	for c := range p {
		p[c] = 0.5
	}
	for c, o := range patches[0].Observed() {
		if o {
			p[c] = least // one cell, the first that is observed
			break
		}
	}
	above, tight := 0.0, 0.0
	for n := range uint64(repetitions) {
		got, err := DrawLowest(t.Context(), known(p), patches, ClaimDraws, noise.New(n, "bound"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Draws != ClaimDraws || got.Cells != field.Mask(patches[0].Observed()).Count() {
			t.Fatalf("%+v, want %d draws of every observed cell", got, ClaimDraws)
		}
		above += indicator(got.Bound > least) / repetitions
		tight += indicator(got.Bound > least/2) / repetitions
	}
	// Three standard errors of a share of 0.05.
	if within := 3 * math.Sqrt(0.05*0.95/repetitions); above > 0.05+within || above == 0 {
		t.Errorf("the bound is above the truth in %.3f of the cases, want 0.05 or a little less", above)
	}
	if tight < 0.75 {
		t.Errorf("the bound is above half of the truth in %.3f of the cases: it says too little", tight)
	}
}

// A cell that is never query in one observation must show, though it is query
// in the others and in the same place of the grid.
func TestDeadCellOfOneObservationShows(t *testing.T) {
	patches := samplestest.Cloudy(3, 16)
	dead := 9*16 + 9
	for i := range patches {
		patches[i].Values[dead] = 1
	}
	by := byRule{"dead", func(p samples.Patch, observed []bool, stream noise.Stream) Parts {
		part := Rest(observed, CoherentCut(p.Window, observed, 0.5, stream))
		if p.Day == 1 {
			part.Context[dead], part.Query[dead] = true, false
		}
		return part
	}}
	got, err := DrawLowest(t.Context(), by, patches, ClaimDraws, noise.New(1, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Never != 1 || got.Bound != 0 || got.Estimate != 0 {
		t.Errorf("one cell is never query, and it says %+v", got)
	}
	if got, err = DrawLowest(t.Context(), by, patches[:1], ClaimDraws, noise.New(1, "dead")); err != nil || got.Never != 0 || !(got.Bound > 0.2) {
		t.Errorf("where no cell is dead it says %+v, %v", got, err)
	}
	if _, err := DrawLowest(t.Context(), by, patches, ClaimDraws-1, noise.New(1, "few")); err == nil {
		t.Error("a claim was made from too few draws")
	}
}

// A strategy that takes the gaps of other days looks at the place of the patch.
func TestLowestPOfQueryIsThatOfThePlace(t *testing.T) {
	p := samplestest.Cloudy(1, 16)[0]
	p.Window.Row, p.Window.Col = 3, 5
	by := byRule{"place", func(p samples.Patch, observed []bool, stream noise.Stream) Parts {
		if p.Window.Row != 3 || p.Window.Col != 5 {
			t.Fatalf("asked to split the window at %d, %d", p.Window.Row, p.Window.Col)
		}
		return Rest(observed, CoherentCut(p.Window, observed, 0.5, stream))
	}}
	got, err := DrawLowest(t.Context(), by, []samples.Patch{p}, ClaimDraws, noise.New(1, "place"))
	if err != nil || got.Cells != field.Mask(p.Observed()).Count() {
		t.Errorf("%+v, %v, want all observed cells", got, err)
	}
}
