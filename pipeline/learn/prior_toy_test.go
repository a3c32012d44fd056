package learn

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/train"
)

// Where cells are independent, the probability of one is a function of its own
// latents and the level alone, and known. A trained network must come to it: to
// 0.02 at every level and probability, and to as much in the root mean square
// over single cells, whose neighbours say nothing.
func TestTrainedPriorIsTheClosedFormToTwoHundredths(t *testing.T) {
	if testing.Short() {
		t.Skip("training takes seconds")
	}
	const p, tolerance = 0.3, 0.02
	const side, cells, draws = 8, 64, 64
	data, held := bernoulli(t, p, 4*side) // sixteen windows a day: with few, their chance frequencies are learned
	cfg := shortPrior(300)
	cfg.Side, cfg.Stride, cfg.Batch, cfg.MinObserved, cfg.CalibrateMasks = side, side, 32, 1, 0
	cfg.Model.Season, cfg.Model.Frequency = false, false
	cfg.Step.EMADecay = 0.98
	m, _, err := TrainPrior(t.Context(), enginetest.Open(t), data, held, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, logSNR := range []float64{-3, -2, -1, -0.5, 0, 0.5, 1} {
		level := prior.Cosine{}.At(prior.Cosine{}.TimeOf(logSNR))
		got, want := askBernoulli(t, m, level, p, side, draws)
		const bins = 20
		var off, n [bins]float64
		squares := 0.0
		for k, w := range want {
			bin := min(int(w*bins), bins-1)
			off[bin], n[bin] = off[bin]+got[k]-w, n[bin]+1
			squares += (got[k] - w) * (got[k] - w)
		}
		for bin := range bins {
			const enough = 40 // cells, over which what the network makes of neighbours averages out
			if n[bin] >= enough && math.Abs(off[bin]/n[bin]) > tolerance {
				t.Errorf("ln(α/σ) = %g: cells with a probability near %.3f are given %+.3f more, over %.0f cells",
					logSNR, (float64(bin)+0.5)/bins, off[bin]/n[bin], n[bin])
			}
		}
		rms := math.Sqrt(squares / float64(len(want)))
		t.Logf("ln(α/σ) = %g: off by %.4f in the root mean square", logSNR, rms)
		if rms > tolerance {
			t.Errorf("ln(α/σ) = %g: single cells are off by %.3f in the root mean square", logSNR, rms)
		}
	}
}

// askBernoulli noises draws masks of independent cells and returns the
// probability of each cell as the model says it, and as the closed form does.
func askBernoulli(t *testing.T, m *prior.Model, level prior.Level, p float64, side, draws int) (got, want []float64) {
	t.Helper()
	cells := side * side
	place := prior.Place{Height: side, Width: side, Sea: make([]bool, cells)}
	for c := range place.Sea {
		place.Sea[c] = true
	}
	places := make([]prior.Place, draws)
	var x []float32
	for i := range places {
		places[i] = place
		r := noise.New(3, "bernoulli masks").Rand(uint64(i))
		mask := make([]bool, cells)
		for c := range mask {
			mask[c] = r.Float64() < p
		}
		one := latentsOf(mask, level, noise.New(3, "closed form"), uint64(i))
		for c := range cells {
			evidence := prior.Classes * level.Alpha / (level.Sigma * level.Sigma) * float64(one[cells+c]-one[c])
			want = append(want, 1/(1+(1-p)/p*math.Exp(-evidence)))
		}
		x = append(x, one...)
	}
	said, err := m.Predict(t.Context(), places, prior.Latents{X: x, Items: draws, Cells: cells, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range said {
		got = append(got, float64(v))
	}
	return got, want
}
