package work

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/daemon/state"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/skill"
)

// keptDays is how many scored days of a dataset are kept: a year of days that may
// be made again, and the days before that calibrate them.
const keptDays = 400

// keptMethods is how many methods of a dataset are kept, those that were scored
// last: optimal interpolation with the constants of the dataset and without, the
// model, and the one before.
const keptMethods = 4

// evidenceVersion is the layout of the file.
const evidenceVersion = 2

// keptEvidence are the scored days of a dataset, by which the uncertainties of its
// products are calibrated, and by which a model is followed.
type keptEvidence struct {
	Version int          `json:"version"`
	Methods []keptMethod `json:"methods"` // the one that was scored last at the end
}

// keptMethod are the scored days of one method.
type keptMethod struct {
	Method string            `json:"method"` // with what it was set to
	Days   []skill.ScoredDay `json:"days"`
	// Departures are those of a model that was not judged on the dataset, from
	// optimal interpolation.
	Departures []skill.Departure `json:"departures,omitempty"`
	// Means are the errors of the two means of a model.
	Means []scoredMeans `json:"means,omitempty"`
}

// scoredMeans are the mean squared errors of the two means of a model on a day.
type scoredMeans = jobs.Means

// scored is a day that was scored for a job.
type scored struct {
	job       fill.Job
	day       skill.ScoredDay
	departure *skill.Departure // nil: no model has to show that it can be followed
	means     *scoredMeans     // nil: there is one only
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
	if names := job.Explained.Names; names != "" {
		tuned += " with " + names
	}
	return fmt.Sprintf("%s %+v%s", job.Fill.Method, job.Fill.OI, tuned)
}

// evidence returns the scored days of the dataset.
func (w *Worker) evidence() keptEvidence {
	var kept struct {
		keptEvidence
		keptMethod // the only one, as it was kept before there were versions
	}
	// A damaged file counts as none: days that are scored from now on replace it.
	ok, err := state.Load(w.cfg.State.Calibration(w.set.Name), &kept)
	switch {
	case !ok || err != nil || kept.Version > evidenceVersion:
		return keptEvidence{}
	case kept.Version == 0 && kept.Method != "":
		return keptEvidence{Methods: []keptMethod{kept.keptMethod}}
	}
	return kept.keptEvidence
}

// of returns the scored days of a method.
func (k keptEvidence) of(method string) keptMethod {
	for _, m := range k.Methods {
		if m.Method == method {
			return m
		}
	}
	return keptMethod{Method: method}
}

// widening returns what the scored days of the dataset before a job say of the
// uncertainties of its method.
func (w *Worker) widening(job fill.Job) skill.Widening {
	first, _ := field.Span(job.Granule.Fields)
	return skill.Widen(w.evidence().of(methodOf(job)).Days, first)
}

// trust returns how far the scored days of the dataset before a job say that the
// model of a choice should be followed.
func (w *Worker) trust(job fill.Job, c fill.Choice) skill.Trust {
	first, _ := field.Span(job.Granule.Fields)
	return skill.Trusted(w.evidence().of(c.Model.Name()).Departures, first, c.Elsewhere)
}

// centre returns the mean of the job's model that erred less on the scored days of
// the dataset before it; empty: they are too few to tell.
func (w *Worker) centre(job fill.Job) impute.Centre {
	if job.Model == nil {
		return ""
	}
	first, _ := field.Span(job.Granule.Fields)
	return betterMean(w.evidence().of(methodOf(job)).Means, first)
}

// betterMean returns the mean that erred less over the days before a time.
func betterMean(days []scoredMeans, before time.Time) impute.Centre {
	var oneStep, members float64
	n := 0
	for _, d := range days {
		if d.Day.Before(before) {
			oneStep, members = oneStep+d.OneStep*float64(d.Pixels), members+d.Members*float64(d.Pixels)
			n++
		}
	}
	switch {
	case n < skill.TrustDays:
		return ""
	case members < oneStep:
		return impute.MembersMean
	}
	return impute.OneStep
}

// keepScored adds scored days to those of the dataset.
func (w *Worker) keepScored(days ...scored) error {
	file, kept := w.cfg.State.Calibration(w.set.Name), w.evidence()
	kept.Version = evidenceVersion
	for _, d := range days {
		kept.add(d)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keep the calibration: %w", err)
	}
	if err := state.Save(file, kept); err != nil {
		return fmt.Errorf("keep the calibration: %w", err)
	}
	return nil
}

// add adds a day to those of its method, which becomes the last one.
func (k *keptEvidence) add(d scored) {
	m := k.of(methodOf(d.job))
	m.Days = inOrder(m.Days, d.day, func(x skill.ScoredDay) time.Time { return x.Day })
	if d.departure != nil {
		m.Departures = inOrder(m.Departures, *d.departure, func(x skill.Departure) time.Time { return x.Day })
	}
	if d.means != nil {
		m.Means = inOrder(m.Means, *d.means, func(x scoredMeans) time.Time { return x.Day })
	}
	k.Methods = slices.DeleteFunc(k.Methods, func(other keptMethod) bool { return other.Method == m.Method })
	k.Methods = append(k.Methods, m)
	k.Methods = k.Methods[max(len(k.Methods)-keptMethods, 0):]
}

// inOrder adds a day in order of time, in place of an earlier one of the same
// time, and leaves the oldest out where there are too many.
func inOrder[T any](days []T, next T, at func(T) time.Time) []T {
	days = slices.DeleteFunc(days, func(d T) bool { return at(d).Equal(at(next)) })
	place, _ := slices.BinarySearchFunc(days, at(next), func(d T, t time.Time) int { return at(d).Compare(t) })
	days = slices.Insert(days, place, next)
	return days[max(len(days)-keptDays, 0):]
}
