package input

import (
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/covariates"
	"lacuna/internal/faults"
	"lacuna/pipeline/covariate"

	"github.com/spf13/pflag"
)

// Covariates are the flags that name covariates.
type Covariates struct{ texts []string }

// Add adds the flag to those of a command.
func (c *Covariates) Add(f *pflag.FlagSet) {
	f.StringArrayVar(&c.texts, "covariate", nil, "another variable that may tell of what is hidden: `NAME=FILE:VARIABLE`, with ,gradient or ,bathymetry after it, or NAME=day_of_year or distance_to_coast; may be repeated")
}

// Any reports whether there are covariates.
func (c Covariates) Any() bool { return len(c.texts) > 0 }

// Validate reports everything wrong with the flags.
func (c Covariates) Validate() error {
	var errs faults.List
	names := map[string]bool{}
	for _, text := range c.texts {
		cfg, err := parseCovariate(text)
		if err == nil {
			err = cfg.Validate()
		}
		if err == nil && names[cfg.Name] {
			err = fmt.Errorf("name is %q, which another covariate has", cfg.Name)
		}
		names[cfg.Name] = true
		errs.Check(err == nil, "--covariate %s: %w", text, err)
	}
	return errs.Err()
}

// Open returns the covariates of the flags, which must be valid, read by a reader. What
// is left out of them is said on standard error.
func (c Covariates) Open(reader covariates.Reader, stderr io.Writer) covariates.Covariates {
	out := covariates.Covariates{Reader: reader, Log: func(text string) { fmt.Fprintf(stderr, "lacuna: %s\n", text) }}
	for _, text := range c.texts {
		cfg, err := parseCovariate(text)
		if err != nil {
			panic("input: covariates were not validated")
		}
		out.List = append(out.List, cfg)
	}
	return out
}

// parseCovariate returns the covariate that a flag names.
func parseCovariate(text string) (covariate.Config, error) {
	cfg := covariate.DefaultConfig()
	name, from, ok := strings.Cut(text, "=")
	if !ok || from == "" {
		return cfg, fmt.Errorf("must be NAME=FILE:VARIABLE, NAME=%s or NAME=%s", covariate.DayOfYear, covariate.DistanceToCoast)
	}
	cfg.Name = name
	for {
		if rest, ok := strings.CutSuffix(from, ",gradient"); ok {
			from, cfg.Gradient = rest, true
		} else if rest, ok := strings.CutSuffix(from, ","+covariate.Bathymetry); ok {
			from, cfg.Static = rest, covariate.Bathymetry
		} else {
			break
		}
	}
	if from == covariate.DayOfYear || from == covariate.DistanceToCoast {
		cfg.Static = from
		return cfg, nil
	}
	cfg.File = from
	// A colon in a folder's name is not that before a variable.
	if at := strings.LastIndexByte(from, ':'); at > strings.LastIndexByte(from, '/') {
		cfg.File, cfg.Variable = from[:at], from[at+1:]
	}
	return cfg, nil
}
