package netcdf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// vocabulary is the table that standard names are taken from.
const vocabulary = "CF Standard Name Table v93"

// globals returns the global attributes of f, whose coordinates are found.
func (p *Product) globals(f File, found axes) []Attr {
	v, _ := f.variable(p.Variable)
	attrs := slices.Concat(p.discovery(v), p.credits(), p.coverage(f, found), p.provenance())
	return p.carryOver(attrs)
}

// discovery returns the attributes that describe the product.
func (p *Product) discovery(v Var) []Attr {
	name := text(v.Attrs, "long_name")
	title, summary := p.Title, p.Summary
	if title == "" {
		title = "Gap-free analysis of " + name
	}
	if summary == "" {
		summary = fmt.Sprintf("Level-4 analysis of %s (%s) on the grid and at the times of its Level-3 input. "+
			"Pixels that the sensor saw are unchanged; gaps over the sea were filled by %s and are marked in the flags, "+
			"with one standard deviation of the error for every filled pixel.", name, v.Name, p.Method)
	}
	words := append([]string{"EARTH SCIENCE > OCEANS", "Level 4", "gap-free", name}, p.Keywords...)
	return []Attr{
		{"Conventions", "CF-1.8, ACDD-1.3"},
		{"title", title},
		{"summary", summary},
		{"keywords", strings.Join(words, ", ")},
		{"id", p.id()},
		{"naming_authority", "lacuna"},
		{"cdm_data_type", "Grid"},
		{"processing_level", "L4"},
		{"standard_name_vocabulary", vocabulary},
		{"source", inputSource(p.Source.Attrs) + "; gaps filled by " + p.Method},
		{"comment", "The flags tell observed from filled pixels. " + modeSentence(p.Mode)},
		{"product_version", fmt.Sprintf("revision %d", p.Revision)},
	}
}

// inputSource returns how the observations were made, as far as the input says.
func inputSource(attrs []Attr) string {
	if s := text(attrs, "source"); s != "" {
		return s
	}
	return "satellite observation"
}

// id is unique among the products of lacuna: a revision of a dataset's
// granule.
func (p *Product) id() string {
	const day = "20060102"
	first, last := p.span()
	id := p.Dataset + "_" + first.Format(day)
	if last.Format(day) != first.Format(day) {
		id += "-" + last.Format(day)
	}
	return fmt.Sprintf("%s_r%d", id, p.Revision)
}

func modeSentence(mode string) string {
	if mode == Delayed {
		return "Delayed mode: granules before and after the day had a part in it."
	}
	return "Near real time: only granules up to the day had a part in it; a delayed-mode revision may follow."
}

// DefaultCredits returns the credits of an installation that configures none:
// they name the program and no person.
func DefaultCredits() Credits {
	return Credits{
		Name: "Lacuna", Type: "group", Email: "unknown", URL: "unknown",
		Institution: "Lacuna", Project: "Lacuna",
		License:         "the terms of the input data apply",
		Acknowledgement: "Made from satellite observations by Lacuna; acknowledge the producer of the input data.",
	}
}

// credits returns the attributes on creator, publisher and licence. The terms
// of the input hold for the product, unless others are configured.
func (p *Product) credits() []Attr {
	c, d := p.Credits, DefaultCredits()
	or := func(words ...string) string {
		for _, s := range words {
			if s != "" {
				return s
			}
		}
		return ""
	}
	name, typ, email, url := or(c.Name, d.Name), or(c.Type, d.Type), or(c.Email, d.Email), or(c.URL, d.URL)
	institution := or(c.Institution, d.Institution)
	return []Attr{
		{"institution", institution},
		{"project", or(c.Project, d.Project)},
		{"license", or(c.License, text(p.Source.Attrs, "license"), d.License)},
		{"acknowledgement", or(c.Acknowledgement, d.Acknowledgement)},
		{"creator_name", name},
		{"creator_type", typ},
		{"creator_email", email},
		{"creator_url", url},
		{"creator_institution", institution},
		{"publisher_name", name},
		{"publisher_type", typ},
		{"publisher_email", email},
		{"publisher_url", url},
		{"publisher_institution", institution},
	}
}

// coverage returns the extent in space and time, from the coordinates.
func (p *Product) coverage(f File, found axes) []Attr {
	lat, lon := extentOf(f, found[latitude]), extentOf(f, found[longitude])
	z := extentOf(f, found[vertical])
	depth, _ := f.variable(found[vertical])
	positive, crs := "down", "EPSG:5831"
	if text(depth.Attrs, "positive") == "up" {
		positive, crs = "up", "EPSG:5829"
	}
	attrs := []Attr{
		{"geospatial_bounds", fmt.Sprintf("POLYGON ((%[1]v %[3]v, %[1]v %[4]v, %[2]v %[4]v, %[2]v %[3]v, %[1]v %[3]v))", lat.min, lat.max, lon.min, lon.max)},
		{"geospatial_bounds_crs", "EPSG:4326"},
		{"geospatial_bounds_vertical_crs", crs},
		{"geospatial_lat_min", []float64{lat.min}},
		{"geospatial_lat_max", []float64{lat.max}},
		{"geospatial_lat_units", "degrees_north"},
		{"geospatial_lat_resolution", []float64{lat.step}},
		{"geospatial_lon_min", []float64{lon.min}},
		{"geospatial_lon_max", []float64{lon.max}},
		{"geospatial_lon_units", "degrees_east"},
		{"geospatial_lon_resolution", []float64{lon.step}},
		{"geospatial_vertical_min", []float64{z.min}},
		{"geospatial_vertical_max", []float64{z.max}},
		{"geospatial_vertical_units", unitsOf(depth)},
		{"geospatial_vertical_positive", positive},
	}
	first, last := p.span()
	return append(attrs,
		Attr{"time_coverage_start", first.Format(time.RFC3339)},
		Attr{"time_coverage_end", last.Format(time.RFC3339)},
		Attr{"time_coverage_duration", isoDuration(last.Sub(first))},
		Attr{"time_coverage_resolution", isoDuration(p.step())})
}

// extent is the range of a coordinate and its mean step.
type extent struct{ min, max, step float64 }

func extentOf(f File, name string) extent {
	v, _ := f.variable(name)
	size := sizeOf(v.Type)
	scale, offset := 1.0, 0.0
	if s := numbers(value(v.Attrs, "scale_factor")); len(s) == 1 {
		scale = s[0]
	}
	if o := numbers(value(v.Attrs, "add_offset")); len(o) == 1 {
		offset = o[0]
	}
	e := extent{min: math.Inf(1), max: math.Inf(-1)}
	n := len(v.Raw) / size
	for i := range n {
		x := number(v.Raw[i*size:], v.Type)*scale + offset
		e.min, e.max = min(e.min, x), max(e.max, x)
	}
	if n > 1 {
		e.step = (e.max - e.min) / float64(n-1)
	}
	return e
}

// span returns the first and the last time, in UTC.
func (p *Product) span() (first, last time.Time) {
	first = slices.MinFunc(p.Times, time.Time.Compare)
	last = slices.MaxFunc(p.Times, time.Time.Compare)
	return first.UTC(), last.UTC()
}

// step returns the time between two fields: as told, else the mean one of the
// granule, else a day, which is the habit of Level-3 products.
func (p *Product) step() time.Duration {
	const day = 24 * time.Hour
	first, last := p.span()
	switch n := len(p.Times); {
	case p.Step > 0:
		return p.Step
	case n > 1 && last.After(first):
		return (last.Sub(first) / time.Duration(n-1)).Round(time.Second)
	}
	return day
}

// isoDuration writes d after ISO 8601.
func isoDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "PT0S"
	case d%day == 0:
		return fmt.Sprintf("P%dD", d/day)
	}
	return fmt.Sprintf("PT%dS", d/time.Second)
}
