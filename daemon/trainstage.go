package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"lacuna/modelstore"
	"lacuna/ops/ledger"

	"github.com/google/renameio/v2"
)

// trainStage renews the model of one dataset. It looks at the triggers now and
// then, runs one training at a time as a child, and begins with the one that a
// stop or a crash left unfinished.
type trainStage struct {
	cfg     Train
	set     Dataset
	book    *ledger.Ledger
	child   *trainChild
	program []string // argv of lacuna, before "train"
	folder  string   // for what the stage remembers
	// turn is taken while a training runs, so that those of several datasets
	// do not share the device; nil: there is no other.
	turn chan struct{}
	now  func() time.Time
	log  *slog.Logger
	news atomic.Pointer[string] // what the stage does, for people; nil: nothing yet
}

// newTrainStage returns the stage of a dataset, nil where training is off. The
// worker of the dataset holds the child while it fills.
func newTrainStage(cfg Train, set Dataset, book *ledger.Ledger, d *Daemon, program []string) *trainStage {
	if cfg.Store == "" {
		return nil
	}
	return &trainStage{
		cfg: cfg, set: set, book: book, child: &trainChild{nice: cfg.Nice, env: cfg.environment()}, program: program,
		folder: filepath.Join(d.cfg.trainDir(), set.Name), now: d.parts.Now, log: d.log.With("dataset", set.Name),
	}
}

// trainJob is a training that was begun: the same arguments find its
// checkpoints again.
type trainJob struct {
	Args     []string  `json:"args"`
	Why      string    `json:"why"`
	Begun    time.Time `json:"begun"`
	Granules int       `json:"granules"`
	Failures int       `json:"failures"` // in a row
}

// trainMemory is what is remembered of the last training.
type trainMemory struct {
	Ended    time.Time `json:"ended"`
	Granules int       `json:"granules"` // that were there
	Version  string    `json:"version,omitempty"`
	State    string    `json:"state,omitempty"`
	Reasons  []string  `json:"reasons,omitempty"`
}

// States of a version that was trained.
const (
	stateWaiting = "waiting" // it won and waits for a person
	stateRefused = "refused" // it did not win
)

// Failures after which a job is given up: the same arguments fail the same
// way, and the next trigger makes a new one.
const trainTries = 3

// run looks at the triggers until ctx is cancelled, then returns nil. A
// training that fails is told and tried again: filling does not depend on it.
func (s *trainStage) run(ctx context.Context) error {
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	tick := time.NewTicker(s.cfg.Check)
	defer tick.Stop()
	for ctx.Err() == nil { // a tick may come with the cancellation
		if err := s.inTurn(ctx, s.look); err != nil && ctx.Err() == nil {
			s.log.Warn("training failed", "err", err, "retry_in", s.cfg.Check)
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
func (s *trainStage) inTurn(ctx context.Context, work func(context.Context) error) error {
	if s.turn == nil {
		return work(ctx)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	return work(ctx)
}

// look goes on with an unfinished job, or begins one that is due.
func (s *trainStage) look(ctx context.Context) error {
	var job trainJob
	unfinished, err := loadJSON(s.path("job.json"), &job)
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
		due, why := s.cfg.Due(facts)
		s.log.Debug("training triggers", "due", due, "why", why)
		if !due {
			s.say(s.waiting(facts) + "not trained now: " + why)
			return nil
		}
		job = trainJob{Args: s.args(facts, data), Why: why, Begun: s.now(), Granules: len(data)}
		if err := saveJSON(s.path("job.json"), job); err != nil {
			return err
		}
	}
	return s.train(ctx, job)
}

// waiting says that a version has won and waits for a person, where one does.
func (s *trainStage) waiting(f TrainFacts) string {
	if f.Last.State != stateWaiting || f.Last.Version == f.Serving {
		return ""
	}
	return fmt.Sprintf("version %s won and waits for 'lacuna models promote'; ", f.Last.Version)
}

// train runs a job to its end, or to that of its time.
func (s *trainStage) train(ctx context.Context, job trainJob) error {
	s.log.Info("training begins", "why", job.Why, "granules", job.Granules)
	s.say("being trained: " + job.Why)
	argv := append(append([]string{}, s.program...), job.Args...)
	last, err := s.child.run(ctx, argv, os.Stderr, func(e TrainEvent) {
		if e.Event == "progress" {
			s.say(fmt.Sprintf("being trained (%s, step %d of %d): %s", e.Phase, e.Step, e.Steps, job.Why))
			s.log.Debug("training", "phase", e.Phase, "step", e.Step, "steps", e.Steps, "loss", e.Loss)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err() // the job stays, and goes on at the next start
	}
	if last.Event == "stopped" {
		s.log.Info("training paused", "why", strings.Join(last.Reasons, "; "))
		return nil // likewise, at the next look
	}
	if err != nil {
		job.Failures++
		if job.Failures < trainTries {
			return errors.Join(err, saveJSON(s.path("job.json"), job))
		}
		last = TrainEvent{State: "failed", Reasons: []string{err.Error()}}
	}
	memory := trainMemory{Ended: s.now(), Granules: job.Granules, Version: last.Version, State: last.State, Reasons: last.Reasons}
	s.log.Info("training ended", "state", last.State, "version", last.Version)
	if last.State == stateWaiting && s.shadows(true) {
		err = errors.Join(err, s.beginShadow(ctx, last.Version))
	}
	return errors.Join(err, saveJSON(s.path("last.json"), memory), os.Remove(s.path("job.json")))
}

// say keeps what the stage does for the status page.
func (s *trainStage) say(news string) { s.news.Store(&news) }

// facts gathers what triggers are decided from, and the files to learn from.
func (s *trainStage) facts(ctx context.Context) (TrainFacts, []string, error) {
	rows, err := s.book.Window(ctx, s.set.Name, time.Time{}, s.now().AddDate(1, 0, 0))
	if err != nil {
		return TrainFacts{}, nil, err
	}
	var last trainMemory
	if _, err := loadJSON(s.path("last.json"), &last); err != nil {
		return TrainFacts{}, nil, err
	}
	f := TrainFacts{Now: s.now(), LastTrained: last.Ended, Last: last}
	days := map[string]bool{}
	var data []string
	for _, g := range rows {
		if _, err := os.Stat(g.SpoolPath); err != nil {
			continue // swept from the spool since
		}
		days[g.First.UTC().Format(time.DateOnly)] = true
		data = append(data, g.SpoolPath)
	}
	f.Days, f.NewGranules = len(days), max(len(data)-last.Granules, 0)
	champion, err := modelstore.New(s.cfg.Store, s.now).Champion(s.set.Name)
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
	f.SkillLoss, err = s.skillLoss(ctx)
	return f, data, err
}

// shadows reports whether versions that win are shadowed. A first model is not:
// there is nothing to be published instead.
func (s *trainStage) shadows(champion bool) bool {
	return s.cfg.ShadowDays > 0 && s.cfg.Policy == "auto" && champion
}

// policy returns that of the child: one that is to be shadowed waits.
func (s *trainStage) policy(f TrainFacts) string {
	if s.shadows(f.Champion) {
		return "ask"
	}
	return s.cfg.Policy
}

// args returns the arguments of the child. They are kept with the job: with
// the same ones it goes on where it was.
func (s *trainStage) args(f TrainFacts, data []string) []string {
	args := []string{
		"train", "--json-lines", "--store", s.cfg.Store, "--dataset", s.set.Name, "--engine", s.cfg.Engine,
		"--policy", s.policy(f), "--time-budget", s.cfg.Budget.String(),
	}
	if f.Champion {
		args = append(args, "--from", "champion")
	}
	return append(args, s.reading(data)...)
}

func (s *trainStage) path(name string) string { return filepath.Join(s.folder, name) }

// loadJSON reads a small file of the daemon's state and reports whether it was
// there.
func loadJSON(path string, v any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("%s is damaged, remove it: %w", path, err)
	}
	return true, nil
}

func saveJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o644)
}
