package prior

import (
	"context"
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

// Theorem 1: where every cell outside a context can be observed in a mask that
// shares just that context, it is query with positive probability. All pairs
// of independent masks of four cells are counted.
func TestTheoremOneByEnumeration(t *testing.T) {
	all := make([][]bool, 16)
	for k := range all {
		all[k] = []bool{k&1 > 0, k&2 > 0, k&4 > 0, k&8 > 0}
	}
	if dead := deadZones(all); dead != 0 {
		t.Errorf("%d pairs of context and cell are never query though every mask is possible", dead)
	}
	// The last cell is never observed: the assumption is broken there.
	if dead := deadZones(all[:8]); dead == 0 {
		t.Error("a cell that is never observed is said to be query")
	}
}

// deadZones counts the pairs of a possible context m and a cell outside of it
// that is never query when two masks of the support share m.
func deadZones(support [][]bool) int {
	type key [4]bool
	queried := map[key]key{}
	for _, a := range support {
		for _, b := range support {
			var ctx, query key
			for c := range ctx {
				ctx[c] = a[c] && b[c]
				query[c] = a[c] && !b[c]
			}
			before := queried[ctx]
			for c := range before {
				before[c] = before[c] || query[c]
			}
			queried[ctx] = before
		}
	}
	dead := 0
	for ctx, q := range queried {
		for c := range ctx {
			if !ctx[c] && !q[c] {
				dead++
			}
		}
	}
	return dead
}

// x = α·K·e + σ·ε, channel by channel.
func TestLatentsHaveTheirMeanAndVariance(t *testing.T) {
	l := Cosine{}.At(0.37)
	const n = 100000
	observed := make([]bool, n)
	for i := range observed {
		observed[i] = true
	}
	x := make([]float32, Classes*n)
	latents(x, observed, l, noise.New(1, "latents"), 0)
	for channel, want := range []float64{0, Classes * l.Alpha} {
		var sum, squares float64
		for _, v := range x[channel*n : (channel+1)*n] {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / n
		sd := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-want) > 0.01 || math.Abs(sd-l.Sigma) > 0.01 {
			t.Errorf("channel %d has mean %.3f and sd %.3f, want %.3f and %.3f", channel, mean, sd, want, l.Sigma)
		}
	}
}

// The data predictor does not change under a shift; the score does, so no
// network of the softmax can give it. The numbers are worked out by hand in
// the notes that this project began with.
func TestScoreIsNotShiftInvariant(t *testing.T) {
	const p = 0.3
	l := Level{Alpha: 0.6, Sigma: 0.8}
	score := func(x0, x1 float64) (float64, float64) {
		e := sigmoid(math.Log(p/(1-p)) + l.Gain()*(x1-x0))
		v := l.Sigma * l.Sigma
		return (l.Alpha*Classes*(1-e) - x0) / v, (l.Alpha*Classes*e - x1) / v
	}
	a0, a1 := score(0.2, 0.1)
	b0, b1 := score(1.2, 1.1)
	if math.Abs((a0-b0)-1/(l.Sigma*l.Sigma)) > 1e-9 || math.Abs((a1-b1)-1/(l.Sigma*l.Sigma)) > 1e-9 {
		t.Errorf("a shift by 1 moves the score from (%.2f, %.2f) to (%.2f, %.2f), want both by -1/σ²", a0, a1, b0, b1)
	}
}

func TestSchedulesInvertTheirTime(t *testing.T) {
	for _, s := range []Schedule{Cosine{}, Accuracy{Final: DefaultFinalAccuracy}} {
		for logSNR := -6.0; logSNR <= 1; logSNR += 0.5 {
			if got := s.At(s.TimeOf(logSNR)).LogSNR(); math.Abs(got-logSNR) > 1e-6 {
				t.Errorf("%s: ln(α/σ) at the time of %g is %g", s.Name(), logSNR, got)
			}
		}
	}
	for _, tt := range []float64{0, 0.2, 0.7, 1} {
		l := Cosine{}.At(tt)
		if v := l.Alpha*l.Alpha + l.Sigma*l.Sigma; math.Abs(v-1) > 1e-12 {
			t.Errorf("variance at %g is %g, want 1", tt, v)
		}
	}
}

func TestLevelsStartEarlierOnLargerGrids(t *testing.T) {
	for cells, want := range map[int]float64{64 * 64: -6, 128 * 128: -6 - math.Ln2, 256 * 256: -6 - 2*math.Ln2} {
		levels := LogSNR.Levels(Cosine{}, 20, cells)
		if len(levels) != 21 || levels[20].Sigma != 0 {
			t.Fatalf("%d levels that end at σ = %g, want 21 and 0", len(levels), levels[20].Sigma)
		}
		if got := levels[0].LogSNR(); math.Abs(got-want) > 1e-6 {
			t.Errorf("%d cells: first ln(α/σ) is %.3f, want %.3f", cells, got, want)
		}
		if got := levels[19].LogSNR(); math.Abs(got-3) > 1e-6 {
			t.Errorf("%d cells: last ln(α/σ) is %.3f, want 3", cells, got)
		}
	}
}

// For independent cells and the exact predictor, the loss is the entropy.
func TestBitsOfIndependentCellsAreTheirEntropy(t *testing.T) {
	const side, items = 192, 4
	const cells = side * side
	for _, p := range []float64{0.3, 0.05} {
		probs, sea := make([]float64, cells), make([]bool, cells)
		for c := range probs {
			probs[c], sea[c] = p, true
		}
		masks := make([]Mask, items)
		want := 0.0
		for i := range masks {
			masks[i] = Mask{Place: Place{Height: side, Width: side, Sea: sea}, Observed: make([]bool, cells)}
			r := noise.New(2, "bits").Rand(uint64(i))
			for c := range cells {
				masks[i].Observed[c] = r.Float64() < p
			}
			c := float64(field.Mask(masks[i].Observed).Count()) / cells
			want -= (c*math.Log2(p) + (1-c)*math.Log2(1-p)) / items
		}
		costs, err := bitProfiles(context.Background(), independent(probs), Cosine{}, masks)
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		for _, c := range costs {
			got += c.bits() / items
		}
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("p = %g: %.4f bits a cell, want %.4f", p, got, want)
		}
	}
}
