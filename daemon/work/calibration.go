package work

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/pipeline/field"
	"lacuna/pipeline/skill"
)

// keptDays is how many scored days of a dataset are kept: a year of days that may
// be made again, and the days before that calibrate them.
const keptDays = 400

// keptCalibration are the scored days of a dataset, by which the uncertainties of
// its products are calibrated.
type keptCalibration struct {
	Method string            `json:"method"` // method that filled them, with what it was set to
	Days   []skill.ScoredDay `json:"days"`
}

// methodOf names what fills a job: another model, or other constants, err
// otherwise, and begin a calibration of their own.
func methodOf(job fill.Job) string {
	if job.Model != nil {
		return job.Model.Name()
	}
	tuned := ""
	if job.Constants != nil && job.Constants.Tuned() {
		tuned = " tuned" // on gaps of its own, which calibrates it too
	}
	return fmt.Sprintf("%s %+v%s", job.Fill.Method, job.Fill.OI, tuned)
}

// widening returns what the scored days of the dataset before a job say of the
// uncertainties of its method.
func (w *Worker) widening(job fill.Job) skill.Widening {
	var kept keptCalibration
	// A damaged file counts as none: days that are scored from now on replace it.
	if ok, err := state.Load(w.cfg.State.Calibration(w.set.Name), &kept); !ok || err != nil || kept.Method != methodOf(job) {
		return skill.Widening{}
	}
	first, _ := field.Span(job.Granule.Fields)
	return skill.Widen(kept.Days, first)
}

// keepScored adds a scored day to those of the dataset.
func (w *Worker) keepScored(job fill.Job, day skill.ScoredDay) error {
	file := w.cfg.State.Calibration(w.set.Name)
	var kept keptCalibration
	if ok, err := state.Load(file, &kept); !ok || err != nil || kept.Method != methodOf(job) {
		kept = keptCalibration{Method: methodOf(job)}
	}
	kept.add(day)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keep the calibration: %w", err)
	}
	if err := state.Save(file, kept); err != nil {
		return fmt.Errorf("keep the calibration: %w", err)
	}
	return nil
}

// add adds a day in order of time, in place of an earlier score of the same day.
func (k *keptCalibration) add(day skill.ScoredDay) {
	k.Days = slices.DeleteFunc(k.Days, func(d skill.ScoredDay) bool { return d.Day.Equal(day.Day) })
	at, _ := slices.BinarySearchFunc(k.Days, day.Day, func(d skill.ScoredDay, t time.Time) int { return d.Day.Compare(t) })
	k.Days = slices.Insert(k.Days, at, day)
	k.Days = k.Days[max(len(k.Days)-keptDays, 0):]
}
