package infer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// randomSea is some days of a sea of random numbers with the covariance of optimal
// interpolation, under drifting gaps, in degrees.
func randomSea(seed uint64, side, days int) (Scene, []float32) {
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = 0.04 * float64(i)
	}
	grid := field.Grid{Lat: axis, Lon: axis}
	s := Scene{Sea: make(field.Mask, grid.Len())}
	var truth []float32
	e := noise.NewExponential(side, side, 20, 20, false)
	clouds := noise.NewExponential(side, side, 6, 6, false)
	before := make([]float32, grid.Len())
	for d := range days {
		x, other, cloud := make([]float32, grid.Len()), make([]float32, grid.Len()), make([]float32, grid.Len())
		e.Draw(x, other, noise.New(seed, "sea").Sub(uint64(d)))
		clouds.Draw(cloud, other, noise.New(seed, "clouds").Sub(uint64(d)))
		white := make([]float32, len(x))
		noise.New(seed, "white").Sub(uint64(d)).Normals(white, 0)
		kept := math.Exp(-1.0 / 5)
		if d == 0 {
			kept = 0
		}
		f := field.Field{Grid: grid, Time: day0.Add(time.Duration(d) * 24 * time.Hour), Values: make([]float32, len(x))}
		truth = make([]float32, len(x))
		for i := range x {
			s.Sea[i] = i%side != 0
			x[i] = float32(kept)*before[i] + float32(math.Sqrt(1-kept*kept))*x[i]
			truth[i] = 15 + 2*float32(math.Sqrt(0.8)*float64(x[i])+math.Sqrt(0.2)*float64(white[i]))
			f.Values[i] = truth[i]
			if cloud[i] > -0.3 || !s.Sea[i] {
				f.Values[i] = nan
			}
		}
		before = x
		s.History = append(s.History, f)
	}
	s.Frames, s.History = s.History[days-1:], s.History[:days-1]
	return s, truth
}

// Members of every method differ, keep the observations, and stand about the
// value as far as sigma says, near observations and far from them.
func TestMembersSpreadAsFarAsSigmaAboutTheValue(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	const members = 12
	for _, method := range []string{"oi", "persistence", "climatology"} {
		t.Run(method, func(t *testing.T) {
			s, _ := randomSea(4, 48, 4)
			cfg := DefaultConfig()
			cfg.Method, cfg.Members = method, members
			a := fill(t, cfg, s)[0]
			if len(a.Members) != members {
				t.Fatalf("%d members, want %d", len(a.Members), members)
			}
			visible := make([]bool, len(a.Value))
			for i := range visible {
				visible[i] = s.Frames[0].Observed(i)
			}
			far := distances(visible, s.Frames[0].Grid)
			var off, squares, n [2]float64
			for i, flags := range a.Flags {
				for k, m := range a.Members {
					switch {
					case flags == 0 && m[i] != s.Frames[0].Values[i]:
						t.Fatalf("member %d has %g at cell %d, which was observed as %g", k, m[i], i, s.Frames[0].Values[i])
					case flags == Land && finite(m[i]):
						t.Fatalf("member %d has %g on land", k, m[i])
					}
				}
				if flags&Interpolated == 0 {
					continue
				}
				class := 0
				if far[i] > 4 {
					class = 1
				}
				var mean float64
				for _, m := range a.Members {
					u := float64((m[i] - a.Value[i]) / a.Sigma[i])
					squares[class] += u * u / members
					mean += u / members
				}
				off[class] += mean
				n[class]++
			}
			for class, name := range []string{"near", "far"} {
				spread, shift := math.Sqrt(squares[class]/n[class]), off[class]/n[class]
				t.Logf("%s: %.0f cells, spread %.3f sigma, shift %.3f", name, n[class], spread, shift)
				if n[class] < 50 || math.Abs(spread-1) > 0.1 || math.Abs(shift) > 0.2 {
					t.Errorf("%s observations: spread %.3f and shift %.3f sigma in %.0f cells, want 1 and 0", name, spread, shift, n[class])
				}
			}
		})
	}
}

// What several cells have in common: the mean of a piece of a gap must spread
// among the members as its error does among seas, which independent noise in
// every cell would not.
func TestMembersErrTogetherAsTheAnalysisDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	const seas, side, members = 6, 36, 4
	var errs, spreads float64
	n := 0.0
	for k := range seas {
		s, truth := randomSea(uint64(100+k), side, 3)
		cfg := DefaultConfig()
		cfg.Members = members
		cfg.OI.LengthKM, cfg.OI.Days, cfg.OI.Nugget = 20*s.Frames[0].Grid.StepKM(), 5, 0.2
		a := fill(t, cfg, s)[0]
		const box = 5
		for top := 0; top+box <= side; top += box {
			for left := 1; left+box <= side; left += box {
				var e float64
				m, whole := make([]float64, members), true
				for i := top; i < top+box; i++ {
					for j := left; j < left+box; j++ {
						c := i*side + j
						whole = whole && a.Flags[c] == Interpolated
						e += float64(truth[c]-a.Value[c]) / (box * box)
						for q := range m {
							m[q] += float64(a.Members[q][c]-a.Value[c]) / (box * box)
						}
					}
				}
				if !whole {
					continue
				}
				errs += e * e
				for _, x := range m {
					spreads += x * x / members
				}
				n++
			}
		}
	}
	ratio := math.Sqrt(spreads / errs)
	t.Logf("%.0f boxes: rms error of a mean %.3f, spread among members %.3f", n, math.Sqrt(errs/n), math.Sqrt(spreads/n))
	if n < 30 || ratio < 0.75 || ratio > 1.33 {
		t.Errorf("the mean of a box errs by %.3f and its members spread by %.3f in %.0f boxes", math.Sqrt(errs/n), math.Sqrt(spreads/n), n)
	}
}

func TestMembersAreTheSameForTheSameSceneAndSeed(t *testing.T) {
	s, _ := randomSea(1, 24, 3)
	cfg := DefaultConfig()
	cfg.Members = 2
	one, same := fill(t, cfg, s)[0], fill(t, cfg, s)[0]
	cfg.Members = 3
	more := fill(t, cfg, s)[0]
	cfg.Network.Seed = 1
	other := fill(t, cfg, s)[0]
	cfg.Members = 0
	none := fill(t, cfg, s)[0]
	differ := func(a, b []float32) bool { return fmt.Sprint(a) != fmt.Sprint(b) }
	switch {
	case differ(one.Members[0], same.Members[0]) || differ(one.Members[1], same.Members[1]):
		t.Error("a second time the members are others")
	case !differ(one.Members[0], one.Members[1]) || !differ(more.Members[1], more.Members[2]):
		t.Error("two members are the same")
	case !differ(more.Members[0], other.Members[0]):
		t.Error("another seed draws the same member")
	case differ(one.Value, none.Value) || differ(one.Sigma, none.Sigma):
		t.Error("drawing members changes the analysis")
	case none.Members != nil:
		t.Error("members were drawn that nobody asked for")
	}
}

func TestAnEmptySeriesHasEmptyMembers(t *testing.T) {
	s, _ := randomSea(1, 16, 1)
	for i := range s.Frames[0].Values {
		s.Frames[0].Values[i] = nan
	}
	cfg := DefaultConfig()
	cfg.Members = 2
	for _, m := range fill(t, cfg, s)[0].Members {
		for i, v := range m {
			if finite(v) {
				t.Fatalf("a member has %g at cell %d, though nothing was observed", v, i)
			}
		}
	}
}

// A model draws the members itself where it can, whatever its tier says; one
// without a network for them gets simulated ones about its own prediction.
func TestAModelHasTheMembersThatAreAskedFor(t *testing.T) {
	s := basin(30, 36, false)
	for _, own := range []bool{true, false} {
		m := fakeModel(fakeNetworks{predicts: smoother(4), cleaned: smoothResidual}, s)
		m.members = own
		for _, tier := range []Tier{"", Fast, Standard, Full} {
			cfg := modelConfig(tier)
			cfg.Members, cfg.Network.Members = 3, 2
			a := fillWith(t, m, cfg, s)
			cfg.Members = 0
			if without := fillWith(t, m, cfg, s); len(a.Members) != 3 || !sameAnalysis(a, without) {
				t.Fatalf("members of its own %v, tier %q: %d members, want 3; the analysis is the same without them: %v",
					own, tier, len(a.Members), sameAnalysis(a, without))
			}
			for i, flags := range a.Flags {
				filled := flags&Interpolated != 0
				differ := a.Members[0][i] != a.Members[1][i] && a.Members[1][i] != a.Members[2][i]
				if filled && (!differ || !finite(a.Members[0][i])) || flags == 0 && a.Members[0][i] != a.Value[i] {
					t.Fatalf("members of its own %v, tier %q: cell %d with flags %b is %g, %g and %g; value %g",
						own, tier, i, flags, a.Members[0][i], a.Members[1][i], a.Members[2][i], a.Value[i])
				}
			}
		}
	}
}

// Of the two means that a full ensemble has, the one that was asked for is
// published, its members about it, and both are there to be scored.
func TestTheMeanThatIsAskedForIsPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	skipArithmetic(t)
	s, m := elsewhere(t)
	cfg := modelConfig(Full)
	cfg.Network.Members = spreadMembers
	with := func(asked, version impute.Centre) Analysis {
		m.version.MembersCalibration.Centre = version
		s.Centre = asked
		return fillWith(t, m, cfg, s)
	}
	one, own := with("", ""), with(impute.MembersMean, "")
	if one.Sampling.Centre != impute.OneStep || own.Sampling.Centre != impute.MembersMean {
		t.Fatalf("published %q and %q", one.Sampling.Centre, own.Sampling.Centre)
	}
	if !sameAnalysis(own, with("", impute.MembersMean)) || !sameAnalysis(one, with(impute.OneStep, impute.MembersMean)) {
		t.Error("the choice of the version is not taken, or stands above that of the dataset")
	}
	apart := 0.0
	for i, flags := range one.Flags {
		if flags&Interpolated == 0 {
			continue
		}
		log := func(a Analysis) float64 { return math.Log10(float64(a.Value[i])) }
		apart = max(apart, math.Abs(log(one)-log(own)))
		for _, m := range []*Means{one.Means, own.Means} {
			if math.Abs(log(one)-float64(m.OneStep[i])) > 1e-4 || math.Abs(log(own)-float64(m.Members[i])) > 1e-4 {
				t.Fatalf("cell %d: published %g and %g, the means %g and %g", i, log(one), log(own), m.OneStep[i], m.Members[i])
			}
		}
		for _, a := range []Analysis{one, own} {
			sum := 0.0
			for _, x := range a.Members {
				sum += math.Log10(float64(x[i])) / float64(len(a.Members))
			}
			if math.Abs(sum-log(a)) > 1e-3 {
				t.Fatalf("cell %d: the members are about %g, the value is %g", i, sum, log(a))
			}
		}
	}
	if apart < 1e-3 {
		t.Errorf("the two means differ by %g at most: nothing was tested", apart)
	}
}

// The spread of members is steadied among neighbours, and keeps the detail of the
// imputer's sigma: a step there stays a step. What is visible has no part in it.
func TestTheSpreadOfMembersIsSteadyAndKeepsTheDetailOfSigma(t *testing.T) {
	const h, w, count = 40, 40, 16
	sub := &preparedField{grid: basin(h, w, false).Frames[0].Grid, hidden: make([]bool, h*w)}
	said := make([]float32, h*w)
	members := make([][]float32, count)
	for k := range members {
		members[k] = make([]float32, h*w)
		noise.New(1, "steady").Sub(uint64(k)).Normals(members[k], 0)
	}
	for i := range said {
		said[i], sub.hidden[i] = 1, i%w > 3
		if i%w >= w/2 {
			said[i] = 3
		}
		for _, x := range members {
			x[i] *= 0.5 * said[i]
			if !sub.hidden[i] {
				x[i] *= 100
			}
		}
	}
	got := steadySpread(sub, said, members)
	uneven, steady := 0.0, 0.0
	for i := range got {
		if !sub.hidden[i] {
			continue
		}
		_, raw := impute.Departure(members, i)
		uneven += math.Pow(float64(raw)/float64(said[i])/0.5-1, 2)
		off := float64(got[i])/float64(said[i])/0.5 - 1
		steady += off * off
		if math.Abs(off) > 0.15 {
			t.Fatalf("cell %d: a spread of %g where it is half of %g", i, got[i], said[i])
		}
	}
	if !(steady < uneven/4) {
		t.Errorf("squares off the truth: %.2f for every cell by itself, %.2f with its neighbours", uneven, steady)
	}
}
