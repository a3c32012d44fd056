package retrain

import (
	"fmt"
	"strings"
	"time"

	"lacuna/internal/figure"
)

// Facts are the input of the triggers.
type Facts struct {
	Now         time.Time
	Champion    bool      // a champion serves
	LastTrained time.Time // end of the last training, whatever its result; zero: never
	Since       time.Time // times of the schedule count from here, and from the last training; zero: none counts
	Outlook     Outlook
	NewGranules int       // granules since the last training
	From, To    time.Time // times of the first and the last field; zero: there is none
	Last        LastTraining
	Serving     string // version of the champion
	// Measured drift; nil: not known.
	MaskDrift, ValueDrift, SkillLoss *float64
}

// ended reports whether the last training came to an end that a new day does not
// change: only a trigger makes another. One that failed is tried again.
func (f Facts) ended() bool { return f.Last.State != "" && f.Last.State != StateFailed }

// Due reports whether a model is to be trained now, and the reason either way.
func (c Config) Due(f Facts) (due bool, why string) {
	switch {
	case c.Store == "":
		return false, "training is off: no store is configured"
	case !f.Outlook.ready():
		return false, f.Outlook.words()
	case !f.LastTrained.IsZero() && f.NewGranules == 0:
		return false, "nothing new since the last training"
	case !f.LastTrained.IsZero() && f.Now.Sub(f.LastTrained) < c.Apart:
		return false, fmt.Sprintf("the last training ended %s, and train.apart keeps %s between two: not before %s",
			figure.Ago(f.Now, f.LastTrained), figure.Duration(c.Apart), moment(f.LastTrained.Add(c.Apart)))
	case !f.Champion && !f.ended():
		return true, fmt.Sprintf("no model serves yet, and %d days are there", f.Outlook.Days)
	}
	for _, t := range c.triggers(f) {
		if t.due {
			return true, t.saw
		}
	}
	return false, noTrigger + ": " + strings.Join(c.Seen(f), "; ")
}

// noTrigger begins the reason where every trigger was asked.
const noTrigger = "no trigger"

// trigger is a reason to train, with what it saw.
type trigger struct {
	due bool
	saw string
}

// Seen says what every trigger saw, a sentence each.
func (c Config) Seen(f Facts) []string {
	var all []string
	for _, t := range c.triggers(f) {
		all = append(all, t.saw)
	}
	return all
}

func (c Config) triggers(f Facts) []trigger {
	var all []trigger
	if f.Champion {
		all = append(all,
			moved("recent gaps surprise the model by %.2f standard deviations more than those it was made with, and a training begins beyond %.2f",
				"how far gaps have moved is not known yet", f.MaskDrift, c.Drift.Masks),
			moved("recent values have moved by %.2f of their standard deviation, and a training begins beyond %.2f",
				"how far values have moved is not known yet", f.ValueDrift, c.Drift.Values),
			moved("the error of recent products has risen by a share of %.2f, and a training begins beyond %.2f",
				"the error of recent products has not risen beyond chance", f.SkillLoss, c.Drift.Skill))
	}
	if c.NewGranules > 0 {
		since := "since the last training"
		if f.LastTrained.IsZero() {
			since = "before any training"
		}
		all = append(all, trigger{
			f.NewGranules >= c.NewGranules, fmt.Sprintf("%d new granules %s, and a training begins with %d", f.NewGranules, since, c.NewGranules),
		})
	}
	return append(all, c.scheduled(f))
}

// moved is the trigger of a measured drift.
func moved(words, unknown string, by *float64, limit float64) trigger {
	if by == nil {
		return trigger{saw: unknown}
	}
	return trigger{limit > 0 && *by > limit, fmt.Sprintf(words, *by, limit)}
}

// scheduled is the trigger of the schedule: a time of it has passed since it was
// first looked at, and since the last training.
func (c Config) scheduled(f Facts) trigger {
	since := f.Since
	if f.LastTrained.After(since) {
		since = f.LastTrained
	}
	if f.Since.IsZero() {
		since = time.Time{} // nobody watches it
	}
	if at := c.next(since); !at.IsZero() && !at.After(f.Now) {
		return trigger{true, "scheduled for " + moment(at)}
	}
	next := c.next(f.Now)
	if next.IsZero() {
		return trigger{saw: c.inWords(f.Now)}
	}
	return trigger{saw: fmt.Sprintf("scheduled %s, next on %s", c.inWords(f.Now), moment(next))}
}
