package infer

import (
	"slices"
	"strings"

	"lacuna/internal/faults"
)

// Quality says how observations are published that passed every test. The zero
// value publishes those of a single source bit for bit.
type Quality struct {
	// Observed is their treatment: keep, blend or denoise, of which the latter two take
	// three analyses instead of one; empty: keep, but for what only a lesser one of several
	// sources saw and its neighbours know better, which is blended.
	Observed string `yaml:"observed,omitempty"`
}

// Validate reports everything wrong with q. Each message begins with the key.
func (q Quality) Validate() error {
	var errs faults.List
	names := []string{Keep, Blend, Denoise}
	errs.Check(q.Observed == "" || slices.Contains(names, q.Observed), "quality.observed is %q, must be one of %s", q.Observed, strings.Join(names, ", "))
	return errs.Err()
}
