package version

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// besideSea returns the simulated sea with a temperature that goes with its truth, by a
// correlation of anomalies of about 0.8, and with that of another sea, which does not.
func besideSea(t *testing.T) samples.Series {
	t.Helper()
	s := series(t)
	truths := func(seed uint64) [][]float32 {
		world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 140, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]float32, world.Days())
		for d := range out {
			values := world.Day(d).Truth.Values
			out[d] = make([]float32, len(values))
			s.Transform.Forward(out[d], values)
		}
		return out
	}
	own, other := truths(3), truths(8)
	s.Covariates = []samples.Covariate{{Name: "sst", Units: "kelvin"}, {Name: "other", Units: "kelvin"}}
	days := make([]samples.Day, len(s.Days))
	first := s.Days[0].Time
	for i, d := range s.Days {
		n := int(math.Round(d.Time.Sub(first).Hours() / 24))
		sst := make([]float32, len(d.Values))
		for c := range sst {
			sst[c] = 290 + 4*(0.8*own[n][c]+0.6*other[(n+40)%len(other)][c])
		}
		d.Covariates = [][]float32{sst, other[n]}
		days[i] = d
	}
	s.Days = days
	return s
}

// quickSettings are those of a network that fills a day by itself, in seconds.
func quickSettings() Settings {
	s := shortSettings()
	s.Strategy, s.Judging.Mode = "empirical", impute.Single
	s.Imputer.Steps, s.Patience = 160, 0
	s.Members.Steps, s.Reliability.Steps, s.Judging.Overlays = 0, 0, 12
	return s
}

// A temperature that goes with the truth lowers the error of the network and is used;
// that of another sea is noise, and is not.
func TestANetworkUsesTheCovariatesThatPay(t *testing.T) {
	s := besideSea(t)
	settings := quickSettings().WithCovariates(s.Covariates)
	req := Request{Series: []samples.Series{s}, Settings: settings, Backend: enginetest.Open(t)}
	// At the gate each version sees its own channels, whatever the other's are.
	req.Champion = otherChampion(t, quickSettings().Imputer.Design)
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	kept := out.Evaluation.Covariates
	if kept == nil || len(kept.Judged) != 2 || !kept.Judged[0].Used || kept.Judged[1].Used || kept.Gain.Share < 0.1 {
		t.Fatalf("of covariates it says %+v", kept)
	}
	t.Logf("%v; %v", kept.Judged[0], kept.Judged[1])
	if by := out.Evaluation.Ruling.InterpolationBy; by.Covariates.Names() != "sst" {
		t.Errorf("it was judged against %v", by)
	}
	scaling, err := parts.DecodeScaling(out.Parts[PartScaling])
	if err != nil || len(scaling.Covariates) != 2 || !scaling.Covariates[0].In() || scaling.Covariates[1].In() {
		t.Errorf("the constants of the version are %+v, %v", scaling.Covariates, err)
	}
	if said := strings.Join(out.Decision.Reasons, "\n"); !strings.Contains(said, "covariate sst is used") || !strings.Contains(said, "covariate other is not used") {
		t.Errorf("the reasons are\n%s", said)
	}
	brings(t, s, settings, out.Parts)
}

// brings checks what is said of the covariates of a version on days that judge.
func brings(t *testing.T, s samples.Series, settings Settings, files Parts) {
	t.Helper()
	_, held, err := s.Split(settings.Split)
	if err != nil {
		t.Fatal(err)
	}
	cfg := samples.DefaultOverlays(settings.Imputer.Side)
	cfg.Count = 100
	overlays, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	exam, err := evaluate.NewExam(held, impute.Surroundings{Days: held}, overlays, settings.Judging.Mode)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := impute.NewRunner(enginetest.Open(t), settings.Runner)
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	c, err := LoadCandidate(files, runner, held)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Brings(t.Context(), exam, held)
	if err != nil {
		t.Fatal(err)
	}
	sst, other := got.Judged[0], got.Judged[1]
	t.Logf("on days that judge %v; %v", sst, other)
	if !sst.Used || !(sst.Gain.Interval.Low > 0) || other.Used || other.Gain == nil || !(other.Gain.Share < sst.Gain.Share/2) {
		t.Errorf("it says %v; %v", sst, other)
	}
	// The gain is the version's own error without the covariate against that with it.
	mse := func(c *Candidate) float64 {
		v, err := exam.Judge(t.Context(), c.Method("version", exam, held), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return *v.Summary.MSE
	}
	with := mse(c)
	c.channels = nil
	if saved := 1 - with/mse(c); math.Abs(saved-sst.Gain.Share) > 1e-3 || math.Abs(saved-got.Gain.Share) > 1e-3 {
		t.Errorf("it saves %.4f, and is said to save %v", saved, sst.Gain)
	}
}

// A version departs from the analysis that it learned with, also on days of which
// covariates explain a part.
func TestTheAnalysisOfAVersionHasNoDrift(t *testing.T) {
	s := series(t)
	drifting := s
	drifting.Days = slices.Clone(s.Days)
	for i, d := range s.Days {
		drifting.Days[i].Drift = make([]float32, len(d.Values))
		for c := range d.Values {
			drifting.Days[i].Drift[c] = float32(math.Sin(float64(c + 5*i)))
		}
	}
	analyse := func(s samples.Series) ([]float32, []float32) {
		_, held, err := s.Split(shortSettings().Split)
		if err != nil {
			t.Fatal(err)
		}
		c, err := LoadCandidate(firstModel(t).Parts, nil, held)
		if err != nil {
			t.Fatal(err)
		}
		ref := held.Refs(16, 16, 40)[0]
		visible := make([]bool, ref.Window.Len())
		for i := range visible {
			visible[i] = i%3 == 0
		}
		own, _, err := c.analyser.Analyse(ref, visible, impute.Past)
		if err != nil {
			t.Fatal(err)
		}
		served, _, err := analyserOf(held, impute.ServingOI, c.constants).Analyse(ref, visible, impute.Past)
		if err != nil {
			t.Fatal(err)
		}
		return own, served
	}
	plain, _ := analyse(s)
	own, served := analyse(drifting)
	if !slices.Equal(own, plain) || slices.Equal(served, plain) {
		t.Error("the drift is in the analysis of the version, or in none")
	}
}

// otherChampion returns a version that nobody trained, whose network sees a covariate that
// the days do not have.
func otherChampion(t *testing.T, d impute.Design) Parts {
	t.Helper()
	d = d.With([]string{"wind"}, nil)
	weights, err := nn.New(d.Network())
	if err != nil {
		t.Fatal(err)
	}
	m, err := impute.NewModel(nil, d, learn.Config{Side: 16}, weights.Layout().Init(1))
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Save(16)
	if err != nil {
		t.Fatal(err)
	}
	return Parts{PartImputer: data}
}

// What networks see of a covariate comes from days that learn alone: a change of any
// other day changes no constant.
func TestConstantsOfCovariatesComeFromDaysThatLearn(t *testing.T) {
	s := besideSea(t)
	split := shortSettings().Split
	train, _, err := s.Split(split)
	if err != nil {
		t.Fatal(err)
	}
	want := train.LearnChannels()
	learned := map[time.Time]bool{}
	for i := range train.Days() {
		learned[train.Time(i)] = true
	}
	other := s
	other.Days = slices.Clone(s.Days)
	changed := 0
	for i, d := range other.Days {
		if !learned[d.Time] {
			other.Days[i].Covariates = [][]float32{slices.Repeat([]float32{999}, len(d.Values)), nil}
			changed++
		}
	}
	if train, _, err = other.Split(split); err != nil || changed == 0 {
		t.Fatal(changed, err)
	}
	if got := train.LearnChannels(); !reflect.DeepEqual(got, want) || !want[0].In() {
		t.Error("constants depend on days that choose or judge")
	}
}
