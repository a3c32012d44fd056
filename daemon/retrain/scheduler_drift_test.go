package retrain

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/state"
	"lacuna/modelstore"
)

// promote makes a version the champion of the scheduler's dataset.
func (s *testScheduler) promote(t *testing.T) {
	t.Helper()
	store := modelstore.New(s.Config.Store, s.Now)
	card := modelstore.Card{Schema: modelstore.CardSchema, Kind: "trained", Dataset: "sea", Created: s.clock}
	v, err := store.Write(t.Context(), card, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Promote(t.Context(), modelstore.Change{Dataset: "sea", Version: v.ID, By: "a test", Why: []string{"it is one"}}); err != nil {
		t.Fatal(err)
	}
}

// words returns what people read of the training.
func (s *testScheduler) words(t *testing.T) string {
	t.Helper()
	r, err := s.Report(true)
	if err != nil {
		t.Fatal(err)
	}
	return r.Words
}

func TestDriftIsMeasuredOnceADayAndIsAReasonToTrain(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.Schedule, s.Config.NewGranules = "", 0
	s.promote(t)
	for day := 1; day <= 6; day++ {
		s.arrive(t, day)
	}
	if err := state.Save(s.path(lastFile), LastTraining{Ended: s.clock.Add(-48 * time.Hour), Granules: 1}); err != nil {
		t.Fatal(err)
	}
	s.do(t, "done")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := s.calls()
	if len(calls) != 2 || !strings.HasPrefix(calls[0], "drift ") || !strings.HasPrefix(calls[1], "train ") {
		t.Fatalf("calls %q, want a measurement and a training", calls)
	}
	facts, _, err := s.facts(t.Context())
	if err != nil || facts.MaskDrift == nil || *facts.MaskDrift != 0.9 || *facts.ValueDrift != 0.1 {
		t.Errorf("facts %+v, %v", facts, err)
	}
	s.clock = s.clock.Add(2 * driftApart) // but no new days
	if _, _, err := s.facts(t.Context()); err != nil || len(s.calls()) != 2 {
		t.Errorf("measured again without new days: %q, %v", s.calls(), err)
	}
	for day := 7; day < 7+driftNewDays; day++ {
		s.arrive(t, day)
	}
	if _, _, err := s.facts(t.Context()); err != nil || len(s.calls()) != 3 {
		t.Errorf("not measured again with new days: %q, %v", s.calls(), err)
	}
}

// A store may come with a champion before the first granule does.
func TestWithoutAGranuleNoDriftIsMeasured(t *testing.T) {
	s := newTestScheduler(t)
	s.promote(t)
	if err := s.look(t.Context()); err != nil || s.calls() != nil {
		t.Errorf("calls %q, %v", s.calls(), err)
	}
	if got := s.words(t); !strings.Contains(got, "0 of 62 days are there") {
		t.Errorf("%q", got)
	}
}

// An operator who asks for the plan must not change what others read.
func TestAPlanLeavesTheStandingOfTheSchedulerAlone(t *testing.T) {
	s := newTestScheduler(t)
	s.promote(t)
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	if _, _, err := s.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{standingFile, scheduleFile, jobFile} {
		if _, err := os.Stat(s.path(file)); err == nil {
			t.Errorf("the plan wrote %s", file)
		}
	}
}

func TestALossOfSkillIsAReasonToTrain(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.Schedule, s.Config.NewGranules, s.Config.Drift.Masks = "", 0, 0
	s.promote(t)
	for day := 1; day <= 6; day++ {
		s.arrive(t, day)
	}
	if err := state.Save(s.path(lastFile), LastTraining{Ended: s.clock.Add(-48 * time.Hour), Granules: 1}); err != nil {
		t.Fatal(err)
	}
	if due, why, err := s.Plan(t.Context()); due || err != nil {
		t.Fatalf("due %v because %q, %v, and nothing was lost", due, why, err)
	}
	loss := 0.3
	s.ledger.loss = &loss
	if due, why, err := s.Plan(t.Context()); !due || err != nil || !strings.Contains(why, "recent products has risen by a share of 0.30") {
		t.Errorf("due %v because %q, %v", due, why, err)
	}
}

func TestAModelLearnsFromGranulesAsTheyAreFilled(t *testing.T) {
	s := newTestScheduler(t)
	s.Dataset.Transform, s.Dataset.Range, s.Dataset.Quality, s.Dataset.SeaMask = "log10", &[2]float64{-0.5, 80}, []string{"flag == 0"}, "learned"
	args := s.args(Facts{}, []string{"a.nc"})
	for _, want := range [][2]string{
		{"--transform", "log10"}, {"--valid-range", "-0.5,80"}, {"--quality", "flag == 0"}, {"--mask", "learned"}, {"--var", "CHL"}, {"--data", "a.nc"},
	} {
		if at := slices.Index(args, want[0]); at < 0 || args[at+1] != want[1] {
			t.Errorf("%q, want %s %s", args, want[0], want[1])
		}
	}
}

func TestAVersionThatWaitsForAnOperatorIsShown(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.Policy = "ask"
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	if args := s.args(Facts{}, nil); !slices.Contains(args, "ask") {
		t.Errorf("%q, want the policy in it", args)
	}
	s.do(t, "ask")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if news := s.words(t); !strings.Contains(news, "v2 won and waits for 'lacuna models promote v2'") {
		t.Errorf("news %q", news)
	}
}

func TestAVersionProvesItselfInItsShadowDays(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.ShadowDays = 2
	s.promote(t)
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	s.do(t, "ask")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := s.calls(); !strings.Contains(calls[len(calls)-1], "--policy ask") {
		t.Fatalf("calls %q, want a version that waits", calls)
	}
	before := len(s.calls())
	s.arrive(t, 4)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != before || !strings.Contains(s.words(t), "shadow days: 1 of 2") {
		t.Fatalf("after one day: %v, news %q", err, s.words(t))
	}
	s.arrive(t, 5)
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := s.calls()[len(s.calls())-1]
	for _, want := range []string{"shadow ", "--version v2", "--since 2026-01-03T00:00:01Z", "day5.nc", "day1.nc"} {
		if !strings.Contains(last, want) {
			t.Errorf("call %q, want %s in it", last, want)
		}
	}
	var m LastTraining
	if known, err := state.Load(s.path(lastFile), &m); !known || err != nil || m.State != "promoted" {
		t.Errorf("memory %+v, %v", m, err)
	}
	if busy, err := s.inShadow(t.Context()); busy || err != nil {
		t.Errorf("the shadow goes on: %v", err)
	}
}
