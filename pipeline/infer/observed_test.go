package infer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Assimilation needs the error of every value, on what the mask calls land too.
func TestEveryObservationHasAnUncertainty(t *testing.T) {
	s := scene()
	s.Frames[0].Values[0] = 2.5 // on land
	for _, method := range []string{"oi", "persistence", "climatology"} {
		cfg := DefaultConfig()
		cfg.Method = method
		a := fill(t, cfg, s)[0]
		for i, v := range s.Frames[0].Values {
			if v != v { // NaN
				continue
			}
			width := math.Log10(float64(a.Upper[i])/float64(a.Lower[i])) / float64(a.Sigma[i])
			if a.Flags[i] != 0 || math.Float32bits(a.Value[i]) != math.Float32bits(v) || !(a.Sigma[i] > 0) || math.Abs(width-2*1.64485) > 1e-3 {
				t.Fatalf("%s: observed cell %d is %g in %g..%g with sigma %g and flags %b", method, i, a.Value[i], a.Lower[i], a.Upper[i], a.Sigma[i], a.Flags[i])
			}
		}
	}
}

func TestTheFittedErrorIsTheNuggetOfTheAnalysis(t *testing.T) {
	s := basin(40, 48, false)
	oi := classical.DefaultOI(s.Frames[0].Grid)
	cfg := DefaultConfig()
	cfg.OI = OI{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: 0.36}
	low := fill(t, cfg, s)[0]
	cfg.OI.Nugget = 0.09
	lower := fill(t, cfg, s)[0]
	seen := 0
	for i, v := range s.Frames[0].Values {
		if v == v && s.Sea[i] { // not NaN
			seen++
			if r := float64(low.Sigma[i] / lower.Sigma[i]); math.Abs(r-2) > 1e-3 {
				t.Fatalf("a nugget four times as large makes an error %.3f times as large, want 2", r)
			}
		}
	}
	if seen == 0 {
		t.Fatal("nothing was observed")
	}
	m := untrained(t, everything(), s, openDevice(t, 1))
	cfg.OI = OI{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: oi.Nugget}
	plain, model := fill(t, cfg, s)[0], fillWith(t, m, modelConfig(Fast), s)
	for i, v := range s.Frames[0].Values {
		if v == v && s.Sea[i] && math.Abs(float64(model.Sigma[i]/plain.Sigma[i])-1) > 0.02 { // scaled by another mean map
			t.Fatalf("cell %d: the model has the error %g, the analysis under it %g", i, model.Sigma[i], plain.Sigma[i])
		}
	}
}

func TestTheErrorOfTheObservationComesFirstAndIsFlagged(t *testing.T) {
	s := scene()
	plain := fill(t, DefaultConfig(), s)[0]
	own := make([]float32, len(s.Sea))
	for i := range own {
		own[i] = nan
		if i%2 == 0 {
			own[i] = 0.07 + float32(i)/1000
		}
	}
	s.Errors = [][]float32{own}
	a := fill(t, DefaultConfig(), s)[0]
	given := 0
	for i := range own {
		switch observed := s.Frames[0].Observed(i); {
		case observed && finite(own[i]):
			given++
			if a.Sigma[i] != own[i] || a.Flags[i] != OwnError || !Observed(a.Flags[i]) || a.Value[i] != s.Frames[0].Values[i] {
				t.Fatalf("cell %d: sigma %g and flags %b, want %g and the flag of an error of its own", i, a.Sigma[i], a.Flags[i], own[i])
			}
		default: // an error where nothing was observed must not be seen
			if a.Flags[i] != plain.Flags[i] || math.Float32bits(a.Sigma[i]) != math.Float32bits(plain.Sigma[i]) || math.Float32bits(a.Value[i]) != math.Float32bits(plain.Value[i]) {
				t.Fatalf("cell %d: sigma %g and flags %b, want %g and %b", i, a.Sigma[i], a.Flags[i], plain.Sigma[i], plain.Flags[i])
			}
		}
	}
	if given < 5 {
		t.Fatalf("%d observations have an error of their own: the test says little", given)
	}
}

func TestBlendTrustsAnObservationByItsOwnError(t *testing.T) {
	s := basin(40, 48, false)
	s.Frames = slices.Clone(s.Frames)
	cell := slices.IndexFunc(s.Frames[0].Values, func(v float32) bool { return v == v })
	for !s.Sea[cell] || !s.Frames[0].Observed(cell) {
		cell++
	}
	cfg := DefaultConfig()
	cfg.Quality.Observed = Denoise
	estimate := fill(t, cfg, s)[0].Value[cell]
	cfg.Quality.Observed = Blend
	with := func(sigma float32) Analysis {
		s.Errors = [][]float32{make([]float32, len(s.Sea))}
		for i := range s.Errors[0] {
			s.Errors[0][i] = nan
		}
		s.Errors[0][cell] = sigma
		return fill(t, cfg, s)[0]
	}
	decades := func(x, y float32) float64 { return math.Abs(math.Log10(float64(x / y))) }
	sure, unsure := with(1e-4), with(100)
	if d := decades(sure.Value[cell], s.Frames[0].Values[cell]); d > 1e-3 {
		t.Errorf("an exact observation was moved by %g decades", d)
	}
	if d := decades(unsure.Value[cell], estimate); d > 1e-3 {
		t.Errorf("a useless observation is %g decades from the estimate of its neighbours", d)
	}
	if sure.Flags[cell] != Interpolated || !(sure.Sigma[cell] < unsure.Sigma[cell]) {
		t.Errorf("flags %b, sigma %g and %g", sure.Flags[cell], sure.Sigma[cell], unsure.Sigma[cell])
	}
}

func TestOneObservationAloneHasNoErrorToFit(t *testing.T) {
	s := scene()
	for i := range s.Frames[0].Values {
		if i != 9 {
			s.Frames[0].Values[i] = field.NaN()
		}
	}
	s.Frames[0].Values[9] = 3
	cfg := DefaultConfig()
	cfg.Method = "climatology"
	if a := fill(t, cfg, s)[0]; a.Flags[9] != 0 || a.Value[9] != 3 || finite(a.Sigma[9]) || finite(a.Upper[9]) {
		t.Errorf("flags %b, value %g, sigma %g: one cell says nothing of its noise", a.Flags[9], a.Value[9], a.Sigma[9])
	}
}

// What only a lesser one of several sources saw is published as its neighbours have it
// where they are surer, and flagged; what the better one saw stays, to the bit.
func TestALesserSourceIsBlendedWhereItsNeighboursAreSurer(t *testing.T) {
	s := basin(40, 48, false)
	rng := rand.New(rand.NewPCG(1, 2))
	clean := slices.Clone(s.Frames[0].Values)
	all := append(slices.Clone(s.Frames), s.History...)
	for f := range all {
		values, errors := slices.Clone(all[f].Values), make([]float32, len(all[f].Values))
		for i := range values {
			errors[i] = 0.01
			if (i/48+i)%3 == 0 {
				errors[i] = 0.5
				values[i] *= float32(math.Pow(10, 0.5*rng.NormFloat64()))
			}
		}
		all[f].Values, all[f].Errors = values, errors
	}
	s.Frames, s.History = all[:1], all[1:]
	s.Errors = [][]float32{all[0].Errors}
	cfg := DefaultConfig()
	a := fill(t, cfg, s)[0]
	seen, blended, before, after := 0, 0, 0.0, 0.0
	for i, v := range s.Frames[0].Values {
		switch {
		case v != v || !s.Sea[i]:
		case all[0].Errors[i] < 0.1:
			seen++
			if a.Value[i] != v || !Observed(a.Flags[i]) {
				t.Fatalf("cell %d of the better source was %g and is %g, flags %b", i, v, a.Value[i], a.Flags[i])
			}
		case !Observed(a.Flags[i]):
			blended++
			off := func(v float32) float64 { return math.Pow(math.Log10(float64(v/clean[i])), 2) }
			before, after = before+off(v), after+off(a.Value[i])
			if a.Flags[i] != Interpolated || !(a.Sigma[i] < 0.5) {
				t.Fatalf("cell %d has sigma %g and flags %b", i, a.Sigma[i], a.Flags[i])
			}
		}
	}
	if seen == 0 || blended < 100 || !(after < before/4) {
		t.Errorf("%d cells of the better source; of the other %d are blended, whose squared errors were %.2f and are %.2f", seen, blended, before, after)
	}
	cfg.Quality.Observed = Keep
	kept := fill(t, cfg, s)[0]
	for i, v := range s.Frames[0].Values {
		if v == v && kept.Value[i] != v {
			t.Fatalf("with %s cell %d was %g and is %g", Keep, i, v, kept.Value[i])
		}
	}
}
