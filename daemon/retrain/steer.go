package retrain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lacuna/daemon/state"
)

// Desk is the folder of a scheduler, where an operator steers it, from this process
// or another one. A scheduler that runs obeys within seconds, else when it is
// started.
type Desk string

// order is the file by which an operator steers.
type order struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Begun time.Time `json:"begun,omitzero"` // of the training that is meant
}

func (d Desk) file(name string) string { return filepath.Join(string(d), name) }

// Pause stops the training of a dataset with a checkpoint, and lets none begin
// until Resume. It reports whether it was not paused before.
func (d Desk) Pause(by string, now time.Time) (bool, error) {
	if _, held, err := d.paused(); held || err != nil {
		return false, err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return false, err
	}
	return true, state.Save(d.file(pauseFile), order{By: by, At: now})
}

// Resume ends a pause, and reports whether there was one.
func (d Desk) Resume() (bool, error) {
	_, held, err := d.paused()
	if err != nil {
		return false, err
	}
	return held, state.Remove(d.file(pauseFile))
}

// ErrNothingToCancel says that no training is under way.
var ErrNothingToCancel = errors.New("no training is under way, and no version is in its shadow days")

// Cancel ends the training under way for good, with its checkpoints, or the shadow
// days of a version. The next trigger begins another training.
func (d Desk) Cancel(by string, now time.Time) error {
	var job unfinishedJob
	unfinished, err := state.Load(d.file(jobFile), &job)
	if err != nil {
		return err
	}
	var v shadowVersion
	shadow, err := state.Load(d.file(shadowFile), &v)
	if err != nil {
		return err
	}
	if !unfinished && !shadow {
		return ErrNothingToCancel
	}
	return state.Save(d.file(cancelFile), order{By: by, At: now, Begun: job.Begun})
}

func (d Desk) paused() (order, bool, error) {
	var o order
	held, err := state.Load(d.file(pauseFile), &o)
	return o, held, err
}

// cancelled returns the order to end a training that began at a time.
func (d Desk) cancelled(begun time.Time) (order, bool, error) {
	var o order
	asked, err := state.Load(d.file(cancelFile), &o)
	return o, asked && o.Begun.Equal(begun), err
}

// desk returns the desk of the scheduler.
func (s *Scheduler) desk() Desk { return Desk(s.Folder) }

// obey carries out an order to end what is under way, while no process runs. It
// reports whether there was one.
func (s *Scheduler) obey() (bool, error) {
	var job unfinishedJob
	unfinished, err := state.Load(s.path(jobFile), &job)
	if err != nil {
		return false, err
	}
	o, asked, err := s.desk().cancelled(job.Begun)
	if err != nil {
		return false, err
	}
	if !asked { // an order may be there about a training that has ended by itself
		return false, state.Remove(s.path(cancelFile))
	}
	if unfinished {
		return true, s.cancel(job, o)
	}
	var v shadowVersion
	if _, err := state.Load(s.path(shadowFile), &v); err != nil {
		return true, err
	}
	ended := Event{State: StateWaiting, Reasons: []string{fmt.Sprintf("its shadow days were ended by %s", o.By)}}
	return true, errors.Join(s.remember(ended), state.Remove(s.path(shadowFile)), state.Remove(s.path(cancelFile)))
}

// cancel ends a job for good.
func (s *Scheduler) cancel(job unfinishedJob, o order) error {
	if job.Checkpoints != "" {
		if err := os.RemoveAll(job.Checkpoints); err != nil {
			return fmt.Errorf("clear the checkpoints of the training that was cancelled: %w", err)
		}
	}
	s.Log.Info("training cancelled", "by", o.By)
	return s.end(job, Event{State: StateCancelled, Reasons: []string{"ended by " + o.By}})
}
