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
