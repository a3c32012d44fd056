package retrain

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// finished returns a training whose version is made and not written yet.
func finished(t *testing.T, policy string) *Training {
	t.Helper()
	dir := t.TempDir()
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := Data{
		Series:   samples.Series{Grid: field.Grid{Lat: []float64{40, 41}, Lon: []float64{10, 12}}, Days: []samples.Day{{Time: day}, {Time: day.AddDate(0, 0, 9)}}},
		Granules: map[string]string{"b.nc": strings.Repeat("b", 64), "a.nc": strings.Repeat("a", 64)}, Variable: "CHL",
	}
	tr := &Training{
		req:   Request{Dataset: "sea", Policy: policy, Data: []Data{set}, Lacuna: "0.2.0"},
		store: modelstore.New(filepath.Join(dir, "store"), time.Now), started: time.Now(), memory: &deviceMemory{},
		job: version.Request{Folder: filepath.Join(dir, "job")},
	}
	if err := os.MkdirAll(tr.job.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return tr
}

// outcome returns an outcome that won or lost.
func outcome(won bool) version.Outcome {
	reasons := []string{"for: better", "against: slower"}
	return version.Outcome{
		Parts:    version.Parts{version.PartImputer: []byte("weights"), version.PartCalibration: []byte("{}")},
		Decision: skill.Decision{Promote: won, Reasons: reasons}, Calendars: []samples.Calendar{{GapDays: 12}},
		Days:     []samples.Assignment{{Learn: make([]samples.Date, 7), Choose: []samples.Date{8}, Judge: []samples.Date{21, 22}}},
		Networks: []version.Network{{Part: version.PartImputer, Backbone: "unet", Size: "tiny", Weights: 9}},
	}
}

// The picture is of what was judged, and the same bytes each time: a version that
// a killed process had begun to write must be the same one again.
func TestAVersionHasAPictureOfWhatJudgedIt(t *testing.T) {
	out := outcome(true)
	out.Evaluation.Ruling = &version.Ruling{Scene: &version.Scene{
		Time: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), Lat: []float64{40, 41}, Lon: []float64{30, 31}, Low: 0, High: 1, BeforeBy: "the champion",
		Land: []byte{1, 0, 0, 0}, Seen: []byte{0, 9, 0, 0}, Hidden: []byte{0, 0, 99, 0}, Before: []byte{0, 9, 50, 60}, After: []byte{0, 9, 90, 200},
	}}
	var pictures [][]byte
	for range 2 {
		tr := finished(t, PolicyAuto)
		v, err := tr.store.Load(conclude(t, tr, out).Version)
		if err != nil {
			t.Fatal(err)
		}
		png, err := v.ReadFile(modelstore.PictureFile)
		if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
			t.Fatalf("%v, %q", err, png[:min(8, len(png))])
		}
		pictures = append(pictures, png)
	}
	if !bytes.Equal(pictures[0], pictures[1]) {
		t.Error("the same judgement gave two pictures")
	}
}

// conclude runs the end of a training and returns its last event.
func conclude(t *testing.T, tr *Training, out version.Outcome) Event {
	t.Helper()
	var told Event
	if err := tr.conclude(t.Context(), out, func(e Event) error { told = e; return nil }); err != nil {
		t.Fatal(err)
	}
	return told
}

func TestThePolicyDecidesTheStateOfAVersion(t *testing.T) {
	for _, tt := range []struct {
		policy, only string
		won          bool
		unjudged     bool
		state        string
		serves       bool
		logged       int
	}{
		{policy: PolicyAuto, won: true, state: StatePromoted, serves: true, logged: 1},
		{policy: PolicyAuto, state: StateRefused, logged: 1},
		{policy: PolicyAsk, won: true, state: StateWaiting},
		{policy: PolicyAsk, state: StateRefused, logged: 1},
		{policy: PolicyAuto, unjudged: true, state: StateUnjudged, logged: 1},
		{policy: PolicyAsk, unjudged: true, state: StateUnjudged, logged: 1},
		{policy: PolicyNever, won: true, state: StateWritten},
		{policy: PolicyAuto, only: version.OnlyPrior, won: true, state: StateWritten},
	} {
		tr := finished(t, tt.policy)
		tr.req.Options.Only = tt.only
		out := outcome(tt.won)
		out.Decision.Unjudged = tt.unjudged
		done := conclude(t, tr, out)
		champion, err := tr.store.Champion("sea")
		log, logErr := tr.store.Log()
		if done.State != tt.state || done.Won != tt.won || (err == nil && champion.Version == done.Version) != tt.serves || logErr != nil || len(log) != tt.logged {
			t.Errorf("%+v: told %+v, champion %+v, log %+v", tt, done, champion, log)
		}
		if _, err := tr.store.Load(done.Version); err != nil {
			t.Errorf("%+v: the version is not in the store: %v", tt, err)
		}
		if _, err := os.Stat(tr.job.Folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: the checkpoints are still there: %v", tt, err)
		}
	}
}

func TestARefusalNamesItsReasons(t *testing.T) {
	tr := finished(t, PolicyAuto)
	conclude(t, tr, outcome(false))
	log, err := tr.store.Log()
	if err != nil || len(log) != 1 || log[0].Action != modelstore.Refused || !slices.Equal(log[0].Why, version.Against(outcome(false).Decision)) {
		t.Errorf("log %+v, %v", log, err)
	}
}

// A process that is killed after it wrote the version, or after it wrote the
// refusal too, is followed by one that ends with the same version and one
// refusal.
func TestATrainingKilledAtItsEndIsConcludedOnce(t *testing.T) {
	tr := finished(t, PolicyAuto)
	killed := errors.New("killed")
	var first Event
	if err := tr.conclude(t.Context(), outcome(false), func(e Event) error { first = e; return killed }); !errors.Is(err, killed) {
		t.Fatalf("error %v", err)
	}
	tr.started = tr.started.Add(time.Minute) // another process
	if again := conclude(t, tr, outcome(false)); again.Version != first.Version {
		t.Errorf("the version is %s, was %s", again.Version, first.Version)
	}
	versions, _, err := tr.store.List()
	log, logErr := tr.store.Log()
	if err != nil || logErr != nil || len(versions) != 1 || len(log) != 1 {
		t.Errorf("%d versions and %d entries of the log, want one of each: %v, %v", len(versions), len(log), err, logErr)
	}
}

func TestAVersionIsNotPromotedOverAChampionThatItWasNotJudgedAgainst(t *testing.T) {
	tr := finished(t, PolicyNever)
	other := conclude(t, tr, outcome(true))
	if _, err := tr.store.Promote(t.Context(), modelstore.Change{Dataset: "sea", Version: other.Version, By: "a test", Why: []string{"it is one"}}); err != nil {
		t.Fatal(err)
	}
	late := finished(t, PolicyAuto)
	late.store = tr.store // it began without a champion
	err := late.conclude(t.Context(), outcome(true), func(Event) error { t.Error("it told an outcome"); return nil })
	if !errors.Is(err, modelstore.ErrChampionChanged) || !strings.Contains(err.Error(), "judges the version again") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(late.job.Folder); err != nil {
		t.Errorf("the checkpoints are gone: %v", err)
	}
}

// A version that could not be judged did not lose: the log tells the two apart.
func TestTheStoreTellsUnjudgedFromRefused(t *testing.T) {
	tr := finished(t, PolicyAuto)
	out := outcome(false)
	out.Decision.Unjudged = true
	id := conclude(t, tr, out).Version
	log, err := tr.store.Log()
	states, statesErr := tr.store.States()
	if err != nil || statesErr != nil || log[0].Action != modelstore.Unjudged || !slices.Equal(states[id], []string{"not judged"}) {
		t.Errorf("log %+v, states %v: %v, %v", log, states, err, statesErr)
	}
}

// Somebody promotes a version by hand while another is being trained: that is the
// one to beat, and a verdict against the former champion counts for nothing.
func TestATrainingIsJudgedAgainstAChampionThatIsPromotedMeanwhile(t *testing.T) {
	before := finished(t, PolicyNever)
	other := conclude(t, before, outcome(true))
	for _, won := range []bool{true, false} {
		tr := finished(t, PolicyAuto)
		tr.store = modelstore.New(filepath.Join(t.TempDir(), "store"), time.Now)
		copyVersion(t, before.store, tr.store, other.Version)
		times, told := 0, Event{}
		err := tr.settle(t.Context(), func(e Event) error { told = e; return nil }, func() (version.Outcome, error) {
			times++
			if times == 1 {
				by := modelstore.Change{Dataset: "sea", Version: other.Version, By: "a person", Why: []string{"it is one"}}
				if _, err := tr.store.Promote(t.Context(), by); err != nil {
					t.Fatal(err)
				}
				return outcome(!won), nil // against nobody
			}
			if got := string(tr.job.Champion[version.PartImputer]); got != "weights" {
				t.Errorf("the gate is passed again against %q", got)
			}
			out := outcome(won)
			out.Parts[version.PartImputer] = []byte("other weights")
			return out, nil
		})
		champion, championErr := tr.store.Champion("sea")
		want := map[bool]string{true: told.Version, false: other.Version}[won]
		if err != nil || championErr != nil || times != 2 || told.Champion != other.Version || champion.Version != want {
			t.Errorf("won %v: %d times, told %+v, champion %s: %v, %v", won, times, told, champion.Version, err, championErr)
		}
	}
}

// copyVersion puts a version of one store into another.
func copyVersion(t *testing.T, from, to *modelstore.Store, id string) {
	t.Helper()
	var tarball bytes.Buffer
	if err := from.Export(t.Context(), id, &tarball); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Import(t.Context(), &tarball); err != nil {
		t.Fatal(err)
	}
}

func TestACardSaysWhereAVersionComesFrom(t *testing.T) {
	tr := finished(t, PolicyNever)
	tr.resumed, tr.phases, tr.device = true, map[string]float64{"imputer": 3}, modelstore.Engine{Name: "ort"}
	v, err := tr.store.Load(conclude(t, tr, outcome(true)).Version)
	if err != nil {
		t.Fatal(err)
	}
	c := v.Card
	if c.Kind != "trained" || c.Dataset != "sea" || c.Variable != "CHL" || c.Lacuna != "0.2.0" || c.Engine.Name != "ort" || c.Training.Phases["imputer"] != 3 {
		t.Errorf("card %+v", c)
	}
	if c.Split.TrainDays != 7 || c.Split.CheckDays != 1 || c.Split.TestDays != 2 || !slices.Equal(c.Split.Judge, []string{"1970-01-22", "1970-01-23"}) || c.Data.To.Sub(c.Data.From) != 9*24*time.Hour ||
		len(c.Data.Granules) != 2 || c.Data.Granules[0].Name != "a.nc" {
		t.Errorf("split %+v of data %+v", c.Split, c.Data)
	}
	if len(c.Networks) != 1 || c.Networks[0].File != modelstore.ImputerFile || c.Calibration.File != modelstore.CalibrationFile {
		t.Errorf("networks %+v, calibration %+v", c.Networks, c.Calibration)
	}
	if !strings.Contains(c.Note, "interrupted") {
		t.Errorf("note %q", c.Note)
	}

	child := finished(t, PolicyNever)
	child.parentID, child.parentCard = v.ID, c
	card, err := child.card(outcome(true))
	if err != nil || card.Kind != "fine-tuned" || card.Parent != v.ID || card.Note != "" {
		t.Errorf("card of a child %+v, %v", card, err)
	}
}

func TestThePartsOfAVersionComeBackFromTheStore(t *testing.T) {
	out := outcome(true)
	for part := range partFiles {
		if out.Parts[part] == nil {
			out.Parts[part] = []byte("of " + part)
		}
	}
	want := maps.Clone(out.Parts)
	tr := finished(t, PolicyNever)
	v, err := tr.store.Load(conclude(t, tr, out).Version)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parts(v); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parts %v, %v, want %v", got, err, want)
	}
	out.Parts["appendix"] = []byte("of no file")
	if err := finished(t, PolicyNever).conclude(t.Context(), out, nil); err == nil || !strings.Contains(err.Error(), "appendix") {
		t.Errorf("a part without a file: error %v", err)
	}
}

func TestAVersionBeginsWithTheOneThatWasNamed(t *testing.T) {
	tr := finished(t, PolicyAuto)
	first := conclude(t, tr, outcome(true))
	starter, err := tr.store.Load(first.Version)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dataset, from string
		starter             *modelstore.Version
		parent, champion    string
		beatsStarter        bool
		problem             string
	}{
		{name: "a champion is beaten", dataset: "sea", champion: first.Version},
		{name: "the champion", dataset: "sea", from: FromChampion, parent: first.Version, champion: first.Version},
		{name: "a version by name", dataset: "lake", from: first.Version, parent: first.Version},
		{name: "a starter serves for want of a champion", dataset: "lake", starter: starter, beatsStarter: true},
		{name: "the starter", dataset: "lake", from: FromStarter, starter: starter, parent: first.Version, beatsStarter: true},
		{name: "the starter beside a champion", dataset: "sea", from: FromStarter, starter: starter, parent: first.Version, champion: first.Version},
		{name: "no champion", dataset: "lake", from: FromChampion, problem: "lake has no champion"},
		{name: "no starter", dataset: "lake", from: FromStarter, problem: "no starter fits: train without --from"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next := &Training{store: tr.store, req: Request{Dataset: tt.dataset, From: tt.from}}
			next.req.Starter = func(context.Context) (*modelstore.Version, string, error) { return tt.starter, "no starter fits", nil }
			err := next.findVersions(t.Context())
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("error %v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil || next.parentID != tt.parent || next.championID != tt.champion || (next.starter != nil) != tt.beatsStarter {
				t.Errorf("parent %q, champion %q, starter %v, %v", next.parentID, next.championID, next.starter != nil, err)
			}
			if (next.parent != nil) != (tt.parent != "") || (next.champion != nil) != (tt.champion != "") {
				t.Errorf("parts of the parent %v, of the champion %v", next.parent != nil, next.champion != nil)
			}
		})
	}
}

func TestShadowDaysEndWithAPromotionOrARefusal(t *testing.T) {
	for won, want := range map[bool]string{true: StatePromoted, false: StateRefused} {
		tr := finished(t, PolicyAuto)
		champion := conclude(t, tr, outcome(true))
		tr = &Training{req: tr.req, store: tr.store, job: tr.job, memory: tr.memory, championID: champion.Version}
		tr.req.Policy = PolicyAsk
		if err := os.MkdirAll(tr.job.Folder, 0o755); err != nil {
			t.Fatal(err)
		}
		challenger := conclude(t, tr, outcome(true))
		done := Event{Version: challenger.Version, Champion: champion.Version, Won: won, Reasons: []string{"by test"}}
		state, err := endShadow(t.Context(), tr.store, "sea", done)
		serving, champErr := tr.store.Champion("sea")
		if err != nil || champErr != nil || state != want || (serving.Version == challenger.Version) != won {
			t.Errorf("won %v: state %q, %v; %s serves, %v", won, state, err, serving.Version, champErr)
		}
		done.Champion = "another"
		if _, err := endShadow(t.Context(), tr.store, "sea", done); won && err != nil {
			t.Errorf("a version that was promoted already: %v", err)
		}
	}
}

func TestPhasesAreTimedWhereTheyEnd(t *testing.T) {
	var c phaseClock
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for second, phase := range []string{"prior", "prior", "imputer", "prior"} {
		c.note(phase, start.Add(time.Duration(second)*time.Second))
	}
	got := c.seconds(start.Add(10 * time.Second))
	if len(got) != 2 || got["prior"] != 2+7 || got["imputer"] != 1 {
		t.Errorf("phases took %v", got)
	}
}
