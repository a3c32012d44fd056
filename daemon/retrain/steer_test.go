package retrain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/state"
)

// underWay starts a scheduler whose training waits to be stopped, and returns a
// function that stops the scheduler.
func (s *testScheduler) underWay(t *testing.T) (stop func()) {
	t.Helper()
	s.do(t, "wait")
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.waits(t)
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// waits waits for a training to be under way.
func (s *testScheduler) waits(t *testing.T) {
	t.Helper()
	until(t, "the training", func() bool { return os.Remove(s.program+".waits") == nil })
}

func TestAPausedTrainingStopsAndGoesOnWhenItIsResumed(t *testing.T) {
	s := newTestScheduler(t)
	stop := s.underWay(t)
	defer stop()
	if changed, err := s.desk().Pause("ana", s.clock); !changed || err != nil {
		t.Fatal(changed, err)
	}
	until(t, "the end of the process", func() bool { return !s.runs() })
	if r, err := s.Report(true); err != nil || r.State != StandPaused || !strings.Contains(r.Words, "paused by ana") || !strings.Contains(r.Words, "half done") {
		t.Errorf("%+v, %v", r, err)
	}
	if changed, err := s.desk().Pause("ben", s.clock); changed || err != nil {
		t.Errorf("a second pause takes the place of the first: %v, %v", changed, err)
	}
	if was, err := s.desk().Resume(); !was || err != nil {
		t.Fatal(was, err)
	}
	s.waits(t)
	if calls := s.calls(); len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("calls %q, want the same training twice", calls)
	}
}

func TestNothingBeginsWhileTrainingsArePaused(t *testing.T) {
	s := newTestScheduler(t)
	s.do(t, "done")
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	if _, err := s.desk().Pause("ana", s.clock); err != nil {
		t.Fatal(err)
	}
	if err := s.look(t.Context()); err != nil || s.calls() != nil {
		t.Errorf("it begins though it is paused: %v, %q", err, s.calls())
	}
	if _, err := s.desk().Resume(); err != nil {
		t.Fatal(err)
	}
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("it does not begin: %v, %q", err, s.calls())
	}
}

// runs reports whether the process of a training runs.
func (s *testScheduler) runs() bool {
	s.child.mu.Lock()
	defer s.child.mu.Unlock()
	return s.child.group != 0
}

func TestACancelledTrainingEndsForGoodWithItsCheckpoints(t *testing.T) {
	s := newTestScheduler(t)
	if err := s.desk().Cancel("ana", s.clock); !errors.Is(err, ErrNothingToCancel) {
		t.Errorf("cancelled what is not under way: %v", err)
	}
	stop := s.underWay(t)
	checkpoints := filepath.Join(s.spool, "checkpoints")
	until(t, "the checkpoints", func() bool { _, err := os.Stat(filepath.Join(checkpoints, "job.json")); return err == nil })
	if err := s.desk().Cancel("ana", s.clock); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the training", func() bool { return !s.unfinished() })
	stop()
	if r, err := s.Report(true); err != nil || r.State != StandIdle || r.Last == nil || r.Last.State != StateCancelled {
		t.Errorf("%+v, %v", r, err)
	}
	var last LastTraining
	if _, err := state.Load(s.path(lastFile), &last); err != nil || last.State != StateCancelled || !strings.Contains(strings.Join(last.Reasons, ""), "ana") {
		t.Errorf("remembered %+v, %v", last, err)
	}
	if _, err := os.Stat(checkpoints); !os.IsNotExist(err) {
		t.Errorf("the checkpoints are still there: %v", err)
	}
	s.do(t, "done")
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("it was begun again: %q, %v", s.calls(), err)
	}
	// An order about a training that has ended must not end the next one.
	if err := state.Save(s.path(cancelFile), order{By: "ana", Begun: s.clock}); err != nil {
		t.Fatal(err)
	}
	s.clock = s.clock.AddDate(0, 0, 8)
	s.arrive(t, 4)
	s.arrive(t, 5)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 2 {
		t.Errorf("the next training did not run: %q, %v", s.calls(), err)
	}
}

// A budget that is spent rests: until the window opens again, or for the rest of
// the day. The clock of the test stands still, and the budget is real time.
func TestATrainingRestsWhenItsBudgetIsSpent(t *testing.T) {
	for name, tt := range map[string]struct {
		window string
		until  time.Time
	}{
		"no window": {until: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)},
		"a window":  {window: "23:00-05:00", until: time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestScheduler(t)
			s.Config.Window, s.Config.Budget = tt.window, time.Second
			s.window, _ = parseWindow(tt.window)
			s.do(t, "wait")
			for day := 1; day <= 3; day++ {
				s.arrive(t, day)
			}
			if err := s.look(t.Context()); err != nil || !s.unfinished() || len(s.calls()) != 1 {
				t.Fatalf("%v, calls %q", err, s.calls())
			}
			r, err := s.Report(true)
			if err != nil || r.State != StandResting || r.Until.Sub(tt.until).Abs() > time.Second {
				t.Errorf("%+v, %v, want rest until %v", r, err, tt.until)
			}
			s.do(t, "done")
			if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
				t.Errorf("it did not rest: %q, %v", s.calls(), err)
			}
			// What goes on is a process: on a busy machine its start alone takes longer
			// than the budget that is to be spent above.
			s.clock, s.Config.Budget = tt.until, time.Minute
			if err := s.look(t.Context()); err != nil || len(s.calls()) != 2 || s.unfinished() {
				t.Errorf("it did not go on: %q, %v", s.calls(), err)
			}
		})
	}
}

func TestATrainingWaitsForItsWindow(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.Window = "02:00-05:00" // the clock is at midnight
	s.window, _ = parseWindow(s.Config.Window)
	s.do(t, "done")
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	if err := s.look(t.Context()); err != nil || s.calls() != nil {
		t.Fatalf("%v, calls %q", err, s.calls())
	}
	due := s.clock
	s.clock = s.clock.Add(time.Hour)
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Report(true); err != nil || r.State != StandWindow || !r.Since.Equal(due) || !strings.Contains(r.Words, "2026-03-01 02:00 UTC: no model serves yet") {
		t.Errorf("%+v, %v", r, err)
	}
	s.clock = s.clock.Add(time.Hour)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("the window is open: %v, calls %q", err, s.calls())
	}
}

func TestAReportTellsWhatFailedAndThatTheGPUIsAway(t *testing.T) {
	s := newTestScheduler(t)
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	s.do(t, "say")
	if err := s.look(t.Context()); err == nil {
		t.Fatal("it did not fail")
	}
	if r, err := s.Report(true); err != nil || !strings.Contains(r.Failure, "1 times in a row") || !strings.Contains(r.Failure, "the disk is full") {
		t.Errorf("%+v, %v", r, err)
	}
	s.Config.Engine = "xla:cuda"
	s.do(t, "card")
	if err := s.look(t.Context()); err == nil {
		t.Fatal("it did not fail")
	}
	if r, err := s.Report(true); err != nil || !strings.Contains(r.NoGPU, "xla:cuda of train.engine cannot be opened") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, tt := range []struct {
		configured, now string
		onGPU, away     bool
	}{
		{"auto", "ort", true, true}, {"auto", "ort", false, false}, {"auto", "xla:cuda", true, false}, {"ort", "ort", true, false},
	} {
		got := Config{Engine: tt.configured}.noGPU(unfinishedJob{Engine: tt.now}, LastTraining{OnGPU: tt.onGPU})
		if (got != "") != tt.away {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestRefusalsInARowAreCounted(t *testing.T) {
	last := LastTraining{}
	for i, tt := range []struct {
		state string
		want  int
	}{{StateRefused, 1}, {StateRefused, 2}, {StateFailed, 2}, {StateUnjudged, 2}, {StateRefused, 3}, {StatePromoted, 0}, {StateRefused, 1}} {
		last.Refusals = refusals(last, Event{State: tt.state})
		if last.Refusals != tt.want {
			t.Errorf("after %d, %s: %d in a row, want %d", i, tt.state, last.Refusals, tt.want)
		}
	}
}
