package covariate

import (
	"regexp"
	"strings"
	"time"

	"lacuna/internal/faults"
)

// Config names a covariate and where its maps come from: another dataset, files, or
// what is known by itself.
type Config struct {
	Name       string `yaml:"name"`         // in products, logs and the kept regression
	Dataset    string `yaml:"dataset"`      // another dataset of the configuration, whose products are used, else its granules
	File       string `yaml:"file"`         // in place of dataset: a NetCDF file with times, or a template with {year}, {month}, {day} or {yearday} for a file a day
	Variable   string `yaml:"variable"`     // its variable in the file; empty: it is found out
	Static     string `yaml:"static"`       // a map that stays: day_of_year, distance_to_coast, or bathymetry, whose map is that of file
	Gradient   bool   `yaml:"gradient"`     // use the magnitude of its gradient too
	MaxAgeDays int    `yaml:"max_age_days"` // how many days from a day its nearest map may be
}

// Names of maps that stay.
const (
	DayOfYear       = "day_of_year"
	DistanceToCoast = "distance_to_coast"
	Bathymetry      = "bathymetry"
)

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config { return Config{MaxAgeDays: 3} } // temperature and currents forget in a week

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(nameForm.MatchString(c.Name), "name is %q, must be lower-case letters, digits and _, beginning with a letter", c.Name)
	switch c.Static {
	case "":
		errs.Check((c.Dataset == "") != (c.File == ""), "dataset is %q and file is %q: give one of them, or static", c.Dataset, c.File)
	case DayOfYear, DistanceToCoast:
		errs.Check(c.Dataset == "" && c.File == "" && c.Variable == "", "static is %s, which needs no dataset, file or variable", c.Static)
		errs.Check(c.Static != DayOfYear || !c.Gradient, "gradient is true: %s is the same everywhere", c.Static)
	case Bathymetry:
		errs.Check(c.File != "" && c.Dataset == "" && !c.Daily(), "static is %s: give its file, which is one for all days", c.Static)
	default:
		errs.Check(false, "static is %q, must be %s, %s or %s", c.Static, DayOfYear, DistanceToCoast, Bathymetry)
	}
	errs.Check(c.Dataset == "" || c.Variable == "", "variable is %q: the dataset %s says what is read of its granules", c.Variable, c.Dataset)
	errs.Check(c.MaxAgeDays >= 0 && c.MaxAgeDays <= 60, "max_age_days is %d, must be 0..60", c.MaxAgeDays)
	errs.Check(!strings.ContainsAny(placeholders.Replace(c.File), "{}"), "file is %q: the placeholders are {year}, {month}, {day} and {yearday}", c.File)
	return errs.Err()
}

var placeholders = strings.NewReplacer("{year}", "", "{month}", "", "{day}", "", "{yearday}", "")

// Daily reports whether the covariate has a file for each day.
func (c Config) Daily() bool { return strings.Contains(c.File, "{") }

// FileOf returns the file of a day.
func (c Config) FileOf(day time.Time) string {
	day = day.UTC()
	return strings.NewReplacer("{year}", day.Format("2006"), "{month}", day.Format("01"), "{day}", day.Format("02"), "{yearday}", day.Format("002")).Replace(c.File)
}

// MaxAge returns how far from a day its nearest map may be.
func (c Config) MaxAge() time.Duration { return time.Duration(c.MaxAgeDays) * 24 * time.Hour }

// UnmarshalYAML fills in the defaults before the keys are read.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Config
	*c = DefaultConfig()
	return unmarshal((*plain)(c))
}
