package retrain

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/daemon/state"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/pipeline/samples"
)

// Dataset is a dataset whose model is renewed, and the way to read its
// granules.
type Dataset struct {
	Name string
	ingest.Options
	SeaMask string
	Tests   quality.Tests // of observations
	SeaIce  quality.Ice
	// Covariates returns the arguments that name its covariates for days from one time to
	// another; nil: it has none.
	Covariates func(ctx context.Context, from, to time.Time) ([]string, error)
}

// Granule is a file of a dataset in the spool.
type Granule struct {
	Path  string      // it may have been swept since
	Times []time.Time // times of its fields, in order
}

// Ledger knows the granules of the dataset and the scores of its products.
type Ledger interface {
	// Granules returns those with a field at a time from through to, in order.
	Granules(ctx context.Context, from, to time.Time) ([]Granule, error)
	// SkillLoss returns the error of recent products over that of the weeks
	// before, less one; nil where chance explains it, or there are no scores.
	SkillLoss(ctx context.Context) (*float64, error)
}

// Service holds the settings and collaborators of a Scheduler.
type Service struct {
	Config  Config
	Dataset Dataset
	Ledger  Ledger
	Program []string // argv of lacuna, before "train"
	Folder  string   // folder for the files of the scheduler
	// Turn, of capacity one, is held while a training runs, so that trainings
	// of several datasets do not share the device; nil: there is no other
	// dataset.
	Turn chan struct{}
	// Remote has trainings done on another machine; nil: a child of this process
	// does them.
	Remote Remote
	Now    func() time.Time
	Log    *slog.Logger
}

// Remote trains on other machines.
type Remote interface {
	// Train has a training done that the arguments of lacuna train describe, and
	// promotes or refuses its version here. Of several calls with the same arguments
	// each goes on with what the one before has left. It returns the last event, as
	// Process.Run does. When ctx ends the training goes on elsewhere, for a later call to
	// find, unless Interrupted says that it must not.
	Train(ctx context.Context, args []string, hear func(Event)) (Event, error)
}

// Scheduler renews the model of one dataset. It checks the triggers at an
// interval, runs one training at a time as a process of its own, and begins
// with the one that a stop or a crash left unfinished. Operators steer it by its
// Desk.
type Scheduler struct {
	Service
	child    *Process
	window   window
	standing Standing // what was noted last
	held     bool     // an operator's pause was obeyed last
}

// NewScheduler returns a scheduler, which starts nothing before Run.
func NewScheduler(s Service) *Scheduler {
	w, err := parseWindow(s.Config.Window)
	if err != nil {
		panic("retrain: a window that Validate refuses: " + err.Error())
	}
	return &Scheduler{Service: s, child: NewProcess(s.Config), window: w}
}

// Hold pauses the training until the returned function is called. Filling has
// priority: a worker holds while it fills a granule.
func (s *Scheduler) Hold() (release func()) { return s.child.Hold() }

// HoldInTurn is Hold for work that can wait, and that is begun only where Owed is 0.
func (s *Scheduler) HoldInTurn() (release func()) { return s.child.HoldInTurn() }

// Owed returns for how long the training is to run before work that can wait pauses it
// again; 0: such work may begin.
func (s *Scheduler) Owed() time.Duration { return s.child.Owed() }

// tries is the number of failures after which a job is given up: the same
// arguments fail the same way, and the next trigger makes a new job.
const tries = 3

// Run checks the triggers until ctx is cancelled, then returns nil. A training
// that fails is logged and tried again: filling does not depend on it.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if _, err := state.Load(s.path(standingFile), &s.standing); err != nil {
		s.standing = Standing{} // it is written anew
	}
	s.stand(Standing{State: StandIdle, Words: "the service has just started"})
	for ctx.Err() == nil {
		if err := s.inTurn(ctx, s.look); err != nil && ctx.Err() == nil {
			s.Log.Warn("training failed", "err", err, "retry_in", s.Config.Check)
		}
		s.await(ctx)
	}
	return nil
}

// await waits for the next check, or for an operator. The time counts from the end
// of a training: one that was stopped does not begin in the same second.
func (s *Scheduler) await(ctx context.Context) {
	check := time.NewTimer(s.Config.Check)
	defer check.Stop()
	steer := time.NewTicker(steerEvery)
	defer steer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
			return
		case <-steer.C:
		}
		obeyed, err := s.obey()
		_, held, unread := s.desk().paused()
		if err == nil && unread == nil && (obeyed || held != s.held) { // look reports the errors
			return
		}
	}
}

// inTurn calls work when no other dataset is being trained. Orders are obeyed
// meanwhile.
func (s *Scheduler) inTurn(ctx context.Context, work func(context.Context) error) error {
	if s.Turn == nil {
		return work(ctx)
	}
	steer := time.NewTicker(steerEvery)
	defer steer.Stop()
	for {
		select {
		case s.Turn <- struct{}{}:
			defer func() { <-s.Turn }()
			return work(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-steer.C:
			if _, err := s.obey(); err != nil {
				return err
			}
		}
	}
}

// look resumes an unfinished job, or begins one that is due.
func (s *Scheduler) look(ctx context.Context) error {
	if _, err := s.obey(); err != nil {
		return err
	}
	var err error
	if _, s.held, err = s.desk().paused(); s.held || err != nil {
		return err
	}
	var job unfinishedJob
	unfinished, err := state.Load(s.path(jobFile), &job)
	if err != nil {
		return err
	}
	if !unfinished {
		var due bool
		if job, due, err = s.begin(ctx); err != nil || !due {
			return err
		}
	}
	if open, _ := s.window.at(s.Now()); !open || job.Rests.After(s.Now()) {
		return nil // the report says how long
	}
	return s.train(ctx, job)
}

// begin makes a job where a training is due and it is its time of the day.
func (s *Scheduler) begin(ctx context.Context) (unfinishedJob, bool, error) {
	var job unfinishedJob
	if busy, err := s.inShadow(ctx); busy || err != nil {
		return job, false, err
	}
	facts, data, err := s.facts(ctx)
	if err != nil {
		return job, false, err
	}
	due, why := s.Config.Due(facts)
	s.Log.Debug("training triggers", "due", due, "why", why)
	seen := s.Config.Seen(facts)
	if !due {
		if strings.HasPrefix(why, noTrigger) {
			why = noTrigger // seen has the rest
		}
		s.stand(Standing{State: StandIdle, Words: s.waiting(facts) + "not trained now: " + why, Seen: seen})
		return job, false, s.passSchedule(facts)
	}
	if open, opens := s.window.at(s.Now()); !open {
		words := fmt.Sprintf("due, and waits until train.window opens on %s: %s", moment(opens), why)
		s.stand(Standing{State: StandWindow, Words: words, Seen: seen, DueSince: s.Now()})
		return job, false, nil
	}
	s.stand(Standing{State: StandIdle, Words: "due: " + why, Seen: seen})
	beside, err := s.covariates(ctx, facts.From, facts.To)
	if err != nil {
		return job, false, err
	}
	job = unfinishedJob{Args: append(s.args(facts, data), beside...), Why: why, Begun: s.Now(), Granules: len(data), Champion: facts.Serving}
	return job, true, state.Save(s.path(jobFile), job)
}

// passSchedule forgets a time of the schedule at which no training was possible,
// so that the first granule after it does not start one.
func (s *Scheduler) passSchedule(f Facts) error {
	if _, known, err := s.scheduleSince(); err != nil || known && !s.Config.scheduled(f).due {
		return err
	}
	return s.watchSchedule()
}

// waiting returns a sentence where a version has won and waits for an operator.
func (s *Scheduler) waiting(f Facts) string {
	if f.Last.State != StateWaiting || f.Last.Version == f.Serving {
		return ""
	}
	return fmt.Sprintf("version %s won and waits for 'lacuna models promote %s'; ", f.Last.Version, f.Last.Version)
}

// facts gathers the input of the triggers, and the files to learn from.
func (s *Scheduler) facts(ctx context.Context) (Facts, []string, error) {
	rows, err := s.Ledger.Granules(ctx, time.Time{}, s.Now().AddDate(1, 0, 0))
	if err != nil {
		return Facts{}, nil, err
	}
	var last LastTraining
	if _, err := state.Load(s.path(lastFile), &last); err != nil {
		return Facts{}, nil, err
	}
	f := Facts{Now: s.Now(), LastTrained: last.Ended, Last: last}
	if f.Since, _, err = s.scheduleSince(); err != nil {
		return f, nil, err
	}
	var times []time.Time
	var data []string
	for _, g := range rows {
		if _, err := os.Stat(g.Path); err != nil {
			continue // swept from the spool since
		}
		times = append(times, g.Times...)
		data = append(data, g.Path)
	}
	if len(times) > 0 {
		f.From, f.To = slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	}
	f.NewGranules = max(len(data)-last.Granules, 0)
	if f.Serving, err = s.champion(); err != nil {
		return f, nil, err
	}
	calendar, err := s.calendar(f.Serving)
	if err != nil {
		return f, nil, err
	}
	f.Champion, f.Outlook = f.Serving != "", outlookOf(calendar, times, s.Config.FirstDays, samples.DefaultSplit())
	if !f.Champion || len(data) == 0 {
		return f, data, nil
	}
	moved := s.drift(ctx, f.Serving, data)
	f.MaskDrift, f.ValueDrift = moved.Masks, moved.Values
	f.SkillLoss, err = s.Ledger.SkillLoss(ctx)
	return f, data, err
}

// shadows reports whether versions that win are shadowed. A first model is not:
// no other model could be published meanwhile.
func (s *Scheduler) shadows(champion bool) bool {
	return s.Config.ShadowDays > 0 && s.Config.Policy == PolicyAuto && champion
}

// policy returns the policy of the child: a version to be shadowed waits.
func (s *Scheduler) policy(f Facts) string {
	if s.shadows(f.Champion) {
		return PolicyAsk
	}
	return s.Config.Policy
}

// covariates returns the arguments that name the covariates of the dataset.
func (s *Scheduler) covariates(ctx context.Context, from, to time.Time) ([]string, error) {
	if s.Dataset.Covariates == nil || from.IsZero() {
		return nil, nil
	}
	return s.Dataset.Covariates(ctx, from, to)
}

// args returns the arguments of the child. They are kept with the job: the same
// ones resume it.
func (s *Scheduler) args(f Facts, data []string) []string {
	args := []string{
		"train", "--json-lines", "--store", s.Config.Store, "--dataset", s.Dataset.Name, "--engine", s.Config.Engine,
		"--policy", s.policy(f),
	}
	if f.Champion { // by its name: a promotion meanwhile would make it another training
		args = append(args, "--from", f.Serving)
	} else if s.Config.Size != "" {
		args = append(args, "--size", s.Config.Size)
	}
	if s.Config.Steps > 0 {
		args = append(args, "--steps", strconv.Itoa(s.Config.Steps))
	}
	return append(args, s.reading(data)...)
}
