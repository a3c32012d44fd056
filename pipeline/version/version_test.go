package version

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// sea returns a simulated series, made once for all tests.
var sea = sync.OnceValues(func() (samples.Series, error) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 140, Seed: 3})
	if err != nil {
		return samples.Series{}, err
	}
	fields := make([]field.Field, world.Days())
	for d := range fields {
		fields[d] = world.Day(d).Seen
	}
	return samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-3})
})

func series(t testing.TB) samples.Series {
	t.Helper()
	s, err := sea()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shortSettings returns settings that take seconds.
func shortSettings() Settings {
	s := DefaultSettings(nn.Tiny, false)
	s.Strategy = "guided" // with every phase
	s.Split = samples.SplitConfig{HeldOut: 0.3, GapDays: 3, Blocks: 2}
	s.Stride = 16
	s.Prior.Side, s.Prior.Stride, s.Prior.Batch = 16, 16, 4
	s.Prior.Step.Steps, s.Prior.Step.WarmupSteps, s.Prior.EvaluateEvery, s.Prior.CheckpointEvery = 12, 2, 6, 3
	s.Prior.EvaluateMasks, s.Prior.Sampling.Batch, s.Prior.Sampling.Steps = 8, 8, 4
	s.Prior.CalibrateMasks = 4 * prior.ReferenceMasks
	s.Guidance.SampleConfig = s.Prior.Sampling
	s.Target = masks.Target{ContextShare: 0.5, Tolerance: 0.2, MaxRoughness: 10}
	s.Pool = partition.PoolConfig{Size: 32, Uses: 16, Batch: 8}
	s.Imputer.Design.Extras.Background, s.Imputer.Design.Extras.Analysis, s.Imputer.Design.Departure = false, false, false
	s.Imputer.Side, s.Imputer.Batch, s.Imputer.Steps, s.Imputer.WarmupSteps, s.Imputer.EMADecay = 16, 8, 60, 5, 0.9
	s.Imputer.LearningRate = 3e-3
	s.ScoreEvery, s.Patience, s.CheckpointEvery = 20, 3, 10
	s.Members = membersOf(s.Imputer, 10)
	s.Reliability = reliabilityOf(s.Imputer, 40)
	s.Reliability.Batch = 16
	// Of hundreds: each is interpolated once where it judges, and often where it tunes.
	s.Judging.Overlays, s.Judging.Choosing, s.Judging.Scoring = 24, 24, 8
	s.Judging.Observed = 0 // a draw of a prior takes a tenth of a second, and there are hundreds
	s.Judging.MemberCases, s.Judging.Members, s.Judging.ODE.Steps, s.Judging.ODE.Jumps = 3, 4, 4, 1
	return s
}

// first is an outcome of an uninterrupted run, made once for all tests.
var first struct {
	sync.Once
	out    Outcome
	phases map[string]bool
}

func firstModel(t *testing.T) Outcome {
	t.Helper()
	req := Request{Series: []samples.Series{series(t)}, Settings: shortSettings(), Backend: enginetest.Open(t)}
	first.Do(func() {
		first.phases = map[string]bool{}
		out, err := Make(t.Context(), req, Hooks{Progress: func(p Progress) { first.phases[p.Phase] = true }})
		if err != nil {
			t.Fatal(err)
		}
		first.out = out
	})
	if first.out.Parts == nil {
		t.Fatal("the first model could not be made")
	}
	return first.out
}

func TestFirstModelIsMadeAndJudged(t *testing.T) {
	out := firstModel(t)
	for _, name := range []Part{PartPrior, PartImputer, PartMembers, PartReliability, PartCalibration, PartScaling, PartEvaluation} {
		if len(out.Parts[name]) == 0 {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{PhasePrior, PhaseStrength, PhaseImputer, PhaseMembers, PhaseReliability, PhaseCalibration, PhaseGate} {
		if !first.phases[name] {
			t.Errorf("phase %s told nothing", name)
		}
	}
	r := out.Evaluation.Ruling
	if r == nil || r.Champion != nil || r.Challenger.Verdict.Summary.MSE == nil || r.Challenger.LatencySeconds <= 0 {
		t.Fatalf("ruling is %+v", r)
	}
	// The networks learned something: the mean map alone scores the variance.
	if mse := *r.Challenger.Verdict.Summary.MSE; mse > 1 {
		t.Errorf("MSE %.3f, the mean map has about 1", mse)
	}
	if share, _ := r.Challenger.Verdict.Summary.Gaussian.Covers(0.9); share < 0.8 || share > 0.97 {
		t.Errorf("calibrated 90 %% intervals cover %.3f of days that did not calibrate them", share)
	}
	if m := out.Evaluation.Members; m == nil || m.Summary.Ensemble == nil {
		t.Error("members were not judged")
	}
	// Both means were scored on the days that judge, and the verdict is about the
	// one that serves.
	means := out.Evaluation.Means
	if means == nil || means.Cells == 0 || means.OneStep == means.Members {
		t.Fatalf("the two means scored %+v", means)
	}
	serves := map[impute.Centre]float64{impute.OneStep: means.OneStep, impute.MembersMean: means.Members}[means.Serves]
	if mse := *out.Evaluation.Members.Summary.MSE; !(math.Abs(mse-serves) < 1e-4*serves) {
		t.Errorf("the judged ensemble has an MSE of %g, the mean that serves, %q, %g", mse, means.Serves, serves)
	}
	var c parts.Calibration
	if err := json.Unmarshal(out.Parts[PartCalibration], &c); err != nil || c.Members.Centre != means.Serves {
		t.Errorf("the calibration says %+v, %v, and %q serves", c.Members, err, means.Serves)
	}
	// Members are drawn for three overlays only; how far they stand apart is a matter
	// of every error of the mean that serves.
	if means.Serves == impute.OneStep && c.Members.Cases != c.Cases {
		t.Errorf("the spread of members is calibrated on %d cells, sigma on %d", c.Members.Cases, c.Cases)
	}
	ensemble, gaussian := out.Evaluation.Members.Summary.Ensemble, out.Evaluation.Members.Summary.Gaussian
	if gaussian == nil || math.Abs(*ensemble.SpreadSkill-*gaussian.SpreadSkill) > 1e-4 {
		t.Errorf("the sigma that is published has %+v, the members %+v", gaussian, ensemble)
	}
	if q := out.Evaluation.Reliability; q == nil || !q.Kept || !(q.Brier < q.Constant) || q.Cells < 1000 {
		t.Errorf("the classifier of P(query) scored %+v", q)
	}
	if b := out.Evaluation.Prior.Bits; !(b.Mean > 0 && b.Std > 0 && b.Masks > 0) {
		t.Errorf("held-out masks cost %+v", b)
	}
}

// The published method is judged as it is printed: a search for the strength of
// guidance would make another one of it.
func TestThePaperPresetKeepsItsStrength(t *testing.T) {
	s := shortSettings().WithPaper()
	s.Guidance.Batch = 8
	s.Imputer.Steps, s.Reliability.Steps, s.Prior.CalibrateMasks = 6, 0, 0
	s.Judging.Overlays, s.Judging.Choosing = 8, 8
	asked := s.Guidance
	out, err := Make(t.Context(), Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t)}, Hooks{Progress: func(p Progress) {
		if p.Phase == PhaseStrength && p.Steps > 0 {
			t.Error("the strength was searched for")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Evaluation.Strength; got == nil || got.Weight != 140 || asked.Rho != 0.8 || asked.Anchor != prior.AnchorPixel || asked.Steps != 20 || asked.Spacing != prior.Even {
		t.Errorf("guided by %+v with strength %+v", asked, got)
	}
}

// A classifier of P(query) that has learned nothing would be published in place
// of the map, which knows more.
func TestAClassifierThatLearnedNothingIsLeftOut(t *testing.T) {
	s := shortSettings()
	s.Strategy, s.Members.Steps, s.Imputer.Steps, s.Reliability.Steps = "empirical", 0, 6, 1
	req := Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t), Folder: t.TempDir()}
	for range 2 { // the second goes on from the checkpoints of the first
		out, err := Make(t.Context(), req, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		if q := out.Evaluation.Reliability; q == nil || q.Kept || q.Brier < 0.99*q.Constant || q.Cells == 0 {
			t.Errorf("the classifier scored %+v", q)
		}
		if out.Parts[PartReliability] != nil || len(out.Queries) == 0 {
			t.Error("a classifier that learned nothing is in the version, or the map is not")
		}
		for _, n := range out.Networks {
			if n.Part == PartReliability {
				t.Error("a network is described that is not in the version")
			}
		}
	}
}

// A starter fills where there is no champion, so it must be beaten; that it is
// small and quick is nothing that a larger network could be blamed for.
func TestAStarterIsToBeBeatenWhateverItsSpeed(t *testing.T) {
	s := shortSettings()
	s.Strategy, s.Members.Steps, s.Reliability.Steps, s.Imputer.Steps = "empirical", 0, 0, 6
	req := Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t), Starter: firstModel(t).Parts}
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	r := out.Evaluation.Ruling
	if r.Champion == nil || r.MSE == nil || r.Champion.LatencySeconds != 0 {
		t.Fatalf("the starter was not asked, or timed: %+v", r)
	}
	if better := r.MSE.Interval.High < 0; out.Decision.Promote && !better {
		t.Errorf("promoted though it is not better than the starter: %q", out.Decision.Reasons)
	}
	for _, reason := range r.Decision.Reasons {
		if strings.Contains(reason, "one map takes") || strings.Contains(reason, "no champion") {
			t.Errorf("the ruling says %q", reason)
		}
	}
}

func TestFineTuneTakesThePriorAndIsJudgedAgainstItsParent(t *testing.T) {
	parent := firstModel(t)
	s := shortSettings()
	s.Only, s.Members.Steps, s.Reliability.Steps = "", 0, 0
	s.Imputer.Steps = 10
	if err := s.From(parent.Parts); err != nil {
		t.Fatal(err)
	}
	req := Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t), Parent: parent.Parts, Champion: parent.Parts}
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if p := out.Evaluation.Prior; !p.Taken || p.Drift == nil || math.Abs(*p.Drift) > 1e-6 {
		t.Errorf("prior %+v, want that of the parent without drift", p)
	}
	if !bytes.Equal(out.Parts[PartPrior], parent.Parts[PartPrior]) {
		t.Error("the prior is not that of the parent")
	}
	if bytes.Equal(out.Parts[PartImputer], parent.Parts[PartImputer]) {
		t.Error("the imputer learned nothing")
	}
	if out.Parts[PartMembers] != nil {
		t.Error("members of the parent's imputer went along with another one")
	}
	r := out.Evaluation.Ruling
	if r.Champion == nil || r.MSE == nil {
		t.Fatalf("ruling is %+v", r)
	}
	if a, b := *r.Champion.Verdict.Summary.MSE, *parent.Evaluation.Ruling.Challenger.Verdict.Summary.MSE; a != b {
		t.Errorf("the parent scores %v as champion and scored %v when it was made", a, b)
	}
}

func TestAPriorIsRefittedFromThatOfTheParent(t *testing.T) {
	parent := firstModel(t)
	refit := func(from Parts, rate float64) Parts {
		t.Helper()
		s := shortSettings()
		s.RefitPrior, s.Prior.Step.LearningRate, s.Prior.CalibrateMasks = true, rate, 0
		r, err := begin(Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t), Parent: from}, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		if err := r.makePrior(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.eval.Prior.Taken {
			t.Fatal("the prior was taken, not refitted")
		}
		return r.parts
	}
	weights := func(f Parts) []float32 {
		w, err := weightsOf(f[PartPrior])
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	const barely = 1e-7
	before, tuned, scratch := weights(parent.Parts), weights(refit(parent.Parts, barely)), weights(refit(nil, barely))
	if near, far := largestDifference(before, tuned), largestDifference(before, scratch); near == 0 || near > far/100 {
		t.Errorf("a refit that hardly moves is %g from the parent's weights, one from scratch %g", near, far)
	}
}

func TestInterruptedRunEndsWithTheSameWeights(t *testing.T) {
	if testing.Short() {
		t.Skip("every interruption compiles again")
	}
	want := firstModel(t)
	req := Request{Series: []samples.Series{series(t)}, Settings: shortSettings(), Backend: enginetest.Open(t), Folder: t.TempDir()}
	// One interruption in each phase that trains, and one between phases.
	for _, at := range []struct {
		phase string
		step  int
	}{{PhasePrior, 6}, {PhaseStrength, 1}, {PhaseImputer, 33}, {PhaseMembers, 5}, {PhaseCalibration, 9}} {
		ctx, stop := context.WithCancel(t.Context())
		_, err := Make(ctx, req, Hooks{Progress: func(p Progress) {
			if p.Phase == at.phase && p.Step >= at.step {
				stop()
			}
		}})
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted in phase %s: error %v", at.phase, err)
		}
	}
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []Part{PartPrior, PartImputer, PartMembers, PartReliability, PartCalibration, PartScaling} {
		if !bytes.Equal(out.Parts[name], want.Parts[name]) {
			t.Errorf("%s differs from that of an uninterrupted run", name)
		}
	}
	if !slices.Equal(out.Queries[0].Queried, want.Queries[0].Queried) {
		t.Error("the map of P(query) differs from that of an uninterrupted run")
	}
	again, err := Make(t.Context(), req, Hooks{Progress: func(p Progress) { t.Errorf("a finished run does phase %s again", p.Phase) }})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Parts[PartEvaluation], out.Parts[PartEvaluation]) {
		t.Error("a finished run is judged differently the second time")
	}
	req.Settings.Imputer.LearningRate *= 2
	if _, err := Make(t.Context(), req, Hooks{}); !errors.Is(err, ErrOtherRun) {
		t.Errorf("other settings in the same folder: error %v", err)
	}
}

// An older program kept the state of the prior in another format, under the same
// name.
func TestAJobThatAnOlderProgramLeftHalfDoneGoesOn(t *testing.T) {
	dir := t.TempDir()
	r, err := begin(Request{Series: []samples.Series{series(t)}, Settings: shortSettings(), Backend: enginetest.Open(t), Folder: dir}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	checkpoint := filepath.Join(dir, "prior.ckpt")
	if err := os.WriteFile(checkpoint, []byte(`{"step":4,"worse":0,"distance":0.5,"weights":0}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.makePrior(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.parts[PartPrior], firstModel(t).Parts[PartPrior]) {
		t.Error("the prior is another one than without that file")
	}
	if _, err := os.Stat(checkpoint); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the checkpoint of a prior that is done: %v", err)
	}
}
