package retrain

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"lacuna/daemon/state"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
)

// The files of a scheduler in its folder.
const (
	jobFile      = "job.json"      // the training that is under way or broke off
	lastFile     = "last.json"     // the last one that ended
	driftFile    = "drift.json"    // the last measurement of drift
	shadowFile   = "shadow.json"   // the version in its shadow days
	scheduleFile = "schedule.json" // since when the schedule counts
	standingFile = "standing.json" // what the scheduler does or found last
	pauseFile    = "pause.json"    // an operator holds trainings
	cancelFile   = "cancel.json"   // an operator ends the training under way
)

func (s *Scheduler) path(name string) string { return filepath.Join(s.Folder, name) }

// unfinishedJob is a training that was begun. The same arguments find its
// checkpoints again.
type unfinishedJob struct {
	Args        []string  `json:"args"`
	Why         string    `json:"why"`
	Begun       time.Time `json:"begun"`
	Granules    int       `json:"granules"`
	Failures    int       `json:"failures"`              // failures in a row
	Failed      []string  `json:"failed,omitempty"`      // what the last of them said
	Champion    string    `json:"champion,omitempty"`    // version that it began with; empty: none
	Checkpoints string    `json:"checkpoints,omitempty"` // folder of its checkpoints
	Engine      string    `json:"engine,omitempty"`
	NoEngine    bool      `json:"no_engine,omitempty"` // the last failure was that its engine cannot be opened
	Session     time.Time `json:"session,omitzero"`    // when the present session began; zero: none
	Rests       time.Time `json:"rests,omitzero"`      // when the next session begins, where the last one has spent its budget
}

// LastTraining is the record of the last training.
type LastTraining struct {
	Ended    time.Time `json:"ended"`
	Why      string    `json:"why,omitempty"` // its trigger
	Granules int       `json:"granules"`      // granules at the time
	Version  string    `json:"version,omitempty"`
	State    string    `json:"state,omitempty"`
	Reasons  []string  `json:"reasons,omitempty"`
	Refusals int       `json:"refusals,omitempty"` // versions in a row that did not win
	Engine   string    `json:"engine,omitempty"`   // engine that it ran on; empty: not known
	NoEngine bool      `json:"no_engine,omitempty"`
	OnGPU    bool      `json:"on_gpu,omitempty"` // it, or one before it, ran on a GPU
}

// end records the end of a training and forgets the job.
func (s *Scheduler) end(job unfinishedJob, done Event) error {
	var last LastTraining
	if _, err := state.Load(s.path(lastFile), &last); err != nil {
		return err
	}
	now := LastTraining{
		Ended: s.Now(), Why: job.Why, Granules: job.Granules, Version: done.Version, State: done.State, Reasons: done.Reasons,
		Refusals: refusals(last, done), Engine: job.Engine, NoEngine: job.NoEngine && done.State == StateFailed, OnGPU: last.OnGPU || engine.OnGPU(job.Engine),
	}
	s.Log.Info("training ended", "state", done.State, "version", done.Version)
	s.stand(Standing{State: StandIdle, Words: "the training has ended: " + done.State})
	return errors.Join(state.Save(s.path(lastFile), now), state.Remove(s.path(jobFile)), state.Remove(s.path(cancelFile)))
}

// refusals counts the versions in a row that did not win.
func refusals(last LastTraining, done Event) int {
	switch done.State {
	case StateRefused:
		return last.Refusals + 1
	case StatePromoted, StateWaiting:
		return 0
	}
	return last.Refusals // a training that was not judged says nothing of the next
}

// champion returns the version that serves the dataset, empty where there is none.
func (s *Scheduler) champion() (string, error) { return championOf(s.Config.Store, s.Dataset.Name) }

func championOf(store, dataset string) (string, error) {
	e, err := modelstore.New(store, time.Now).Champion(dataset)
	if errors.Is(err, modelstore.ErrNoChampion) {
		return "", nil
	}
	return e.Version, err
}

// Plan reports whether a training is under way or due, and the reason either
// way. It begins none, but measures the drift where that is not fresh.
func (s *Scheduler) Plan(ctx context.Context) (due bool, why string, err error) {
	report, err := s.Report(false)
	if err != nil {
		return false, "", err
	}
	switch report.State {
	case StandPaused, StandShadow:
		return false, report.Words, nil
	case StandResting, StandBrokenOff:
		return true, report.Words, nil
	}
	facts, _, err := s.facts(ctx)
	if err != nil {
		return false, "", err
	}
	due, why = s.Config.Due(facts)
	if open, opens := s.window.at(s.Now()); due && !open {
		why += "; it begins when train.window opens on " + moment(opens)
	}
	return due, why, nil
}
