package infer

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// elsewhere is a scene for a model that was trained on another sea, and the model.
func elsewhere(t *testing.T) (Scene, *Model) {
	t.Helper()
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	s.Scaling = &samples.Scaling{Mean: slices.Repeat([]float32{0.2}, len(s.Sea)), Std: 0.5}
	return s, m
}

// trusted returns the scene with a weight on the model, and scored days behind
// both methods.
func trusted(s Scene, weight float64) Scene {
	s.Widening = skill.Widen(scoredDays(20, 1.3), day0.Add(time.Hour))
	s.Trust = &Trust{Weight: weight, Widening: skill.Widen(scoredDays(20, 0.8), day0.Add(time.Hour))}
	s.Constants = &Constants{LengthKM: 60, Days: 4, Nugget: 0.2, SigmaScale: 1.1}
	return s
}

func TestAModelThatIsNotTrustedLeavesInterpolationToTheBit(t *testing.T) {
	s, m := elsewhere(t)
	s = trusted(s, 0)
	plain := s
	plain.Widening, plain.Trust = s.Trust.Widening, nil
	for _, members := range []int{0, 2} {
		oi, network := DefaultConfig(), modelConfig("")
		oi.Members, network.Members = members, members
		oi.PastDays, oi.Network.Seed = network.PastDays, network.Network.Seed
		want, got := fillWith(t, nil, oi, plain), fillWith(t, m, network, s)
		if !sameAnalysis(got, want) || len(got.Members) != members {
			t.Fatalf("with %d members the analysis is not that of optimal interpolation", members)
		}
		for k := range want.Members {
			if !sameBits(got.Members[k], want.Members[k]) {
				t.Errorf("member %d is not that of optimal interpolation", k)
			}
		}
	}
}

// With a deadline the members are the model's own, and value and sigma still those
// of interpolation: its fields stand about that mean as far as that sigma says.
func TestAModelThatIsNotTrustedDrawsMembersAboutTheInterpolation(t *testing.T) {
	s, m := elsewhere(t)
	s = trusted(s, 0)
	plain := s
	plain.Widening, plain.Trust = s.Trust.Widening, nil
	oi, network := DefaultConfig(), modelConfig("")
	oi.PastDays = network.PastDays
	network.Network.Deadline = time.Hour
	want, got := fillWith(t, nil, oi, plain), fillWith(t, m, network, s)
	if !sameAnalysis(got, want) || len(got.Members) != 16 || got.Sampling.Tier != Full || got.Sampling.Centre != "" {
		t.Fatalf("%d members, %+v, the analysis of interpolation: %v", len(got.Members), got.Sampling, sameAnalysis(got, want))
	}
	var off, spread float64
	for i, flags := range got.Flags {
		if flags&Interpolated == 0 {
			continue
		}
		for _, x := range got.Members {
			d := (math.Log10(float64(x[i])) - math.Log10(float64(got.Value[i]))) / float64(got.Sigma[i])
			off += d / 16
			spread += d * d / 16
		}
		if math.Abs(off) > 1e-2 || math.Abs(spread-15.0/17) > 1e-2 { // sigma allows for the truth as one more draw of sixteen
			t.Fatalf("cell %d: the members are %g sigmas off the value on average, and have %g of its variance", i, off, spread)
		}
		off, spread = 0, 0
	}
}

// A product of interpolation is made anew for the sake of members only where
// somebody gets them.
func TestMembersOfAModelThatIsNotTrustedFollowWhereTheyAreAskedFor(t *testing.T) {
	s, m := elsewhere(t)
	s = trusted(s, 0)
	cfg := modelConfig("")
	cfg.Network.Deadline, cfg.Network.Prompt = time.Hour, time.Nanosecond
	if got := fillWith(t, m, cfg, s).Sampling; got != (Sampling{}) {
		t.Errorf("nobody asked, and the sampling is %+v", got)
	}
	cfg.Members = 2
	want := Sampling{Tier: Fast, Members: 2, Sampler: "probability flow, 10 steps", Follows: Full}
	if a := fillWith(t, m, cfg, s); a.Sampling != want || len(a.Members) != 2 {
		t.Errorf("%d members, %+v, want 2 and %+v", len(a.Members), a.Sampling, want)
	}
}

func TestAModelIsFollowedAsFarAsItIsTrusted(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	skipArithmetic(t)
	s, m := elsewhere(t)
	cfg := modelConfig(Full)
	cfg.Network.Members = spreadMembers
	at := func(weight float64) Analysis { return fillWith(t, m, cfg, trusted(s, weight)) }
	none, all := at(0), at(1)
	full := trusted(s, 1)
	full.Trust = nil
	if !sameAnalysis(all, fillWith(t, m, cfg, full)) {
		t.Error("a model that is trusted all the way is not the model alone")
	}
	apart := 0.0
	for _, w := range []float64{1e-4, 0.3, 0.9} {
		mixed := at(w)
		for i, flags := range none.Flags {
			if flags&Interpolated == 0 {
				if mixed.Value[i] != none.Value[i] && none.Value[i] == none.Value[i] {
					t.Fatalf("an observation became %g", mixed.Value[i])
				}
				continue
			}
			log := func(a Analysis) float64 { return math.Log10(float64(a.Value[i])) }
			apart = max(apart, math.Abs(log(all)-log(none)))
			if want := (1-w)*log(none) + w*log(all); math.Abs(log(mixed)-want) > 1e-4 {
				t.Fatalf("weight %g, cell %d: %g, want %g", w, i, log(mixed), want)
			}
			want := (1-w)*float64(none.Sigma[i]) + w*float64(all.Sigma[i])
			if math.Abs(float64(mixed.Sigma[i])-want) > 1e-4*want {
				t.Fatalf("weight %g, cell %d: sigma %g, want %g", w, i, mixed.Sigma[i], want)
			}
			// Members stand about the mixed value as theirs about the model's.
			k := i % len(mixed.Members)
			off := func(a Analysis) float64 {
				return (math.Log10(float64(a.Members[k][i])) - log(a)) / float64(a.Sigma[i])
			}
			if a, b := off(all), off(mixed); math.Abs(a-b) > 2e-3*max(1, math.Abs(a)) {
				t.Fatalf("weight %g, cell %d: member %d is %g sigmas off the value, of the model %g", w, i, k, b, a)
			}
		}
	}
	if apart < 0.01 {
		t.Errorf("the model departs by %g at most: nothing was tested", apart)
	}
}

// What is scored must be what each says by itself, whatever is served.
func TestBothAnalysesAreKeptApartToBeScored(t *testing.T) {
	s, m := elsewhere(t)
	cfg := modelConfig(Fast)
	for _, w := range []float64{0, 0.5, 1} {
		scored := trusted(s, w)
		served := fillWith(t, m, cfg, scored)
		scored.Trust.Apart = true
		got := fillWith(t, m, cfg, scored)
		if !sameAnalysis(got, served) || served.Apart != nil || got.Apart == nil {
			t.Fatalf("weight %g: what is scored is not what is served", w)
		}
		ends := [2]Analysis{fillWith(t, m, cfg, trusted(s, 0)), fillWith(t, m, cfg, trusted(s, 1))}
		for i, flags := range got.Flags {
			if flags&Interpolated == 0 {
				continue
			}
			for k, e := range []float32{got.Apart.Interpolated.Mean[i], got.Apart.Modelled.Mean[i]} {
				if want := math.Log10(float64(ends[k].Value[i])); math.Abs(float64(e)-want) > 1e-4 {
					t.Fatalf("weight %g, cell %d: %g, want %g", w, i, e, want)
				}
			}
			if own := ends[1].Own[i]; got.Apart.Modelled.Sigma[i] != own {
				t.Fatalf("cell %d: the sigma to be scored is %g, that of the model itself %g", i, got.Apart.Modelled.Sigma[i], own)
			}
			if own := ends[0].Own[i]; got.Apart.Interpolated.Sigma[i] != own {
				t.Fatalf("cell %d: the sigma to be scored is %g, that of interpolation itself %g", i, got.Apart.Interpolated.Sigma[i], own)
			}
		}
	}
}

// The map of places that were never to be reconstructed belongs to a grid, not to
// the days that values are scaled by.
func TestAModelKeepsItsQueryMapWhereTheGridIsItsOwn(t *testing.T) {
	s, m := elsewhere(t)
	m.version.Query = slices.Repeat([]float32{0.3}, len(s.Sea))
	cfg := modelConfig(Fast)
	cfg.Details = true
	gap := slices.IndexFunc(fillWith(t, m, cfg, s).Flags, func(flags byte) bool { return flags == Interpolated })
	m.version.Query[gap] = 0
	a := fillWith(t, m, cfg, s)
	if !sameBits(a.Details.Reliability, m.version.Query) || a.Flags[gap] != NotReconstructible || !m.Reliable(s.Frames[0].Grid) {
		t.Error("scaled by other days, the model has lost its query map")
	}
	half := trusted(s, 0.5)
	mixed, plain := fillWith(t, m, cfg, half), fillWith(t, m, cfg, trusted(s, 0))
	if mixed.Flags[gap] != Interpolated || mixed.Value[gap] != plain.Value[gap] {
		t.Errorf("where the model has no answer the mix is %g with flags %d, want the interpolation, %g", mixed.Value[gap], mixed.Flags[gap], plain.Value[gap])
	}
	m.version.Scaling.Grid.Lat = []float64{1, 2}
	if a := fillWith(t, m, cfg, s); a.Details.Reliability != nil || m.Reliable(s.Frames[0].Grid) {
		t.Error("the query map of another grid was used")
	}
}
