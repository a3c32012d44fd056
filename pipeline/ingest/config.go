package ingest

import (
	"time"

	"lacuna/internal/bbox"
	"lacuna/internal/faults"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/products"
)

// Config limits the decoding child.
type Config struct {
	MemoryMiB int           `yaml:"memory_mib"` // limit of the child, and of one granule in the parent
	CPUTime   time.Duration `yaml:"cpu_time"`   // processor time for one file
	Timeout   time.Duration `yaml:"timeout"`    // wall time for one file
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		MemoryMiB: 2048,            // a year of 700×700 maps takes 9 bytes a cell
		CPUTime:   time.Minute,     // such a year inflates in about 3 s
		Timeout:   2 * time.Minute, // a busy disk may double or treble that
	}
}

// minMemoryMiB is twice the memory of the Go runtime and netCDF-C before the
// first read.
const minMemoryMiB = 256

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.MemoryMiB >= minMemoryMiB, "memory_mib is %d, must be at least %d", c.MemoryMiB, minMemoryMiB)
	errs.Check(c.CPUTime >= time.Second, "cpu_time is %v, must be at least 1s", c.CPUTime)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	return errs.Err()
}

// Options are the settings of one dataset. With the zero value everything is
// inferred from the file.
type Options struct {
	Product   string      `yaml:"product"`     // key of the product table
	Variable  string      `yaml:"variable"`    // name in the file, or standard name
	Group     string      `yaml:"group"`       // the group of the file that is read, with those above it; empty: all of them
	Transform string      `yaml:"transform"`   // identity or log10
	Range     *[2]float64 `yaml:"valid_range"` // physical, both ends allowed; values outside are rejected
	Quality   []string    `yaml:"quality"`     // rules such as "quality_level >= 4" that must all hold
	SeaIce    string      `yaml:"-"`           // name or standard name of the share of sea ice, which is read beside; empty: it is not
	BBox      []float64   `yaml:"bbox"`        // [west, south, east, north] in degrees: the part of the grid that is fetched, as far as the archive can cut, and filled; empty: all of it
}

// Validate reports everything wrong with o, not just the first thing. Each
// message begins with the key.
func (o Options) Validate() error {
	var errs faults.List
	if o.Product != "" {
		_, err := products.Find(o.Product)
		errs.Add(err)
	}
	if o.Transform != "" {
		_, err := field.ParseTransform(o.Transform, products.DefaultFloor)
		errs.Check(err == nil, "transform is %q, must be identity or log10", o.Transform)
	}
	if r := o.Range; r != nil {
		errs.Check(r[0] < r[1], "valid_range is [%g, %g], its first number must be the smaller", r[0], r[1])
	}
	_, err := bbox.Of(o.BBox)
	errs.Add(err)
	for _, text := range o.Quality {
		_, err := parseRule(text)
		errs.Add(err)
	}
	return errs.Err()
}
