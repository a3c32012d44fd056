package retrain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/state"
	"lacuna/pipeline/ingest"
)

// fakeTrainer is a program that stands in for lacuna: it notes its arguments
// and behaves as the file "do" says.
const fakeTrainer = `
echo "$@" >> "$0.calls"
if [ "$1" = shadow ]; then echo '{"event":"done","version":"v2","state":"promoted","reasons":["no worse"]}'; exit; fi
if [ "$1" = drift ]; then echo '{"event":"done","drift":{"masks":0.9,"values":0.1}}'; exit; fi
case "$(cat "$0.do")" in
done) echo '{"event":"done","version":"v1","state":"refused","reasons":["no better"]}';;
ask) echo '{"event":"done","version":"v2","state":"waiting","won":true,"reasons":["better"]}';;
fail) exit 1;;
card) echo '{"event":"failed","engine":"xla:cuda","reasons":["no device"]}'; exit 1;;
few) echo '{"event":"failed","state":"unjudged","reasons":["no held-out window"]}'; exit 1;;
say) echo '{"event":"failed","reasons":["the disk is full"]}'; exit 1;;
late) echo '{"event":"stopped","reasons":["the time budget is spent"]}'; exit 1;;
wait)
	trap 'exit 1' TERM
	mkdir -p "${0%/*}/checkpoints"
	echo '{"event":"start","engine":"ort","checkpoints":"'"${0%/*}"'/checkpoints"}'
	: > "${0%/*}/checkpoints/job.json"
	: > "$0.waits"
	while :; do sleep 0.01; done;;
esac`

// fakeLedger is the ledger of a dataset in memory.
type fakeLedger struct {
	rows []Granule
	loss *float64
}

func (b *fakeLedger) Granules(_ context.Context, from, to time.Time) ([]Granule, error) {
	var in []Granule
	for _, g := range b.rows {
		if !g.Times[len(g.Times)-1].Before(from) && !g.Times[0].After(to) {
			in = append(in, g)
		}
	}
	return in, nil
}

func (b *fakeLedger) SkillLoss(context.Context) (*float64, error) { return b.loss, nil }

type testScheduler struct {
	*Scheduler
	ledger  *fakeLedger
	program string
	spool   string
	clock   time.Time
}

// newTestScheduler returns a scheduler with a fake program and a ledger without
// granules.
func newTestScheduler(t *testing.T) *testScheduler {
	t.Helper()
	dir := t.TempDir()
	s := &testScheduler{ledger: &fakeLedger{}, program: filepath.Join(dir, "lacuna"), spool: dir, clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	if err := os.WriteFile(s.program, []byte(fakeTrainer), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Store, cfg.FirstDays, cfg.NewGranules = filepath.Join(dir, "store"), season+2, 2 // three granules
	s.Scheduler = NewScheduler(Service{
		Config: cfg, Dataset: Dataset{Name: "sea", Options: ingest.Options{Variable: "CHL"}, SeaMask: "auto"}, Ledger: s.ledger,
		Program: []string{"/bin/sh", s.program}, Folder: filepath.Join(dir, "train", "sea"),
		Now: func() time.Time { return s.clock }, Log: slog.New(slog.DiscardHandler),
	})
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

// season is the number of fields of the first granule: days enough for the gate.
const season = 60

// arrive adds the granule of a day. That of the first day has the days before it
// too.
func (s *testScheduler) arrive(t *testing.T, day int) {
	t.Helper()
	path := filepath.Join(s.spool, fmt.Sprintf("day%d.nc", day))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	times := []time.Time{at}
	for back := 1; day == 1 && back < season; back++ {
		times = append([]time.Time{at.AddDate(0, 0, -back)}, times...)
	}
	s.ledger.rows = append(s.ledger.rows, Granule{Path: path, Times: times})
}

func (s *testScheduler) do(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(s.program+".do", []byte(what), 0o600); err != nil {
		t.Fatal(err)
	}
}

// calls returns the argument lists of the program so far.
func (s *testScheduler) calls() []string {
	data, err := os.ReadFile(s.program + ".calls")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (s *testScheduler) unfinished() bool {
	_, err := os.Stat(s.path(jobFile))
	return err == nil
}

func TestFirstModelIsTrainedAsSoonAsThereAreDays(t *testing.T) {
	s := newTestScheduler(t)
	s.do(t, "done")
	for day := 1; day <= 2; day++ {
		s.arrive(t, day)
	}
	if err := s.look(t.Context()); err != nil || s.calls() != nil {
		t.Fatalf("with two of three days: %v, %v", s.calls(), err)
	}
	s.arrive(t, 3)
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := s.calls()
	if len(calls) != 1 || !strings.HasPrefix(calls[0], "train --json-lines --store") || strings.Count(calls[0], "--data ") != 3 ||
		!strings.Contains(calls[0], "--var CHL") || strings.Contains(calls[0], "--from") {
		t.Fatalf("calls %q", calls)
	}
	var last LastTraining
	if known, err := state.Load(s.path(lastFile), &last); !known || err != nil || last.State != "refused" || s.unfinished() {
		t.Errorf("remembered %+v, %v; unfinished %v", last, err, s.unfinished())
	}
	s.clock = s.clock.AddDate(0, 1, 0)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("with nothing new it is trained again: %q, %v", s.calls(), err)
	}
	s.arrive(t, 4)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("a Sunday that passed with nothing new starts a training on Wednesday: %q, %v", s.calls(), err)
	}
	s.clock = s.clock.AddDate(0, 0, 7)
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 2 {
		t.Errorf("a first model that was refused is not tried again at the next time of the schedule: %q, %v", s.calls(), err)
	}
}

// A size is for a first network: a fine-tune has that of what it begins with.
func TestSizeAndStepsOfTheConfigurationReachTheTraining(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.Size, s.Config.Steps = "tiny", 150
	first, tuned := strings.Join(s.args(Facts{}, nil), " "), strings.Join(s.args(Facts{Champion: true, Serving: "v1"}, nil), " ")
	if !strings.Contains(first, "--size tiny --steps 150") {
		t.Errorf("a first model: %s", first)
	}
	if strings.Contains(tuned, "--size") || !strings.Contains(tuned, "--from v1 --steps 150") {
		t.Errorf("a fine-tune: %s", tuned)
	}
	for _, wrong := range []Config{{Size: "huge"}, {Steps: -1}} {
		c := DefaultConfig()
		c.Store, c.Size, c.Steps = "store", wrong.Size, wrong.Steps
		if c.Validate() == nil {
			t.Errorf("%+v is taken for good", wrong)
		}
	}
}

func TestAGateThatCouldNotJudgeKeepsATrainingFromBeginning(t *testing.T) {
	s := newTestScheduler(t)
	s.Config.FirstDays = 3
	s.do(t, "done")
	for day := 2; day <= 30; day++ { // 29 days, of which 7 would judge
		s.arrive(t, day)
	}
	if err := s.look(t.Context()); err != nil || s.calls() != nil {
		t.Fatalf("calls %q, %v, and the gate could not judge", s.calls(), err)
	}
	_, why, err := s.Plan(t.Context())
	if err != nil || !strings.Contains(why, "7 would judge") || !strings.Contains(why, "begins with the field of 2026-02-") {
		t.Fatalf("%q, %v", why, err)
	}
	_, promised, _ := strings.Cut(why, "with the field of ")
	for day := 31; s.calls() == nil && day < 90; day++ {
		s.arrive(t, day)
		if err := s.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	begun := s.ledger.rows[len(s.ledger.rows)-1].Times[0].Format(time.DateOnly)
	if begun != promised {
		t.Errorf("it began with the field of %s, and the plan said %s", begun, promised)
	}
}

func TestStoppedTrainingGoesOnWithTheSameData(t *testing.T) {
	s := newTestScheduler(t)
	s.do(t, "wait")
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	until(t, "the training", func() bool { _, err := os.Stat(s.program + ".waits"); return err == nil })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a stop is an error: %v", err)
	}
	if !s.unfinished() {
		t.Fatal("the job is forgotten")
	}
	s.arrive(t, 4) // would make it another job, without its checkpoints
	s.do(t, "done")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := s.calls(); len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("calls %q, want the same twice", calls)
	}
}

func TestTrainingThatFailsIsGivenUpInTheEnd(t *testing.T) {
	s := newTestScheduler(t)
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	s.do(t, "late") // its time is up, which is no failure
	for range 2 * tries {
		if err := s.look(t.Context()); err != nil || !s.unfinished() {
			t.Fatalf("out of time: error %v, unfinished %v", err, s.unfinished())
		}
	}
	if err := os.Remove(s.program + ".calls"); err != nil {
		t.Fatal(err)
	}
	s.do(t, "fail")
	for try := 1; try <= tries; try++ {
		if err := s.look(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("try %d: error %v", try, err)
		}
	}
	if s.unfinished() {
		t.Error("it is still to be tried")
	}
	if err := s.look(t.Context()); err != nil || len(s.calls()) != tries {
		t.Errorf("%d calls, want %d: %v", len(s.calls()), tries, err)
	}
}

func TestATrainingWhoseDaysCannotJudgeIsNotTriedAgainWithThem(t *testing.T) {
	s := newTestScheduler(t)
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	s.do(t, "few")
	if err := s.look(t.Context()); err != nil || s.unfinished() {
		t.Fatalf("%v, unfinished %v", err, s.unfinished())
	}
	if r, err := s.Report(true); err != nil || r.Last.State != StateUnjudged || r.Failure != "" {
		t.Errorf("%+v, %v, want an outcome of its own and no failure", r, err)
	}
	if err := s.look(t.Context()); err != nil || len(s.calls()) != 1 {
		t.Errorf("tried again: %q, %v", s.calls(), err)
	}
}

func TestDatasetsAreTrainedOneAfterTheOther(t *testing.T) {
	turn := make(chan struct{}, 1)
	first, second := &Scheduler{Service: Service{Turn: turn}}, &Scheduler{Service: Service{Turn: turn}}
	err := first.inTurn(t.Context(), func(context.Context) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		return second.inTurn(ctx, func(context.Context) error { return fmt.Errorf("both at once") })
	})
	if err == nil || err.Error() == "both at once" {
		t.Errorf("the second scheduler ended with %v while the first was at work, want it to wait", err)
	}
	if err := second.inTurn(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("the turn was not given back: %v", err)
	}
}
