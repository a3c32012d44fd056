package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/pipeline/engine"

	"github.com/robfig/cron/v3"
)

// Train says when and how the models of the daemon are renewed. Without a
// store nothing is trained.
type Train struct {
	Store    string `yaml:"store"`    // folder of the model store; empty: off
	Schedule string `yaml:"schedule"` // cron expression, in UTC; empty: no schedule
	Policy   string `yaml:"policy"`   // auto, ask or never: who promotes a version that won
	Engine   string `yaml:"engine"`
	Library  string `yaml:"library"` // libonnxruntime, an absolute path; empty: found
	Plugin   string `yaml:"plugin"`  // PJRT plug-in for CUDA, an absolute path; empty: found

	// ShadowDays, where it is not 0, is how many new days a version that won fills
	// beside the champion before it is promoted, by policy auto.
	ShadowDays int `yaml:"shadow_days"`

	FirstDays   int           `yaml:"first_days"`   // days of data before the first model is trained
	NewGranules int           `yaml:"new_granules"` // so many since the last training are reason enough; 0: they are none
	Apart       time.Duration `yaml:"apart"`        // least time from one training to the next
	Budget      time.Duration `yaml:"budget"`       // of one go; what is left goes on at the next
	Nice        int           `yaml:"nice"`         // of the process, 0..19
	Check       time.Duration `yaml:"check"`        // how often triggers are looked at

	Drift DriftLimits `yaml:"drift"`
}

// DriftLimits are how far things may move before a model is renewed; 0: they
// may move as they like.
type DriftLimits struct {
	Masks  float64 `yaml:"masks"`  // how much more recent gaps surprise the prior, in standard deviations of a mask
	Values float64 `yaml:"values"` // of the distribution of recent values, in standard deviations of the values
	Skill  float64 `yaml:"skill"`  // error of recent products over that of the weeks before, less one
}

// DefaultTrain returns the settings that hold where a file is silent.
func DefaultTrain() Train {
	return Train{
		Schedule: "0 2 * * 0", // Sunday night: a week of granules, and nobody waits for the machine
		Policy:   "auto", Engine: "auto",
		FirstDays:   90, // a season: with less the gaps of the held-out days are hardly others than the learned ones
		NewGranules: 30,
		Apart:       24 * time.Hour,
		Budget:      8 * time.Hour, // a night
		Nice:        19,
		Check:       10 * time.Minute,
		Drift:       DriftLimits{Masks: 0.5, Values: 0.5, Skill: 0.2},
	}
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (t *Train) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Train
	*t = DefaultTrain()
	return unmarshal((*plain)(t))
}

// Validate reports everything wrong with t. Each message begins with the key.
func (t Train) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for key, path := range map[string]string{"library": t.Library, "plugin": t.Plugin} {
		check(path == "" || filepath.IsAbs(path), "%s is %q, must be an absolute path", key, path)
	}
	if t.Store == "" {
		return errors.Join(errs...) // off: nothing else is looked at
	}
	if t.Schedule != "" {
		_, err := cron.ParseStandard(t.Schedule)
		check(err == nil, "schedule is %q: %v", t.Schedule, err)
	}
	check(slices.Contains([]string{"auto", "ask", "never"}, t.Policy), "policy is %q, must be auto, ask or never", t.Policy)
	check(t.FirstDays > 0, "first_days is %d, must be positive", t.FirstDays)
	check(t.ShadowDays >= 0, "shadow_days is %d, must not be negative", t.ShadowDays)
	check(t.NewGranules >= 0, "new_granules is %d, must not be negative", t.NewGranules)
	check(t.Apart >= 0, "apart is %v, must not be negative", t.Apart)
	check(t.Budget > 0, "budget is %v, must be positive", t.Budget)
	check(t.Nice >= 0 && t.Nice <= 19, "nice is %d, must be 0..19", t.Nice)
	check(t.Check > 0, "check is %v, must be positive", t.Check)
	check(t.Drift.Masks >= 0 && t.Drift.Values >= 0 && t.Drift.Skill >= 0, "drift has a negative limit")
	return errors.Join(errs...)
}

// libraries is where the engine is loaded from, for this process.
func (t Train) libraries() engine.Config { return engine.Config{Library: t.Library, Plugin: t.Plugin} }

// environment adds the same to what a child inherits.
func (t Train) environment() []string {
	env := os.Environ()
	for name, path := range map[string]string{engine.LibraryVariable: t.Library, engine.PluginVariable: t.Plugin} {
		if path != "" {
			env = append(env, name+"="+path)
		}
	}
	return env
}

// TrainFacts are what triggers are decided from.
type TrainFacts struct {
	Now         time.Time
	Champion    bool      // a model serves
	LastTrained time.Time // end of the last training, whatever became of it; zero: never
	Days        int       // with data
	NewGranules int       // since the last training
	Last        trainMemory
	Serving     string // version of the champion
	// How far things have moved; nil: not known.
	MaskDrift, ValueDrift, SkillLoss *float64
}

// Due reports whether a model is to be trained now, and says why or why not.
func (t Train) Due(f TrainFacts) (due bool, why string) {
	switch {
	case t.Store == "":
		return false, "training is off: no store is configured"
	case f.Days < t.FirstDays:
		return false, fmt.Sprintf("%d of %d days are there", f.Days, t.FirstDays)
	case !f.LastTrained.IsZero() && f.NewGranules == 0:
		return false, "nothing new since the last training"
	case !f.LastTrained.IsZero() && f.Now.Sub(f.LastTrained) < t.Apart:
		return false, fmt.Sprintf("the last training was %v ago, less than %v", f.Now.Sub(f.LastTrained).Round(time.Minute), t.Apart)
	case !f.Champion && f.Last.State != stateRefused:
		return true, fmt.Sprintf("no model serves yet, and %d days are there", f.Days)
	}
	for _, trigger := range []func(TrainFacts) (bool, string){t.drifted, t.enoughNew, t.scheduled} {
		if due, why := trigger(f); due {
			return true, why
		}
	}
	return false, "no trigger"
}

// drifted reports what has moved too far.
func (t Train) drifted(f TrainFacts) (bool, string) {
	for _, d := range []struct {
		name  string
		moved *float64
		limit float64
	}{
		{"the gaps", f.MaskDrift, t.Drift.Masks},
		{"the values", f.ValueDrift, t.Drift.Values},
		{"the error of recent products", f.SkillLoss, t.Drift.Skill},
	} {
		if d.moved != nil && d.limit > 0 && *d.moved > d.limit {
			return true, fmt.Sprintf("%s moved by %.2f, more than %.2f", d.name, *d.moved, d.limit)
		}
	}
	return false, ""
}

func (t Train) enoughNew(f TrainFacts) (bool, string) {
	return t.NewGranules > 0 && f.NewGranules >= t.NewGranules, fmt.Sprintf("%d new granules since the last training", f.NewGranules)
}

// scheduled reports whether a time of the schedule has passed since the last
// training.
func (t Train) scheduled(f TrainFacts) (bool, string) {
	if t.Schedule == "" {
		return false, ""
	}
	s, err := cron.ParseStandard(t.Schedule)
	if err != nil {
		return false, "" // Validate has said so
	}
	next := s.Next(f.LastTrained.UTC())
	return !next.After(f.Now), "scheduled for " + next.Format("2006-01-02 15:04") + " UTC"
}
