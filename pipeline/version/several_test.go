package version

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// otherSea is a second simulated sea on another grid, four times as productive
// and half as far from day to day.
var otherSea = sync.OnceValues(func() (samples.Series, error) {
	world, err := simulate.New(simulate.Config{Product: "bal-nano", Height: 40, Width: 24, Days: 110, Seed: 9})
	if err != nil {
		return samples.Series{}, err
	}
	fields := make([]field.Field, world.Days())
	for d := range fields {
		fields[d] = world.Day(d).Seen
		for i, v := range fields[d].Values {
			fields[d].Values[i] = 4 * float32(math.Sqrt(float64(v)))
		}
	}
	return samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-3})
})

// twoSeas returns both.
func twoSeas(t testing.TB) []samples.Series {
	t.Helper()
	other, err := otherSea()
	if err != nil {
		t.Fatal(err)
	}
	return []samples.Series{series(t), other}
}

// together returns settings of a short training of both seas.
func together() Settings {
	s := shortSettings()
	s.Strategy = "empirical"
	s.Imputer.Design.Extras.Analysis, s.Imputer.Design.Departure = true, true
	s.Members = membersOf(s.Imputer, 6)
	s.Judging.Overlays, s.Judging.Choosing, s.Judging.Scoring, s.Judging.Observed = 12, 12, 6, 1
	s.Imputer.Steps, s.Reliability.Steps = 12, 4
	return s
}

func TestOneNetworkLearnsFromTwoSeas(t *testing.T) {
	seas, s := twoSeas(t), together()
	r, err := begin(Request{Series: seas, Settings: s, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for number, p := range r.train.Places() {
		alone, _, err := seas[number].Split(s.Split)
		if err != nil {
			t.Fatal(err)
		}
		if p.Scaling.Std != alone.Scaling().Std || !slices.Equal(p.Scaling.Mean, alone.Scaling().Mean) {
			t.Errorf("sea %d is not scaled by its own days", number)
		}
	}
	// Batches hold patches of both seas, as often as they have patches.
	source, err := learn.Fresh(r.train, r.refs, partition.Empirical(r.train), 1)
	if err != nil {
		t.Fatal(err)
	}
	const examples = 800
	shown, have := [2]float64{}, [2]float64{}
	for n := range uint64(examples) {
		l, err := source.Example(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		shown[r.train.Cut(l.Ref).Place]++
	}
	for _, ref := range r.refs {
		have[r.train.Cut(ref).Place]++
	}
	share, want := shown[1]/examples, have[1]/(have[0]+have[1])
	if noise := 4 * math.Sqrt(want*(1-want)/examples); want == 0 || math.Abs(share-want) > noise {
		t.Errorf("the second sea is %.3f of the examples and %.3f of the patches", share, want)
	}
	// Both judge, too.
	for name, overlays := range map[string][]samples.Overlay{"choose": r.choosing, "judge": r.judging} {
		of := map[int]int{}
		for _, o := range overlays {
			of[o.Place]++
		}
		if of[0] == 0 || of[1] == 0 {
			t.Errorf("overlays that %s are %v of the seas", name, of)
		}
	}
}

func TestHeldOutDaysOfEverySeaAreKeptOut(t *testing.T) {
	if testing.Short() {
		t.Skip("trains five times")
	}
	s := together()
	s.Imputer.Steps, s.Members.Steps, s.Reliability.Steps, s.Patience = 6, 0, 0, 0
	s.Judging.Overlays, s.Judging.Choosing, s.Judging.Scoring = 8, 8, 4 // none of them reaches a weight
	s.Imputer.Design.Extras.Analysis, s.Imputer.Design.Departure = false, false
	weights := func(seas []samples.Series) []byte {
		out, err := Make(t.Context(), Request{Series: seas, Settings: s, Backend: enginetest.Open(t)}, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		return out.Parts[PartImputer]
	}
	clean := weights(twoSeas(t))
	for number := range twoSeas(t) {
		for _, role := range []samples.Role{samples.Choose, samples.Judge} {
			seas := twoSeas(t)
			seas[number] = poison(t, seas[number], s.Split, role)
			if !bytes.Equal(weights(seas), clean) {
				t.Errorf("the weights depend on days of sea %d that %s", number, role)
			}
		}
	}
}

func TestAVersionOfTwoSeasServesAThird(t *testing.T) {
	if testing.Short() {
		t.Skip("trains twice")
	}
	s := together()
	s.Members.Design.Size = nn.Small // apart from that of the imputer
	out, err := Make(t.Context(), Request{Series: twoSeas(t), Settings: s, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Scaling != nil || out.Parts[PartScaling] != nil {
		t.Error("a version of two grids claims to be of one")
	}
	if len(out.Queries) != 2 || out.Evaluation.Queries == nil {
		t.Fatalf("%d maps of P(query) for two grids, lowest %v", len(out.Queries), out.Evaluation.Queries)
	}
	for i, sea := range twoSeas(t) {
		q, asked := out.Queries[i], 0
		if q.Height != sea.Grid.Height() || q.Width != sea.Grid.Width() {
			t.Fatalf("the map of sea %d is %d x %d", i, q.Height, q.Width)
		}
		for c, n := range q.Queried {
			asked += n
			if !sea.Sea[c] && q.Drawn[c] > 0 {
				t.Fatalf("the map of sea %d counts land: a patch of the other one", i)
			}
		}
		if asked == 0 {
			t.Errorf("nothing of sea %d was ever query", i)
		}
	}
	if !out.Transform.Log10 || out.Evaluation.Ruling == nil {
		t.Errorf("transform %v, ruling %v", out.Transform, out.Evaluation.Ruling)
	}
	members, err := netfile.Decode(out.Parts[PartMembers])
	if err != nil || members.Config.Size != nn.Small {
		t.Errorf("members are %v (%v)", members.Config.Size, err)
	}
	// Fine-tuned on a sea of its own it gets that sea's scaling, and is judged
	// against the version that it comes from as that would serve there.
	third := series(t)
	tune := together()
	if err := tune.From(out.Parts); err != nil {
		t.Fatal(err)
	}
	if tune.Members.Design.Size != nn.Small {
		t.Errorf("members of a fine-tune are %s, want those of the parent", tune.Members.Design.Size)
	}
	tune.Imputer.Steps, tune.Members.Steps, tune.Reliability.Steps = 6, 0, 0
	child, err := Make(t.Context(), Request{Series: []samples.Series{third}, Settings: tune, Backend: enginetest.Open(t), Parent: out.Parts, Champion: out.Parts}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if child.Scaling == nil || !child.Scaling.Fits(third.Grid, third.Transform) {
		t.Error("the child has no scaling of its sea")
	}
	champion := child.Evaluation.Ruling.Champion
	if champion == nil || *champion.Verdict.Summary.MSE > 1 {
		t.Errorf("the version of two seas on one of them: %+v", champion)
	}
}

func TestHalfOfTheExamplesAreOfTheSeriesBeside(t *testing.T) {
	seas, s := twoSeas(t), together()
	seas[1].Transform = field.Transform{} // another quantity
	seas[0].Days = seas[0].Days[:60]      // fewer than the other
	request := Request{Series: seas[:1], Beside: seas[1:], Settings: s, Backend: enginetest.Open(t)}
	r, err := begin(request, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.strategy = partition.Empirical(r.learned)
	source, err := r.ownSource(1)
	if err != nil {
		t.Fatal(err)
	}
	const examples = 800
	shown := map[int]float64{}
	for n := range uint64(examples) {
		l, err := source.Example(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		shown[r.learned.Cut(l.Ref).Place]++
	}
	if noise := 4 * math.Sqrt(0.25/examples); math.Abs(shown[1]/examples-0.5) > noise {
		t.Errorf("%v examples are of the two seas, want as many of each", shown)
	}
	for _, of := range []struct {
		side     samples.HeldOut
		overlays []samples.Overlay
	}{{r.chooseSide, r.choosing}, {r.judgeSide, r.judging}} {
		for _, o := range of.overlays {
			if o.Place != 0 || !of.side.Place(o.Day).Grid.Same(seas[0].Grid) {
				t.Fatal("what is learned beside is chosen by or judged on")
			}
		}
	}
	// To be learned beside is not to be learned together.
	seas[1].Transform = seas[0].Transform
	name, err := request.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	request.Series, request.Beside = seas, nil
	if other, err := request.Fingerprint(); err != nil || other == name {
		t.Errorf("both requests have the fingerprint %s (%v)", other, err)
	}
}

func TestAVersionWithSomethingBesideIsOfItsOwnSea(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	seas, s := twoSeas(t), together()
	s.Imputer.Negate, s.Members.Negate = true, true
	out, err := Make(t.Context(), Request{Series: seas[:1], Beside: seas[1:], Settings: s, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Scaling == nil || !out.Scaling.Fits(seas[0].Grid, seas[0].Transform) {
		t.Error("the version has no scaling of its sea")
	}
	train, _, err := seas[0].Split(s.Split)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Queries) != 1 || len(out.Days[0].Learn) != train.Days() {
		t.Errorf("%d maps of P(query) and %d days to train, want 1 and %d", len(out.Queries), len(out.Days[0].Learn), train.Days())
	}
}

func TestAVersionOfTheSpreadErrsAsOptimalInterpolation(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	s := together()
	s.Imputer.SpreadOnly, s.ScoreEvery, s.Members.Steps, s.Reliability.Steps = true, 5, 0, 0
	scores := map[float64]bool{}
	out, err := Make(t.Context(), Request{Series: []samples.Series{series(t)}, Settings: s, Backend: enginetest.Open(t)}, Hooks{Progress: func(p Progress) {
		if p.Phase == PhaseImputer && p.Score != nil {
			scores[*p.Score] = true
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	// Both are judged with the analysis that serves, of all neighbours.
	ours, theirs := out.Evaluation.Ruling.Challenger.Verdict.Summary, out.Evaluation.Ruling.Interpolation.Verdict.Summary
	if math.Abs(*ours.MSE-*theirs.MSE) > 1e-6**theirs.MSE {
		t.Errorf("the MSE is %g, that of optimal interpolation %g", *ours.MSE, *theirs.MSE)
	}
	if ours.Gaussian.CRPS == theirs.Gaussian.CRPS {
		t.Error("its sigma is that of optimal interpolation")
	}
	// The error of the mean does not change while it learns; the score does.
	if len(scores) < 2 {
		t.Errorf("all scores are alike: %v", scores)
	}
}
