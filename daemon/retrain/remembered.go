package retrain

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"lacuna/daemon/state"
)

// The files of a scheduler in its folder.
const (
	jobFile    = "job.json"    // the training that is under way or broke off
	lastFile   = "last.json"   // the last one that ended
	driftFile  = "drift.json"  // the last measurement of drift
	shadowFile = "shadow.json" // the version in its shadow days
)

func (s *Scheduler) path(name string) string { return filepath.Join(s.Folder, name) }

// unfinishedJob is a training that was begun. The same arguments find its
// checkpoints again.
type unfinishedJob struct {
	Args     []string  `json:"args"`
	Why      string    `json:"why"`
	Begun    time.Time `json:"begun"`
	Granules int       `json:"granules"`
	Failures int       `json:"failures"` // failures in a row
}

// LastTraining is the record of the last training.
type LastTraining struct {
	Ended    time.Time `json:"ended"`
	Granules int       `json:"granules"` // granules at the time
	Version  string    `json:"version,omitempty"`
	State    string    `json:"state,omitempty"`
	Reasons  []string  `json:"reasons,omitempty"`
}

// Plan reports whether a training is under way or due, and the reason either
// way. It begins none, but measures the drift where that is not fresh.
func (s *Scheduler) Plan(ctx context.Context) (due bool, why string, err error) {
	var job unfinishedJob
	unfinished, err := state.Load(s.path(jobFile), &job)
	if err != nil {
		return false, "", err
	}
	if unfinished {
		return true, fmt.Sprintf("a training of %s is under way or broke off: %s", job.Begun.UTC().Format("2006-01-02 15:04"), job.Why), nil
	}
	facts, _, err := s.facts(ctx)
	if err != nil {
		return false, "", err
	}
	due, why = s.Config.Due(facts)
	return due, why, nil
}

// Failure returns why the last training failed, from the files of a scheduler,
// so that it is known without a daemon too; empty: it did not fail.
func Failure(folder string) string {
	var job unfinishedJob
	if known, err := state.Load(filepath.Join(folder, jobFile), &job); known && err == nil && job.Failures > 0 {
		return fmt.Sprintf("%d times in a row; it is tried again", job.Failures)
	}
	var last LastTraining
	if known, err := state.Load(filepath.Join(folder, lastFile), &last); known && err == nil && last.State == StateFailed {
		return strings.Join(last.Reasons, "; ")
	}
	return ""
}
