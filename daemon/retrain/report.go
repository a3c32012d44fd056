package retrain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lacuna/daemon/state"
	"lacuna/internal/figure"
	"lacuna/pipeline/engine"
)

// What a scheduler does.
const (
	StandIdle      = "idle"       // nothing is due
	StandTraining  = "training"   // a training is under way
	StandPaused    = "paused"     // an operator holds trainings
	StandResting   = "resting"    // the budget of a session is spent
	StandWindow    = "window"     // a training is due, and waits for its time of the day
	StandShadow    = "shadow"     // a version is in its shadow days
	StandBrokenOff = "unfinished" // a training is half done, and goes on when the service runs
)

// Standing is what a scheduler did or found last, as it is kept for other processes.
type Standing struct {
	State       string    `json:"state"`
	Words       string    `json:"words,omitempty"` // a sentence; empty: the state says it
	At          time.Time `json:"at"`
	DueSince    time.Time `json:"due_since,omitzero"` // when the training that waits was due
	Phase       string    `json:"phase,omitempty"`
	Step        int       `json:"step,omitempty"`
	Steps       int       `json:"steps,omitempty"`
	LeftSeconds *float64  `json:"left_seconds,omitempty"` // rest of the phase
	Seen        []string  `json:"seen,omitempty"`         // what the triggers saw at the last look
}

// standEvery is the least time between two notes of the progress of a training.
const standEvery = 2 * time.Second

// stand notes what the scheduler does. Progress is noted now and then, everything
// else at once.
func (s *Scheduler) stand(now Standing) {
	now.At = s.Now()
	before := s.standing
	if now.State == StandTraining && before.State == StandTraining && now.Phase == before.Phase && now.At.Sub(before.At) < standEvery {
		return
	}
	if now.Seen == nil {
		now.Seen = before.Seen
	}
	if now.State == before.State && !before.DueSince.IsZero() && !now.DueSince.IsZero() {
		now.DueSince = before.DueSince
	}
	s.standing = now
	if err := state.Save(s.path(standingFile), now); err != nil {
		s.Log.Warn("state of the training not noted", "err", err)
	}
}

// Report is how the training of a dataset stands, for people and scripts.
type Report struct {
	Dataset     string        `json:"dataset"`
	State       string        `json:"state"` // idle, training, paused, resting, window, shadow or unfinished
	Words       string        `json:"words"` // the same in a sentence
	Why         string        `json:"why,omitempty"`
	Begun       time.Time     `json:"begun,omitzero"` // of the training that is not finished
	Until       time.Time     `json:"until,omitzero"` // when it goes on
	Since       time.Time     `json:"since,omitzero"` // since when a training waits or is under way
	Phase       string        `json:"phase,omitempty"`
	Step        int           `json:"step,omitempty"`
	Steps       int           `json:"steps,omitempty"`
	LeftSeconds *float64      `json:"left_seconds,omitempty"`
	Schedule    string        `json:"schedule"` // in words
	Next        time.Time     `json:"next,omitzero"`
	Window      string        `json:"window,omitempty"`
	Seen        []string      `json:"seen"` // what the triggers saw at the last look
	Last        *LastTraining `json:"last,omitempty"`
	NoGPU       string        `json:"no_gpu,omitempty"` // why trainings run without the GPU that they had; empty: they do not
	Failure     string        `json:"failure,omitempty"`
}

// Report returns how the training stands, from the files of the scheduler.
func (s *Scheduler) Report(running bool) (Report, error) {
	return s.desk().Report(s.Config, s.Dataset.Name, s.Now(), running)
}

// Report returns how the training of a dataset stands, from the files of its
// scheduler, which may be of another process. running: a service works on them.
func (d Desk) Report(cfg Config, dataset string, now time.Time, running bool) (Report, error) {
	r := Report{Dataset: dataset, Schedule: cfg.inWords(now), Next: cfg.next(now), Window: cfg.Window, Seen: []string{}}
	files, err := d.read()
	if err != nil {
		return r, err
	}
	if files.ended {
		r.Last = &files.last
	}
	r.Seen = append(r.Seen, files.standing.Seen...)
	r.Failure, r.NoGPU = failure(files.job, files.last), cfg.noGPU(files.job, files.last)
	if files.unfinished {
		r.Why, r.Begun, r.Since = files.job.Why, files.job.Begun, files.job.Begun
	}
	r.describe(files, cfg, now, running)
	if !files.unfinished {
		return r, nil
	}
	champion, err := championOf(cfg.Store, dataset)
	if err == nil && champion != files.job.Champion {
		r.Words += fmt.Sprintf("; the champion became %s meanwhile, and the new version is judged against that", champion)
	}
	return r, err
}

// filed is the content of the files of a scheduler.
type filed struct {
	standing                  Standing
	job                       unfinishedJob
	last                      LastTraining
	pause                     order
	unfinished, ended, paused bool
}

func (d Desk) read() (filed, error) {
	var f filed
	var errs [4]error
	_, errs[0] = state.Load(d.file(standingFile), &f.standing)
	f.unfinished, errs[1] = state.Load(d.file(jobFile), &f.job)
	f.ended, errs[2] = state.Load(d.file(lastFile), &f.last)
	f.pause, f.paused, errs[3] = d.paused()
	return f, errors.Join(errs[:]...)
}

// describe sets the state and its words.
func (r *Report) describe(f filed, cfg Config, now time.Time, running bool) {
	half := ""
	if f.unfinished {
		half = fmt.Sprintf("; the training of %s is half done and goes on from its checkpoints", moment(f.job.Begun))
	}
	w, _ := parseWindow(cfg.Window) // Validate reports the error
	open, opens := w.at(now)
	switch {
	case f.paused:
		r.State, r.Since = StandPaused, f.pause.At
		r.Words = fmt.Sprintf("paused by %s on %s, until 'lacuna train resume'%s", f.pause.By, moment(f.pause.At), half)
	case f.unfinished && f.job.Rests.After(now):
		r.State, r.Until = StandResting, f.job.Rests
		r.Words = fmt.Sprintf("rests until %s: the %s of train.budget are spent%s", moment(r.Until), figure.Duration(cfg.Budget), half)
	case f.unfinished && !open:
		r.State, r.Until = StandResting, opens
		r.Words = fmt.Sprintf("rests until train.window opens on %s%s", moment(opens), half)
	case f.unfinished && running && f.standing.State == StandTraining:
		r.State, r.Phase, r.Step, r.Steps, r.LeftSeconds = StandTraining, f.standing.Phase, f.standing.Step, f.standing.Steps, f.standing.LeftSeconds
		r.Words = "being trained" + f.standing.progress() + ": " + f.job.Why
	case f.unfinished:
		r.State, r.Words = StandBrokenOff, fmt.Sprintf("a training of %s is half done, and the service goes on with it: %s", moment(f.job.Begun), f.job.Why)
	case f.standing.State == "" || f.standing.State == StandTraining:
		r.State, r.Words = StandIdle, "not looked at yet"
	default:
		r.State, r.Words, r.Since = f.standing.State, f.standing.Words, f.standing.DueSince
	}
}

// progress says how far a training is.
func (n Standing) progress() string {
	if n.Steps == 0 {
		return ""
	}
	text := fmt.Sprintf(" (%s, step %d of %d", n.Phase, n.Step, n.Steps)
	if n.LeftSeconds != nil {
		text += ", " + figure.Seconds(float64(*n.LeftSeconds)) + " left of it"
	}
	return text + ")"
}

// failure returns why the last training failed; empty: it did not.
func failure(job unfinishedJob, last LastTraining) string {
	if job.Failures > 0 {
		return fmt.Sprintf("%d times in a row, and is tried again: %s", job.Failures, strings.Join(job.Failed, "; "))
	}
	if last.State == StateFailed {
		return strings.Join(last.Reasons, "; ")
	}
	return ""
}

// noGPU returns why trainings run without the GPU that they had, or were told to
// use; empty: they do not.
func (c Config) noGPU(job unfinishedJob, last LastTraining) string {
	if engine.OnGPU(c.Engine) && (job.NoEngine || job.Begun.IsZero() && last.NoEngine) {
		return "the engine " + c.Engine + " of train.engine cannot be opened, and nothing is trained"
	}
	on := job.Engine
	if on == "" {
		on = last.Engine
	}
	if c.Engine == engine.ORT || !last.OnGPU || on == "" || engine.OnGPU(on) {
		return ""
	}
	return "the last training ran on the processor, and earlier ones ran on a GPU"
}
