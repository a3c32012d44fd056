package simulate

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"lacuna/internal/faults"
	"lacuna/pipeline/field"
	"lacuna/pipeline/seamask"
)

// Config describes the feed to simulate. Only Product is required: the rest has
// defaults that work.
type Config struct {
	Product       string    // short name such as "blk-chl", or dataset id
	Height, Width int       // cells; both zero: a size fit for a demo
	Start         time.Time // day 0, cut to midnight UTC; zero: 1 April 2024
	Days          int       // length of the Schedule; zero: 60
	Seed          uint64
	// CloudBias makes gaps that are not missing at random: how many standard
	// deviations cloudier the sky is over water that is one above the day's
	// mean. Zero: clouds know nothing of the sea below.
	CloudBias float64
	// DayBias is the standard deviation of an error that all cells of a day share,
	// such as that of its atmospheric correction, in the space where the tracer is
	// additive.
	DayBias float64
	Change  Change
	Sensor  Sensor
	Mapping Mapping // another grid; empty: that of the product, on which the ocean is made
}

// A Sensor is another one over the same ocean, in the place of the usual ones, so that
// one sea has several feeds. The zero value is the usual ones.
type Sensor struct {
	Number int     // 1, 2, 3...: each has its own orbit and noise; 0: the usual ones
	Bias   float64 // what it reads too much, in the space where the tracer is additive
	Noise  float64 // standard deviation of its noise beside the usual one, likewise
}

// sensors returns the sensors in the place of the usual ones: on other orbits, and
// at hours that others leave free, when the clouds have moved on.
func (s Sensor) sensors(usual []sensor) []sensor {
	const hours, revolutions = 2.5, 0.37
	own := slices.Clone(usual)
	for i := range own {
		own[i].hour += hours * float64(s.Number)
		own[i].phaseRevs += revolutions * float64(s.Number)
	}
	return own
}

// A Change puts another sensor in the place of those that a feed began with. The
// zero value is none.
type Change struct {
	Day   int     // first day of the new sensor, counted from Config.Start; 0: there is none
	Bias  float64 // what it reads too much, in the space where the tracer is additive: powers of ten of chlorophyll, degrees of temperature
	Gain  float64 // contrast of its readings, of that of the sea; 0: 1
	Swath float64 // width of its swath, of the one before; 0: 1
	// DayBias is that of the new sensor, beside Config.DayBias; 0: the same.
	DayBias float64
}

// since reports whether the new sensor looks on a day.
func (c Change) since(day int) bool { return c.Day > 0 && day >= c.Day }

// read returns the reading of a new sensor where the one before read v.
func (c Change) read(v float64) float64 { return c.Bias + v*orOne(c.Gain) }

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

const (
	defaultDays = 60
	// minCells is the least height and width: fewer cells make no picture.
	minCells = 8
	// maxCells bounds the memory that a typing error can request; the
	// largest native grid has 1.4 million cells.
	maxCells = 1 << 24
)

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	var errs faults.List
	_, err := recipeOf(c.Product)
	errs.Check(err == nil, "product: %w", err)
	demo := c.Height == 0 && c.Width == 0
	errs.Check(demo || c.Height >= minCells && c.Width >= minCells,
		"grid is %d x %d: give both at least %d cells, or neither", c.Height, c.Width, minCells)
	errs.Check(c.Mapping == "" || slices.Contains(Mappings, c.Mapping), "grid mapping is %q, must be one of %v", c.Mapping, Mappings)
	errs.Check(demo || c.Height <= maxCells/max(c.Width, 1), "grid of %d x %d exceeds %d cells", c.Height, c.Width, maxCells)
	errs.Check(c.Days >= 0, "days is %d, must not be negative", c.Days)
	errs.Check(math.Abs(c.CloudBias) <= 5, "cloud bias is %g: beyond 5 nothing but the mask of the sea is left", c.CloudBias)
	errs.Check(c.Change.Day >= 0 && c.Change.Gain >= 0 && c.Change.Swath >= 0 && c.Change.DayBias >= 0, "change of sensor is %+v: nothing of it but the bias may be negative", c.Change)
	errs.Check(c.Sensor.Number >= 0 && c.Sensor.Number <= 3 && c.Sensor.Noise >= 0 && (c.Sensor.Number > 0 || c.Sensor == Sensor{}),
		"sensor is %+v: its number must be 1..3, or 0 for the usual sensors without bias and noise, and its noise not negative", c.Sensor)
	return errs.Err()
}

// A World is one simulated ocean and the satellites above it. It is safe for
// concurrent use.
type World struct {
	cfg     Config
	recipe  *recipe
	chart   *chart
	mapped  *mapped // nil: fields are on the chart
	basin   *basin
	sky     *sky
	later   *sky    // with the sensor of Config.Change
	foreign *medium // radio interference
	origin  int     // day 0, counted from calendarOrigin
	hourUTC time.Duration

	companion func() *basin // of the part of Companion that the tracer does not know; made when it is asked for
}

// New returns the world of cfg.
func New(cfg Config) (*World, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("simulation config: %w", err)
	}
	r, err := recipeOf(cfg.Product)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults(r)
	fine := 1
	if cfg.Mapping != "" {
		fine = finer
	}
	grid, err := r.region.grid(fine*cfg.Height, fine*cfg.Width)
	if err != nil {
		return nil, fmt.Errorf("lay out grid of %s: %w", r.Name, err)
	}
	mask, err := seamask.Builtin(grid)
	if err != nil {
		return nil, fmt.Errorf("find coasts of %s: %w", r.Name, err)
	}
	c := newChart(grid, mask)
	var other *mapped
	if cfg.Mapping != "" {
		if other, err = newMapped(cfg.Mapping, r.region, cfg.Height, cfg.Width, c); err != nil {
			return nil, fmt.Errorf("lay out the grid %s of %s: %w", cfg.Mapping, r.Name, err)
		}
	}
	sensors := cfg.Sensor.sensors(r.sensors)
	return &World{
		cfg: cfg, recipe: r, chart: c, mapped: other,
		basin:   newBasin(c, cfg.Seed, r.current, newWater(c, r.sea)),
		sky:     newSky(c, cfg.Seed, r.weather, sensors),
		later:   newSky(c, cfg.Seed, r.weather, cfg.Change.sensors(sensors)),
		foreign: foreignSignals().seeded(mix(cfg.Seed, seedInterference)),
		origin:  int(cfg.Start.Sub(calendarOrigin()) / (24 * time.Hour)),
		hourUTC: time.Duration(r.hour) * time.Hour,
		companion: sync.OnceValue(func() *basin {
			return newBasin(c, mix(cfg.Seed, seedCompanion), r.current, newWater(c, r.sea))
		}),
	}, nil
}

// sensors returns the sensors after the change.
func (c Change) sensors(before []sensor) []sensor {
	after := slices.Clone(before)
	for i := range after {
		after[i].swathKM *= orOne(c.Swath)
	}
	return after
}

// calendarOrigin is where the days of flow, weather and orbits are counted
// from. Worlds of one seed agree on a date whatever day they start.
func calendarOrigin() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func (c Config) withDefaults(r *recipe) Config {
	if c.Height == 0 {
		c.Height, c.Width = r.region.demoHeight, r.region.demoWidth
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC) // spring: bloom, and light in the Baltic
	}
	c.Start = c.Start.UTC().Truncate(24 * time.Hour)
	if c.Days == 0 {
		c.Days = defaultDays
	}
	return c
}

// Product returns the product that the world simulates.
func (w *World) Product() Product { return w.recipe.Product }

// Grid returns the grid of every field of the world.
func (w *World) Grid() field.Grid {
	if w.mapped != nil {
		return w.mapped.grid
	}
	return w.chart.grid
}

// Sea returns the cells of the grid that are sea.
func (w *World) Sea() field.Mask {
	if w.mapped != nil {
		return w.mapped.sea
	}
	return w.chart.sea
}

// Days returns the number of days that the schedule covers.
func (w *World) Days() int { return w.cfg.Days }

// A Day is the ocean on one day and the satellites' observations of it, both in the
// units of the product's file.
type Day struct {
	Time  time.Time
	Truth field.Field // complete over the sea, NaN on land
	Seen  field.Field // with noise; NaN on land, under cloud and off the swath
}

// Day returns day n, counted from Config.Start; n may lie outside the
// schedule, and may be negative. Seen is the best version of the day, which
// has all passes.
func (w *World) Day(n int) Day {
	tracer := w.tracer(n)
	s := w.observe(n, tracer, wholeDay)
	return Day{Time: w.time(n), Truth: w.field(n, w.physical(tracer)), Seen: w.field(n, w.seen(s))}
}

// time returns the time in the files of day n.
func (w *World) time(n int) time.Time { return w.cfg.Start.AddDate(0, 0, n).Add(w.hourUTC) }

func (w *World) field(n int, values []float32) field.Field {
	if w.mapped != nil {
		values = w.mapped.values(values)
	}
	return field.Field{Grid: w.Grid(), Time: w.time(n), Values: values, Sea: w.Sea()}
}

// tracer returns the truth of day n in the space where it is additive.
func (w *World) tracer(n int) []float32 {
	v := make([]float32, w.chart.grid.Len())
	w.basin.truth(v, w.origin+n)
	return v
}

// physical returns the values in the units of the file.
func (w *World) physical(tracer []float32) []float32 {
	out := make([]float32, len(tracer))
	for i, v := range tracer {
		out[i] = w.toPhysical(float64(v))
	}
	return out
}

func (w *World) toPhysical(v float64) float32 {
	if w.recipe.Log {
		return float32(math.Pow(10, v))
	}
	return float32(v)
}
