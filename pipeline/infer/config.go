package infer

import (
	"slices"
	"strings"
	"time"

	"lacuna/internal/faults"
)

// MethodModel is the method that fills with the networks of a Model.
const MethodModel = "model"

// MethodAuto leaves the choice of a method to the caller, for each granule. A
// Filler does not take it: the caller settles on a method first.
const MethodAuto = "auto"

// methods are the names that Config.Method takes.
var methods = []string{MethodAuto, "oi", "persistence", "climatology", MethodModel}

// Config chooses and tunes the method of one dataset.
type Config struct {
	Method     string        `yaml:"method"`
	PastDays   int           `yaml:"past_days"`   // days before a field that it may use; of a series coarser than daily so many steps
	FutureDays int           `yaml:"future_days"` // days after a field, or steps likewise; 0: near-real-time
	Back       time.Duration `yaml:"past"`        // time before a field that it may use, such as 72h, in place of past_days
	Ahead      time.Duration `yaml:"future"`      // time after a field, in place of future_days
	OI         OI            `yaml:"oi"`
	// Network tunes the method model. The zero value is the default.
	Network Network `yaml:"network,omitempty"`
	Quality Quality `yaml:"quality,omitempty"`
	// Details adds to the product the distances to the nearest observations,
	// in space and in time, and the model's reliability of each cell.
	Details bool `yaml:"details,omitempty"`
	// Members is how many equally likely complete fields are stored beside the
	// product, in a file of their own; 0: none. A model draws them with its
	// networks; for other methods each costs about as much time as the product.
	Members int `yaml:"members,omitempty"`

	// Step is the time from one field of the series to the next (StepOf),
	// which the caller finds out; 0: not known, and taken as a day.
	Step time.Duration `yaml:"-"`
}

// OI holds the scales of optimal interpolation. Zero means automatic: tuned on
// overlays where there are enough days, else the default for the grid.
type OI struct {
	LengthKM   float64 `yaml:"length_km"`  // correlation length of anomalies
	Days       float64 `yaml:"days"`       // correlation time of anomalies
	Nugget     float64 `yaml:"nugget"`     // share of sensor noise in the variance
	Neighbours int     `yaml:"neighbours"` // observations that an estimate of one cell uses
}

// mostMembers bounds the memory of an analysis.
const mostMembers = 256

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Method:   "oi",
		PastDays: JudgedPastDays,
	}
}

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(slices.Contains(methods, c.Method), "method is %q, must be one of %s", c.Method, strings.Join(methods, ", "))
	errs.Check(c.PastDays >= 0 && c.PastDays <= 90, "past_days is %d, must be 0..90", c.PastDays)
	errs.Check(c.FutureDays >= 0 && c.FutureDays <= 90, "future_days is %d, must be 0..90", c.FutureDays)
	errs.Check(c.Back >= 0, "past is %v, must not be negative", c.Back)
	errs.Check(c.Ahead >= 0, "future is %v, must not be negative", c.Ahead)
	errs.Check(c.Members >= 0 && c.Members <= mostMembers, "members is %d, must be 0..%d", c.Members, mostMembers)
	errs.Add(c.Network.Validate(), c.Quality.Validate())
	errs.Check(c.OI.LengthKM >= 0, "oi.length_km is %g, must not be negative", c.OI.LengthKM)
	errs.Check(c.OI.Days >= 0, "oi.days is %g, must not be negative", c.OI.Days)
	errs.Check(c.OI.Nugget >= 0 && c.OI.Nugget < 1, "oi.nugget is %g, must be in 0..1", c.OI.Nugget)
	errs.Check(c.OI.Neighbours >= 0 && c.OI.Neighbours <= 500, "oi.neighbours is %d, must be 0..500", c.OI.Neighbours)
	return errs.Err()
}
