package retrain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"lacuna/daemon/state"
	"lacuna/modelstore"
	"lacuna/pipeline/ingest"
)

// Dataset is a dataset whose model is renewed, and the way to read its
// granules.
type Dataset struct {
	Name string
	ingest.Options
	SeaMask string
}

// Granule is a file of a dataset in the spool.
type Granule struct {
	Path        string    // it may have been swept since
	First, Last time.Time // times of its fields
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
	Now  func() time.Time
	Log  *slog.Logger
}

// Scheduler renews the model of one dataset. It checks the triggers at an
// interval, runs one training at a time as a process of its own, and begins
// with the one that a stop or a crash left unfinished.
type Scheduler struct {
	Service
	child *child
	news  atomic.Pointer[string] // sentence for the status page; nil: none yet
}

// NewScheduler returns a scheduler, which starts nothing before Run.
func NewScheduler(s Service) *Scheduler {
	return &Scheduler{Service: s, child: &child{nice: s.Config.Nice, env: s.Config.environment()}}
}

// Hold pauses the training until the returned function is called. Filling has
// priority: a worker holds while it fills a granule.
func (s *Scheduler) Hold() (release func()) { return s.child.hold() }

// News returns a sentence on the state of the training, for people; empty: none
// yet.
func (s *Scheduler) News() string {
	if news := s.news.Load(); news != nil {
		return *news
	}
	return ""
}

// tries is the number of failures after which a job is given up: the same
// arguments fail the same way, and the next trigger makes a new job.
const tries = 3

// Run checks the triggers until ctx is cancelled, then returns nil. A training
// that fails is logged and tried again: filling does not depend on it.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	tick := time.NewTicker(s.Config.Check)
	defer tick.Stop()
	for ctx.Err() == nil { // a tick may come with the cancellation
		if err := s.inTurn(ctx, s.look); err != nil && ctx.Err() == nil {
			s.Log.Warn("training failed", "err", err, "retry_in", s.Config.Check)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// inTurn calls work when no other dataset is being trained.
func (s *Scheduler) inTurn(ctx context.Context, work func(context.Context) error) error {
	if s.Turn == nil {
		return work(ctx)
	}
	select {
	case s.Turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.Turn }()
	return work(ctx)
}

// look resumes an unfinished job, or begins one that is due.
func (s *Scheduler) look(ctx context.Context) error {
	var job unfinishedJob
	unfinished, err := state.Load(s.path(jobFile), &job)
	if err != nil {
		return err
	}
	if !unfinished {
		if busy, err := s.inShadow(ctx); busy || err != nil {
			return err
		}
		facts, data, err := s.facts(ctx)
		if err != nil {
			return err
		}
		due, why := s.Config.Due(facts)
		s.Log.Debug("training triggers", "due", due, "why", why)
		if !due {
			s.say(s.waiting(facts) + "not trained now: " + why)
			return nil
		}
		job = unfinishedJob{Args: s.args(facts, data), Why: why, Begun: s.Now(), Granules: len(data)}
		if err := state.Save(s.path(jobFile), job); err != nil {
			return err
		}
	}
	return s.train(ctx, job)
}

// waiting returns a sentence where a version has won and waits for an operator.
func (s *Scheduler) waiting(f Facts) string {
	if f.Last.State != StateWaiting || f.Last.Version == f.Serving {
		return ""
	}
	return fmt.Sprintf("version %s won and waits for 'lacuna models promote'; ", f.Last.Version)
}

// train runs a job to its end, or to that of its time.
func (s *Scheduler) train(ctx context.Context, job unfinishedJob) error {
	s.Log.Info("training begins", "why", job.Why, "granules", job.Granules)
	s.say("being trained: " + job.Why)
	argv := append(append([]string{}, s.Program...), job.Args...)
	last, err := s.child.run(ctx, argv, os.Stderr, func(e Event) {
		if e.Event == EventProgress {
			s.say(fmt.Sprintf("being trained (%s, step %d of %d): %s", e.Phase, e.Step, e.Steps, job.Why))
			s.Log.Debug("training", "phase", e.Phase, "step", e.Step, "steps", e.Steps, "loss", e.Loss)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err() // the job stays, and is resumed at the next start
	}
	if last.Event == EventStopped {
		s.Log.Info("training paused", "why", strings.Join(last.Reasons, "; "))
		return nil // likewise, at the next check
	}
	if err != nil {
		job.Failures++
		if job.Failures < tries {
			return errors.Join(err, state.Save(s.path(jobFile), job))
		}
		last = Event{State: StateFailed, Reasons: []string{err.Error()}}
	}
	memory := LastTraining{Ended: s.Now(), Granules: job.Granules, Version: last.Version, State: last.State, Reasons: last.Reasons}
	s.Log.Info("training ended", "state", last.State, "version", last.Version)
	if last.State == StateWaiting && s.shadows(true) {
		err = errors.Join(err, s.beginShadow(ctx, last.Version))
	}
	return errors.Join(err, state.Save(s.path(lastFile), memory), os.Remove(s.path(jobFile)))
}

// say sets the sentence for the status page.
func (s *Scheduler) say(news string) { s.news.Store(&news) }

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
	days := map[string]bool{}
	var data []string
	for _, g := range rows {
		if _, err := os.Stat(g.Path); err != nil {
			continue // swept from the spool since
		}
		days[g.First.UTC().Format(time.DateOnly)] = true
		data = append(data, g.Path)
	}
	f.Days, f.NewGranules = len(days), max(len(data)-last.Granules, 0)
	champion, err := modelstore.New(s.Config.Store, s.Now).Champion(s.Dataset.Name)
	f.Champion = err == nil
	if err != nil && !errors.Is(err, modelstore.ErrNoChampion) {
		return f, nil, err
	}
	if !f.Champion {
		return f, data, nil
	}
	f.Serving = champion.Version
	moved := s.drift(ctx, champion.Version, data)
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

// args returns the arguments of the child. They are kept with the job: the same
// ones resume it.
func (s *Scheduler) args(f Facts, data []string) []string {
	args := []string{
		"train", "--json-lines", "--store", s.Config.Store, "--dataset", s.Dataset.Name, "--engine", s.Config.Engine,
		"--policy", s.policy(f), "--time-budget", s.Config.Budget.String(),
	}
	if f.Champion {
		args = append(args, "--from", FromChampion)
	}
	return append(args, s.reading(data)...)
}
