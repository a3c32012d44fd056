package classical

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/field"
)

// lowRank returns a series of three smooth patterns with independent
// amplitudes and white noise, about half of it under clouds, and the sum of
// the patterns without noise.
func lowRank(side, frames int, noise float64, seed uint64) (s Series, truth [][]float32) {
	s = cloudy(side, side, frames, seed)
	rng := rand.New(rand.NewPCG(seed, 99))
	var patterns [3][]float32
	for m := range patterns {
		patterns[m] = smoothNoise(side, side, 3, rng)
	}
	sizes, periods := [3]float64{2, 1.4, 1}, [3]float64{31, 17, 11}
	for f := range s.Frames {
		clean, seen := make([]float32, side*side), make([]float32, side*side)
		cloud := smoothNoise(side, side, 5, rng)
		for c := range clean {
			clean[c] = 5
			for m := range patterns {
				amp := sizes[m] * math.Sin(2*math.Pi*float64(f)/periods[m]+float64(m))
				clean[c] += float32(amp) * patterns[m][c]
			}
			seen[c] = clean[c] + float32(noise*rng.NormFloat64())
			if cloud[c] > 0 {
				seen[c] = field.NaN()
			}
		}
		truth = append(truth, clean)
		s.Frames[f].Values = seen
	}
	return s, truth
}

func TestDINEOFFindsTheTrueModes(t *testing.T) {
	if testing.Short() {
		t.Skip("many iterations: left to the full run")
	}
	s, truth := lowRank(40, 90, 0.3, 3)
	d := DefaultDINEOF()
	d.Patience = 1   // the errors have one minimum here
	d.FilterDays = 0 // amplitudes of eleven days are too fast for it
	all, modes, err := d.fillAll(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if modes.Count != 3 {
		t.Errorf("%d modes were chosen, errors %.3f", modes.Count, modes.Errors)
	}
	squares, variances, spread, n := 0.0, 0.0, 0.0, 0.0
	for f, e := range all {
		for c, m := range e.Mean {
			if !s.observed(f, c) {
				squares += math.Pow(float64(m-truth[f][c]), 2)
				variances += math.Pow(float64(e.Sigma[c]), 2)
				spread += math.Pow(float64(truth[f][c]-5), 2)
				n++
			}
		}
	}
	rmse, sigma := math.Sqrt(squares/n), math.Sqrt(variances/n)
	t.Logf("modes %d, RMSE in gaps %.3f of %.3f, sigma %.3f, %d iterations, errors %.3f",
		modes.Count, rmse, math.Sqrt(spread/n), sigma, modes.Iterations, modes.Errors)
	// Least squares of 3 (1600 + 90) unknowns by 72000 observations errs by
	// 0.27 of their noise.
	if rmse > 0.1 {
		t.Errorf("RMSE in gaps is %.3f, least squares of the right rank would have 0.08", rmse)
	}
	// Sigma is that of an observation, noise included; held-out clouds
	// calibrate it.
	if total := math.Sqrt(rmse*rmse + 0.3*0.3); sigma < 0.9*total || sigma > 1.15*total {
		t.Errorf("sigma is %.3f, errors with noise are %.3f", sigma, total)
	}
}

func TestDINEOFKeepsObservations(t *testing.T) {
	s := coast(cloudy(30, 34, 12, 5))
	all, modes, err := DefaultDINEOF().fillAll(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for f, e := range all {
		for c, m := range e.Mean {
			switch {
			case !s.sea(c):
				if m == m || e.Sigma[c] == e.Sigma[c] {
					t.Fatalf("land cell %d of frame %d is %v ± %v", c, f, m, e.Sigma[c])
				}
			case s.observed(f, c) && m != s.Frames[f].Values[c]:
				t.Fatalf("cell %d of frame %d was observed as %v and came out as %v", c, f, s.Frames[f].Values[c], m)
			case !(e.Sigma[c] > 0) || m != m:
				t.Fatalf("sea cell %d of frame %d is %v ± %v", c, f, m, e.Sigma[c])
			}
		}
	}
	for k := range modes.Count {
		for c, v := range modes.Spatial[k] {
			if (v != v) == s.sea(c) {
				t.Fatalf("mode %d is %v at cell %d", k, v, c)
			}
		}
	}
}

func TestValuesOnLandDoNotReachDINEOF(t *testing.T) {
	s := coast(cloudy(30, 34, 12, 5))
	before, err := DefaultDINEOF().Fill(s, 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	dirty := clone(s)
	for f := range dirty.Frames {
		for c := range dirty.Frames[f].Values {
			if !s.sea(c) {
				dirty.Frames[f].Values[c] = 1e6
			} else if !s.observed(f, c) {
				dirty.Frames[f].Values[c] = float32(math.Inf(1))
			}
		}
	}
	after, err := DefaultDINEOF().Fill(dirty, 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !same(before, after) {
		t.Error("a value on land, or an infinity, changed the estimate")
	}
}

func TestFillIsTheFrameOfFillAll(t *testing.T) {
	s := cloudy(24, 24, 10, 6)
	d := DefaultDINEOF()
	all, _, err := d.fillAll(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, err := d.Fill(s, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !same(one, all[4]) {
		t.Error("Fill and fillAll differ")
	}
}

func TestDINEOFIsTheSameOnAnyNumberOfWorkers(t *testing.T) {
	s, _ := lowRank(28, 20, 0.2, 7)
	d := DefaultDINEOF()
	d.Workers, d.MaxIterations = 1, 10
	first, modes, err := d.fillAll(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{2, 5} {
		d.Workers = workers
		all, other, err := d.fillAll(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(modes, other) {
			t.Errorf("modes differ on %d workers", workers)
		}
		for f := range all {
			if !same(all[f], first[f]) {
				t.Fatalf("frame %d differs on %d workers", f, workers)
			}
		}
	}
}

// Without gaps an expansion must be the truncated singular value
// decomposition, whose parts are known.
func TestModesOfAGaplessSeriesAreItsSingularVectors(t *testing.T) {
	const side, frames = 12, 20
	s := cloudy(side, side, frames, 8)
	for f := range s.Frames {
		for c := range s.Frames[f].Values {
			i, j := float64(c/side)-5.5, float64(c%side)-5.5
			s.Frames[f].Values[c] = float32(3*math.Cos(2*math.Pi*float64(f)/frames)*i + math.Sin(2*math.Pi*float64(f)/frames)*j)
		}
	}
	d := DefaultDINEOF()
	d.FilterDays, d.Tolerance = 0, 1e-9
	bg := newBackground(s, smoothCells*stepKM(s.Grid))
	f := newFactors(newRecord(s, bg), nil).grown(2)
	f.converge(d)
	for row, c := range f.rec.cells {
		for frame := range frames {
			want := float64(s.Frames[frame].Values[c] - bg.mean[c])
			if math.Abs(f.at(row, frame)-want) > 1e-4 {
				t.Fatalf("cell %d, frame %d: %v, want %v", c, frame, f.at(row, frame), want)
			}
		}
	}
	// Σ (3 i cos)² over cells and frames is 9 · 20/2 · 12 · Σ i²; the second mode has a ninth of it.
	e := &expansion{series: s, bg: bg, factors: f}
	m := e.modes()
	if math.Abs(m.Explained[0]-0.9) > 1e-3 || math.Abs(m.Explained[1]-0.1) > 1e-3 {
		t.Errorf("modes explain %v, want 0.9 and 0.1", m.Explained)
	}
}

func TestFilterCarriesAmplitudesAcrossEmptyFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("many iterations: left to the full run")
	}
	s, truth := lowRank(28, 44, 0.2, 9)
	empty := 22
	s.Frames[empty].Values = gappy(s.Grid.Len())
	miss := func(days float64) float64 {
		d := DefaultDINEOF()
		d.FilterDays, d.MaxIterations, d.MaxModes = days, 30, 5
		e, err := d.Fill(s, empty, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for c, m := range e.Mean {
			sum += math.Pow(float64(m-truth[empty][c]), 2)
		}
		return math.Sqrt(sum / float64(len(e.Mean)))
	}
	with, without := miss(DefaultDINEOF().FilterDays), miss(0)
	t.Logf("RMSE of an empty frame: %.3f with the filter, %.3f without", with, without)
	if with > 0.5*without {
		t.Errorf("the filter leaves %.3f of %.3f", with, without)
	}
}

func TestSigmaIsLargerWhereAFrameSawLess(t *testing.T) {
	s, _ := lowRank(28, 44, 0.2, 10)
	s.Frames[22].Values = gappy(s.Grid.Len())
	d := DefaultDINEOF()
	d.MaxIterations = 30
	all, _, err := d.fillAll(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	mean := func(f int) float64 {
		var in []float32
		for c, v := range all[f].Sigma {
			if !s.observed(f, c) {
				in = append(in, v)
			}
		}
		return field.Summarise(in).Mean
	}
	if empty, seen := mean(22), mean(10); empty < 2*seen {
		t.Errorf("sigma is %.3f in an empty frame and %.3f beside observations", empty, seen)
	}
}

func TestHeldOutObservationsAreClouds(t *testing.T) {
	s := cloudy(40, 40, 30, 11)
	r := newRecord(s, newBackground(s, 20))
	d := DefaultDINEOF()
	kept, held := r.holdOut(s, d)
	if len(kept.value)+len(held) != len(r.value) {
		t.Fatalf("%d kept and %d held of %d", len(kept.value), len(held), len(r.value))
	}
	if share := float64(len(held)) / float64(len(r.value)); share < d.HoldOut || share > 3*d.HoldOut {
		t.Errorf("%.3f of the observations were held out, want a little more than %.3f", share, d.HoldOut)
	}
	at := map[observation]bool{}
	for _, h := range held {
		at[observation{h.frame, r.cells[h.row]}] = true
	}
	beside := 0
	for p := range at {
		if at[observation{p.frame, p.cell + 1}] || at[observation{p.frame, p.cell - 1}] {
			beside++
		}
	}
	if share := float64(beside) / float64(len(at)); share < 0.9 {
		t.Errorf("only %.2f of the held-out cells have one beside them", share)
	}
}

func TestSeriesWithoutGapsHoldsOutSingleCells(t *testing.T) {
	s := cloudy(20, 20, 8, 12)
	for f := range s.Frames {
		s.Frames[f].Values = smoothNoise(20, 20, 3, rand.New(rand.NewPCG(uint64(f), 0)))
	}
	r := newRecord(s, newBackground(s, 20))
	kept, held := r.holdOut(s, DefaultDINEOF())
	if want := 96; len(held) != want || len(kept.value) != 3200-want { // 3 %
		t.Errorf("%d cells held out and %d kept, want %d of 3200", len(held), len(kept.value), want)
	}
}

func TestFrameOfAFewCellsDoesNotRunWild(t *testing.T) {
	s, truth := lowRank(28, 44, 0.3, 15)
	sparse := 22
	values := gappy(s.Grid.Len())
	for c := 400; c < 408; c++ {
		values[c] = truth[sparse][c] + 3 // eight cells that are all wrong
	}
	s.Frames[sparse].Values = values
	e, err := DefaultDINEOF().Fill(s, sparse, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for c, m := range e.Mean {
		if !s.observed(sparse, c) {
			sum += math.Pow(float64(m-truth[sparse][c]), 2)
		}
	}
	if rmse := math.Sqrt(sum / float64(s.Grid.Len()-8)); rmse > 0.3 {
		t.Errorf("eight wrong cells move the whole frame by %.3f", rmse)
	}
}

func TestConstantSeriesIsFilledWithTheConstantByDINEOF(t *testing.T) {
	s := cloudy(20, 20, 6, 13)
	for f := range s.Frames {
		for c, v := range s.Frames[f].Values {
			if v == v {
				s.Frames[f].Values[c] = 7
			}
		}
	}
	e, err := DefaultDINEOF().Fill(s, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for c, m := range e.Mean {
		if math.Abs(float64(m)-7) > 1e-5 || e.Sigma[c] != e.Sigma[c] {
			t.Fatalf("cell %d is %v ± %v", c, m, e.Sigma[c])
		}
	}
}

func TestDINEOFOfHardlyAnythingIsFinite(t *testing.T) {
	for name, edit := range map[string]func(s *Series){
		"one frame": func(s *Series) { s.Frames = s.Frames[:1] },
		"one observation": func(s *Series) {
			for f := range s.Frames {
				s.Frames[f].Values = gappy(s.Grid.Len())
			}
			s.Frames[1].Values[77] = 2
		},
		"two frames of one time": func(s *Series) {
			s.Frames = s.Frames[:2]
			s.Frames[1].Time = s.Frames[0].Time
		},
	} {
		s := cloudy(16, 16, 4, 14)
		edit(&s)
		all, _, err := DefaultDINEOF().fillAll(s, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, e := range all {
			if slices.ContainsFunc(slices.Concat(e.Mean, e.Sigma), func(v float32) bool { return v-v != 0 }) {
				t.Errorf("%s: not finite", name)
			}
		}
	}
	empty := cloudy(16, 16, 3, 14)
	for f := range empty.Frames {
		empty.Frames[f].Values = gappy(empty.Grid.Len())
	}
	if _, _, err := DefaultDINEOF().fillAll(empty, nil); err != ErrNoObservations { //nolint:errorlint // exactly this one
		t.Errorf("nothing observed: %v", err)
	}
}

func TestValidateNamesEverySettingOfDINEOFThatIsWrong(t *testing.T) {
	d := DINEOF{LeastCoverage: -1, FilterDays: -1, SmoothKM: -1, Workers: -1}
	err := d.Validate()
	for _, part := range []string{"modes", "patience", "held out", "coverage", "filter", "tolerance", "iterations", "smoothing", "workers"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if err := DefaultDINEOF().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

// Cells that were seen twice or thrice are fitted to the last bit by a score of
// modes. That leaves no residual to tell the error by, and no reason for a sigma
// beyond the spread of the variable.
func TestModesThatFitEverythingDoNotMakeSigmaExplode(t *testing.T) {
	const side, frames = 24, 30
	worst := 0.0
	for _, seed := range []uint64{1, 6} {
		s := cloudy(side, side, frames, seed)
		rng := rand.New(rand.NewPCG(seed, 7))
		for f := range s.Frames {
			seen, cloud := smoothNoise(side, side, 6, rng), smoothNoise(side, side, 4, rng)
			for c := range seen {
				if cloud[c] < 1.6 { // about one cell of twenty is seen
					seen[c] = field.NaN()
				}
			}
			s.Frames[f].Values = seen
		}
		d := DefaultDINEOF()
		e, err := d.expand(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, e.scale)
		for f := range frames {
			for c, sigma := range e.estimate(f).Sigma {
				if float64(sigma) > 5 { // values have unit variance
					t.Fatalf("seed %d: sigma of cell %d in frame %d is %.3g, of a variable whose spread is 1; %d modes, factor %.3g", seed, c, f, sigma, e.factors.k, e.scale)
				}
			}
		}
	}
	if worst < 20 {
		t.Errorf("the largest factor on a residual is %.3g: no series here is fitted to the last bit", worst)
	}
}
