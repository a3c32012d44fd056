package quality

import (
	"path/filepath"
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/pipeline/field"
)

// Ice says where the share of sea ice comes from, and what is done below it.
type Ice struct {
	From     string  `yaml:"from"`     // granule, or a NetCDF file with one map for all days or with times; empty: ice is not looked for
	Variable string  `yaml:"variable"` // its variable there; empty: the one with the standard name sea_ice_area_fraction
	Above    float64 `yaml:"above"`    // a cell with this share of ice or more is under ice
	Fill     bool    `yaml:"fill"`     // use observations and fill gaps under ice as elsewhere, and only flag it; false: there is no value, and no method sees water there
}

// OfGranule is the value of Ice.From for granules that have it themselves.
const OfGranule = "granule"

// DefaultIce returns the settings that hold where a file is silent.
func DefaultIce() Ice { return Ice{Above: 0.15} } // the customary edge of the ice

// Any reports whether ice is looked for.
func (i Ice) Any() bool { return i.From != "" }

// File reports whether ice comes from a file of its own.
func (i Ice) File() bool { return i.Any() && i.From != OfGranule }

// Validate reports everything wrong with i. Each message begins with the key.
func (i Ice) Validate() error {
	var errs faults.List
	errs.Check(!i.File() || filepath.Ext(i.From) != "" || strings.ContainsRune(i.From, '/'), "from is %q, must be %s or a NetCDF file", i.From, OfGranule)
	errs.Check(i.Above > 0 && i.Above <= 1, "above is %g, must be a share of more than 0 and at most 1", i.Above)
	return errs.Err()
}

// Mask returns the cells under ice by the shares of a map.
func (i Ice) Mask(shares []float32) field.Mask {
	out := make(field.Mask, len(shares))
	for c, share := range shares {
		out[c] = float64(share) >= i.Above-1e-6 // shares are stored in steps, of which one may be the limit; false for NaN
	}
	return out
}

// stale is the age from which on a map of ice says nothing of a day: ice moves a
// cell or two a day.
const stale = 3 * 24 * time.Hour

// OfDay returns the index of the map for a time, the nearest one that is neither
// stale nor more than a day ahead; a map alone is for all times. -1: there is none.
func OfDay(maps []time.Time, at time.Time) int {
	if len(maps) == 1 {
		return 0
	}
	best := -1
	for i, t := range maps {
		d := at.Sub(t)
		if d < -24*time.Hour || d > stale {
			continue
		}
		if best < 0 || d.Abs() < at.Sub(maps[best]).Abs() {
			best = i
		}
	}
	return best
}
