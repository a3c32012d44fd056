package infer

import (
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// Covariates returns those that the model uses on a grid: none where it was made for
// another, because their constants are of that one.
func (m *Model) Covariates(grid field.Grid) []samples.Covariate {
	if own := m.version.Scaling; own == nil || !grid.Same(own.Grid) {
		return nil
	}
	return m.wants()
}

// Elsewhere returns the names of the covariates that the model would use on its own
// grid, and cannot on this one.
func (m *Model) Elsewhere(grid field.Grid) []string {
	if own := m.version.Scaling; own != nil && grid.Same(own.Grid) {
		return nil
	}
	var names []string
	for _, c := range m.wants() {
		names = append(names, c.Name)
	}
	return names
}

func (m *Model) wants() []samples.Covariate {
	var out []samples.Covariate
	for _, c := range m.channels {
		if c.In() {
			out = append(out, c.Covariate)
		}
	}
	return out
}

// covariates returns the maps for a time as the networks take them. One of other units
// than it was learned in is missing.
func (m *Model) covariates(s classical.Series, at time.Time, how fillOptions) [][]float32 {
	if len(m.channels) == 0 {
		return nil
	}
	out := make([][]float32, len(m.channels))
	if len(m.Covariates(s.Grid)) == 0 {
		return out
	}
	for k, c := range m.channels {
		for _, given := range how.covariates {
			if given.Name == c.Name && given.Time.Equal(at) && c.Takes(given.Units) && len(given.Values) == s.Grid.Len() {
				out[k] = c.Of(given.Values, s.Sea)
			}
		}
	}
	return out
}
