package input

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/covariates"
	"lacuna/internal/faults"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/samples"

	"github.com/spf13/pflag"
)

// Covariates are the flags that name covariates.
type Covariates struct {
	texts []string
	files []string // NAME=FILE, for a service: those of its covariates as they are
}

// Add adds the flag to those of a command.
func (c *Covariates) Add(f *pflag.FlagSet) {
	f.StringArrayVar(&c.texts, "covariate", nil, "another variable that may tell of what is hidden: `NAME=FILE:VARIABLE`, with ,gradient or ,bathymetry after it, or NAME=day_of_year or distance_to_coast; may be repeated")
}

// AddFiles adds the flag by which a service names the files of covariates one by one.
func (c *Covariates) AddFiles(f *pflag.FlagSet) {
	f.StringArrayVar(&c.files, "covariate-file", nil, "`NAME=FILE` of a covariate, in place of where --covariate says that they are")
	_ = f.MarkHidden("covariate-file") // it exists
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
	for _, text := range c.files {
		name, _, ok := strings.Cut(text, "=")
		errs.Check(ok && names[name], "--covariate-file %s: must be NAME=FILE of a --covariate", text)
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
	for _, text := range c.files {
		name, file, _ := strings.Cut(text, "=")
		if out.Files == nil {
			out.Files = map[string][]string{}
		}
		out.Files[name] = append(out.Files[name], file)
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
		} else if rest, days, ok := cutMaxAge(from); ok {
			from, cfg.MaxAgeDays = rest, days
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

// cutMaxAge cuts ,max_age=DAYS off the end of a flag.
func cutMaxAge(from string) (rest string, days int, ok bool) {
	at := strings.LastIndex(from, ",max_age=")
	if at < 0 {
		return from, 0, false
	}
	days, err := strconv.Atoi(from[at+len(",max_age="):])
	return from[:at], days, err == nil
}

// Join gives the covariates of the flags to the days of a series: their maps of the same
// day, or of the nearest before it, because a network that fills in near real time must
// not learn from later ones. It returns the files that have a part in them, by name.
func (c Covariates) Join(ctx context.Context, s *samples.Series, stderr io.Writer) (map[string]string, error) {
	if !c.Any() {
		return nil, nil
	}
	reader, err := cli.NewReader()
	if err != nil {
		return nil, err
	}
	beside := c.Open(reader, stderr)
	times := make([]time.Time, len(s.Days))
	for i, d := range s.Days {
		times[i] = d.Time
	}
	a, err := beside.Terms(ctx, covariates.Request{Grid: s.Grid, Sea: s.Sea, Times: times})
	if err != nil {
		return nil, err
	}
	for i := range s.Days {
		s.Days[i].Covariates = nil
	}
	s.Covariates = nil
	for _, t := range a.Terms {
		s.Covariates = append(s.Covariates, samples.Covariate{Name: t.Name, Units: t.Units, Stays: t.Stays, Uniform: t.Uniform})
		for i, m := range t.Maps {
			s.Days[i].Covariates = append(s.Days[i].Covariates, m)
		}
	}
	used := map[string]string{}
	for _, in := range a.Inputs {
		used[in.Name] = in.SHA256
	}
	return used, nil
}
