package version

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// begun returns a run on a series that has trained nothing yet, with so many overlays
// that choose.
func begun(t *testing.T, s samples.Series, choosing int) *run {
	t.Helper()
	settings := shortSettings()
	settings.Judging.Overlays, settings.Judging.Choosing = 60, choosing // nothing is judged on the former
	r, err := begin(Request{Series: []samples.Series{s}, Settings: settings, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// revalued returns a series with other values, under the same gaps, on the days that
// overlays are of.
func revalued(s samples.Series, overlays []samples.Overlay) samples.Series {
	of := map[int64]bool{}
	for _, o := range overlays {
		of[o.Time.Unix()] = true
	}
	s.Days = slices.Clone(s.Days)
	for i, d := range s.Days {
		if of[d.Time.Unix()] {
			s.Days[i].Values = slices.Clone(d.Values)
			for cell := range d.Values {
				s.Days[i].Values[cell] += float32(math.Sin(float64(cell)))
			}
		}
	}
	return s
}

// A parent departs from an analysis with constants of its own: a fine-tune that
// took the defaults again, where no gain shows on a few days, would begin from
// weights that know another analysis.
func TestAFineTuneKeepsTheConstantsOfItsParent(t *testing.T) {
	parent, err := parts.DecodeScaling(firstModel(t).Parts[PartScaling])
	if err != nil {
		t.Fatal(err)
	}
	fresh := begun(t, series(t), 24)
	tuned, err := fresh.tunedConstants(t.Context(), fresh.train)
	if err != nil {
		t.Fatal(err)
	}
	if tuned[0] == defaultConstants(fresh.chooseSide)[0] {
		t.Fatal("the tuned constants are the defaults: the test shows nothing")
	}
	parent.Constants = &tuned[0] // no better than what tuning finds, and so not beyond chance
	data, err := json.Marshal(parent)
	if err != nil {
		t.Fatal(err)
	}
	r := begun(t, series(t), 24)
	r.req.Parent = Parts{PartScaling: data}
	n, err := r.interpolation(t.Context())
	if err != nil || !n.Tuned || n.Constants[0] != tuned[0] {
		t.Errorf("the constants are %+v (tuned: %v), %v, want those of the parent, %+v", n.Constants, n.Tuned, err, tuned[0])
	}
	other := begun(t, series(t), 24)
	parent.Lat[0]++
	if data, err = json.Marshal(parent); err != nil {
		t.Fatal(err)
	}
	other.req.Parent = Parts{PartScaling: data}
	if got := other.parentConstants(); got != nil {
		t.Errorf("a parent of another grid hands its constants on: %+v", got)
	}
}

// What interpolation is set to comes from the days that networks learn from and
// that choose. Had a day that judges any part in it, other values there would
// change it.
func TestInterpolationIsSetByDaysThatDoNotJudge(t *testing.T) {
	s := series(t)
	r := begun(t, s, 12)
	want, err := r.interpolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scored := 0
	for _, o := range r.choosing {
		for _, hidden := range o.Scored {
			if hidden {
				scored++
			}
		}
	}
	if want.Calibration.Cases != scored || scored == 0 {
		t.Errorf("calibrated on %d cells, the overlays that choose hide %d", want.Calibration.Cases, scored)
	}
	if want.Tuning == nil {
		t.Error("nothing was tuned")
	}
	got, err := begun(t, revalued(s, r.judging), 12).interpolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, want), asJSON(t, got); a != b {
		t.Errorf("other values on the days that judge change it from\n%s to\n%s", a, b)
	}
	other, err := begun(t, revalued(s, r.choosing), 12).interpolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if asJSON(t, other) == asJSON(t, want) {
		t.Error("other values on the days that choose change nothing")
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// waves returns a sea whose anomalies are alike over its whole width and for one
// day only, which default constants, made for slow eddies, get wrong.
func waves(t *testing.T) samples.Series {
	t.Helper()
	s := series(t)
	out := samples.Series{Grid: s.Grid, Sea: s.Sea}
	for d, day := range s.Days {
		values := make([]float32, len(day.Values))
		for i, v := range day.Values {
			values[i] = field.NaN()
			if v == v { // under the gaps of the simulated sea
				x := float64(i % s.Grid.Width())
				values[i] = float32(math.Sin(2.399*float64(d)+x/40) + 0.01*math.Sin(float64(7*i+13*d)))
			}
		}
		out.Days = append(out.Days, samples.Day{Time: day.Time, Values: values})
	}
	return out
}

// wavesTuned is the interpolation of the waves, found once for all tests.
var wavesTuned struct {
	sync.Once
	n   Interpolation
	err error
}

// begunOnWaves returns a run on the waves and the interpolation that it finds there. It
// takes sixty overlays to find it beyond chance.
func begunOnWaves(t *testing.T) (*run, Interpolation) {
	t.Helper()
	r := begun(t, waves(t), 60)
	wavesTuned.Do(func() { wavesTuned.n, wavesTuned.err = r.interpolation(t.Context()) })
	if wavesTuned.err != nil {
		t.Fatal(wavesTuned.err)
	}
	r.analysis = &wavesTuned.n
	return r, wavesTuned.n
}

// Tuned constants serve where they win on the days that choose, and win on those
// that judge.
func TestInterpolationIsTunedWhereThatPays(t *testing.T) {
	r, tuned := begunOnWaves(t)
	if !tuned.Tuned || tuned.Tuning.Interval.High >= 0 || slices.Equal(tuned.Constants, defaultConstants(r.train)) {
		t.Fatalf("not tuned: %v, %+v", tuned, tuned.Constants)
	}
	exam, _ := anExamOf(t, waves(t), 20)
	challenger := answering(exam, fading(0.01))
	with, err := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12, Interpolation: &tuned}.Decide(t.Context(), exam, challenger, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12}.Decide(t.Context(), exam, challenger, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := *with.Interpolation.Verdict.Summary.MSE, *without.Interpolation.Verdict.Summary.MSE; a > 0.9*b {
		t.Errorf("the gate judges interpolation with MSE %.4g, with default constants %.4g", a, b)
	}
}

// A challenger is compared with the CRPS of an interpolation whose sigma is as
// well calibrated as its own.
func TestInterpolationIsCalibratedForTheGate(t *testing.T) {
	exam, held := anExamOf(t, series(t), 20)
	challenger := answering(exam, fading(0.4))
	decide := func(factor float32) Ruling {
		n := Interpolation{Constants: defaultConstants(held), Calibration: impute.Calibration{Factors: [][]float32{{factor}}, Cases: 1}}
		r, err := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12, Interpolation: &n}.Decide(t.Context(), exam, challenger, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain, wild := decide(1), decide(30)
	if *plain.Interpolation.Verdict.Summary.MSE != *wild.Interpolation.Verdict.Summary.MSE {
		t.Error("a calibration of sigma changes the MSE")
	}
	if a, b := *plain.OverInterpolationCRPS, *wild.OverInterpolationCRPS; !(b.Mean < a.Mean-0.5) {
		t.Errorf("against a sigma that is 30 times as large the CRPS changes by %.3f, against its own by %.3f", b.Mean, a.Mean)
	}
	if said := strings.Join(plain.Decision.Reasons, "\n"); !strings.Contains(said, "default constants") || !strings.Contains(said, "CRPS than optimal interpolation") || plain.InterpolationBy == nil {
		t.Errorf("the ruling does not say what was judged: %s", said)
	}
	worse := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12}
	unsure := answering(exam, fading(0.4))
	fill := unsure.Method.Fill
	unsure.Method.Fill = func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		answers, err := fill(ctx, cases)
		for _, a := range answers {
			for k := range a.Sigma {
				a.Sigma[k] *= 100
			}
		}
		return answers, err
	}
	r, err := worse.Decide(t.Context(), exam, unsure, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if against := strings.Join(Against(r.Decision), "\n"); !strings.Contains(against, "CRPS than optimal interpolation") {
		t.Errorf("a challenger with a useless sigma and a better mean is refused for %q, want its CRPS among it", against)
	}
}

// The constants that win on the days that choose are those of the analyses that a
// network learns from and is judged with, and the version keeps them for serving.
func TestNetworksDepartFromTheTunedAnalysis(t *testing.T) {
	r, tuned := begunOnWaves(t)
	r.s.Imputer.Design.Extras.Analysis = true
	if err := r.makeSurroundings(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !tuned.Tuned {
		t.Fatal("nothing was tuned: the test shows nothing")
	}
	for name, a := range map[string]impute.Analyser{"learn": r.material.Analyser, "choose": r.aroundChoose.Analyser, "judge": r.aroundJudge.Analyser} {
		for _, oi := range a.(placeOI).settings {
			if got := constantsOf(oi); got != tuned.Constants[0] {
				t.Errorf("days that %s are analysed with %+v, want %+v", name, got, tuned.Constants[0])
			}
		}
	}
}

// A champion is judged with the analysis that it serves with, whatever the exam has.
func TestACandidateOfTheDatasetHasItsOwnAnalysis(t *testing.T) {
	good := firstModel(t)
	exam, held := anExam(t)
	runner, err := impute.NewRunner(enginetest.Open(t), impute.RunnerConfig{Batch: 1, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	load := func(c *parts.Constants) *Candidate {
		files := maps.Clone(good.Parts)
		s := *good.Scaling
		s.Constants = c
		if files[PartScaling], err = json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		candidate, err := LoadCandidate(files, runner, held)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(candidate.Close)
		// The model of the tests sees no analysis; one that does takes its place.
		candidate.model = imputetest.BusyModel(t, runner, impute.Design{
			Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true, Extras: impute.Extras{Last: true, Analysis: true},
		})
		return candidate
	}
	o := exam.Overlay(0)
	given := impute.Inputs{
		Height: o.Window.Height, Width: o.Window.Width, Visible: o.Visible, Values: o.Values, Sea: o.Sea,
		Analysis: make([]float32, len(o.Values)), AnalysisSigma: make([]float32, len(o.Values)),
	}
	analysis := func(c *Candidate) []float32 {
		inputs, _, err := c.inputs(t.Context(), []evaluate.Case{{Inputs: given}}, exam, held)
		if err != nil {
			t.Fatal(err)
		}
		return inputs[0].Analysis
	}
	short := parts.Constants{LengthKM: 5, Days: 0.5, Nugget: 0.5}
	plain, other := load(nil), load(&short)
	if a, b := analysis(plain), analysis(other); slices.Equal(a, b) || slices.Equal(a, given.Analysis) {
		t.Error("a candidate with other constants has the same analysis, or that of the exam")
	}
	other.asked(plain.constants)
	if !slices.Equal(analysis(other), analysis(load(&short))) {
		t.Error("an exam with other constants takes a candidate's own analysis from it")
	}
	other.asked(short)
	if want := other.rescaling(held, o.Ref).inputs(given).Analysis; !slices.Equal(analysis(other), want) {
		t.Error("an exam with its constants is not taken at its word")
	}
}
