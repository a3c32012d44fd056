package retrain

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"

	"github.com/robfig/cron/v3"
)

// Config sets when and how the models of the daemon are renewed. Without a
// store nothing is trained.
type Config struct {
	Store    string `yaml:"store"`    // folder of the model store; empty: off
	Schedule string `yaml:"schedule"` // cron expression, in UTC; it begins with its next time; empty: no schedule
	Window   string `yaml:"window"`   // time of the day in which trainings run, as 22:00-06:00 (UTC) or 22:00-06:00 Europe/Lisbon; empty: all day
	Policy   string `yaml:"policy"`   // auto, ask or never: who promotes a version that won
	Engine   string `yaml:"engine"`
	Library  string `yaml:"library"` // libonnxruntime, an absolute path; empty: found
	Plugin   string `yaml:"plugin"`  // PJRT plug-in for CUDA, an absolute path; empty: found

	GPUs      []int   `yaml:"gpus"`       // numbers of the GPUs that xla:cuda uses; empty: all
	GPUMemory float64 `yaml:"gpu_memory"` // share of a GPU's memory for filling, and again for training; 0: what each needs

	// ShadowDays is the number of new days that a version that won fills beside
	// the champion before it is promoted, by policy auto; 0: none.
	ShadowDays int `yaml:"shadow_days"`

	// ReprocessDays is the number of days, back from the newest, whose products are
	// made again when another version becomes champion, behind what is live; 0: none.
	ReprocessDays int `yaml:"reprocess_days"`

	FirstDays   int           `yaml:"first_days"`   // days of data before a model is trained; more where so few could not be judged
	NewGranules int           `yaml:"new_granules"` // new granules since the last training that start another; 0: any number is no reason
	Apart       time.Duration `yaml:"apart"`        // least time from one training to the next
	Budget      time.Duration `yaml:"budget"`       // time of one session; the training goes on when the window opens again, else at the same time of the next day
	Nice        int           `yaml:"nice"`         // niceness of the process, 0..19
	Check       time.Duration `yaml:"check"`        // how often triggers are checked

	Size  string `yaml:"size"`  // of a first network: tiny, small, base or large; empty: by engine
	Steps int    `yaml:"steps"` // training steps; 0: by engine

	Drift DriftLimits `yaml:"drift"`
}

// DriftLimits are the limits of drift beyond which a model is renewed; 0: no
// limit.
type DriftLimits struct {
	Masks  float64 `yaml:"masks"`  // how much more recent gaps surprise the prior, in standard deviations of a mask
	Values float64 `yaml:"values"` // shift of the distribution of recent values, in their standard deviations
	Skill  float64 `yaml:"skill"`  // error of recent products over that of the weeks before, less one
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Schedule: "0 2 * * 0", // Sunday night: a week of granules, and nobody waits for the machine
		Policy:   PolicyAuto, Engine: engine.Auto, GPUs: []int{},
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
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Config
	*c = DefaultConfig()
	return unmarshal((*plain)(c))
}

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	var errs faults.List
	for key, path := range map[string]string{"library": c.Library, "plugin": c.Plugin} {
		errs.Check(path == "" || filepath.IsAbs(path), "%s is %q, must be an absolute path", key, path)
	}
	for _, n := range c.GPUs {
		errs.Check(n >= 0, "gpus has %d, must be numbers of GPUs from 0 on", n)
	}
	errs.Check(c.GPUMemory >= 0 && c.GPUMemory <= 1, "gpu_memory is %v, must be a share from 0 to 1", c.GPUMemory)
	if c.Store == "" {
		return errs.Err() // off: the other keys are not checked
	}
	if c.Schedule != "" {
		_, err := cron.ParseStandard(c.Schedule)
		errs.Check(err == nil, "schedule is %q: %v", c.Schedule, err)
	}
	_, err := parseWindow(c.Window)
	errs.Check(err == nil, "window is %q: %v", c.Window, err)
	errs.Check(slices.Contains([]string{PolicyAuto, PolicyAsk, PolicyNever}, c.Policy), "policy is %q, must be auto, ask or never", c.Policy)
	errs.Check(c.FirstDays > 0, "first_days is %d, must be positive", c.FirstDays)
	errs.Check(c.ShadowDays >= 0, "shadow_days is %d, must not be negative", c.ShadowDays)
	errs.Check(c.ReprocessDays >= 0, "reprocess_days is %d, must not be negative", c.ReprocessDays)
	errs.Check(c.NewGranules >= 0, "new_granules is %d, must not be negative", c.NewGranules)
	errs.Check(c.Apart >= 0, "apart is %v, must not be negative", c.Apart)
	errs.Check(c.Budget > 0, "budget is %v, must be positive", c.Budget)
	errs.Check(c.Nice >= 0 && c.Nice <= 19, "nice is %d, must be 0..19", c.Nice)
	errs.Check(slices.Contains([]string{"", nn.Tiny, nn.Small, nn.Base, nn.Large}, c.Size), "size is %q, must be tiny, small, base or large", c.Size)
	errs.Check(c.Steps >= 0, "steps is %d, must not be negative", c.Steps)
	errs.Check(c.Check > 0, "check is %v, must be positive", c.Check)
	errs.Check(c.Drift.Masks >= 0 && c.Drift.Values >= 0 && c.Drift.Skill >= 0, "drift has a negative limit")
	return errs.Err()
}

// Libraries returns the paths that the engine is loaded from, and the GPUs that it
// may use, for this process.
func (c Config) Libraries() engine.Config {
	return engine.Config{Library: c.Library, Plugin: c.Plugin, GPUs: c.GPUs, Memory: c.GPUMemory}
}

// environment returns the environment of a child, with the same settings.
func (c Config) environment() []string {
	gpus := make([]string, len(c.GPUs))
	for i, n := range c.GPUs {
		gpus[i] = strconv.Itoa(n)
	}
	memory := ""
	if c.GPUMemory > 0 {
		memory = strconv.FormatFloat(c.GPUMemory, 'g', -1, 64)
	}
	env := os.Environ()
	for name, value := range map[string]string{
		engine.LibraryVariable: c.Library, engine.PluginVariable: c.Plugin,
		engine.GPUVariable: strings.Join(gpus, ","), engine.MemoryVariable: memory,
	} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
