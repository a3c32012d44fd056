package retrain

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// Facts are the input of the triggers.
type Facts struct {
	Now         time.Time
	Champion    bool      // a champion serves
	LastTrained time.Time // end of the last training, whatever its result; zero: never
	Days        int       // days with data
	NewGranules int       // granules since the last training
	Last        LastTraining
	Serving     string // version of the champion
	// Measured drift; nil: not known.
	MaskDrift, ValueDrift, SkillLoss *float64
}

// Due reports whether a model is to be trained now, and the reason either way.
func (c Config) Due(f Facts) (due bool, why string) {
	switch {
	case c.Store == "":
		return false, "training is off: no store is configured"
	case f.Days < c.FirstDays:
		return false, fmt.Sprintf("%d of %d days are there", f.Days, c.FirstDays)
	case !f.LastTrained.IsZero() && f.NewGranules == 0:
		return false, "nothing new since the last training"
	case !f.LastTrained.IsZero() && f.Now.Sub(f.LastTrained) < c.Apart:
		return false, fmt.Sprintf("the last training was %v ago, less than %v", f.Now.Sub(f.LastTrained).Round(time.Minute), c.Apart)
	case !f.Champion && f.Last.State != StateRefused:
		return true, fmt.Sprintf("no model serves yet, and %d days are there", f.Days)
	}
	for _, trigger := range []func(Facts) (bool, string){c.drifted, c.enoughNew, c.scheduled} {
		if due, why := trigger(f); due {
			return true, why
		}
	}
	return false, "no trigger"
}

// drifted reports whether a measured drift is beyond its limit.
func (c Config) drifted(f Facts) (bool, string) {
	for _, d := range []struct {
		name  string
		moved *float64
		limit float64
	}{
		{"the gaps", f.MaskDrift, c.Drift.Masks},
		{"the values", f.ValueDrift, c.Drift.Values},
		{"the error of recent products", f.SkillLoss, c.Drift.Skill},
	} {
		if d.moved != nil && d.limit > 0 && *d.moved > d.limit {
			return true, fmt.Sprintf("%s moved by %.2f, more than %.2f", d.name, *d.moved, d.limit)
		}
	}
	return false, ""
}

func (c Config) enoughNew(f Facts) (bool, string) {
	return c.NewGranules > 0 && f.NewGranules >= c.NewGranules, fmt.Sprintf("%d new granules since the last training", f.NewGranules)
}

// scheduled reports whether a time of the schedule has passed since the last
// training.
func (c Config) scheduled(f Facts) (bool, string) {
	if c.Schedule == "" {
		return false, ""
	}
	s, err := cron.ParseStandard(c.Schedule)
	if err != nil {
		return false, "" // Validate reports it
	}
	next := s.Next(f.LastTrained.UTC())
	return !next.After(f.Now), "scheduled for " + next.Format("2006-01-02 15:04") + " UTC"
}
