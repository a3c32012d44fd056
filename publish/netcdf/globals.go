package netcdf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lacuna/internal/cdl"
)

// vocabulary is the table that standard names are taken from.
const vocabulary = "CF Standard Name Table v93"

// globals returns the global attributes of f, whose coordinates are found.
func (p *Product) globals(f File, found axes) []Attr {
	v, _ := f.variable(p.Variable)
	attrs := slices.Concat(p.discovery(v), p.credits(), p.coverage(f, found), p.provenance(), p.membersAttrs())
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
			"with one standard deviation of the error for every pixel that has a value.", name, v.Name, p.Method)
	}
	words := append([]string{"EARTH SCIENCE > OCEANS", "Level 4", "gap-free", name}, p.Keywords...)
	return []Attr{
		{Name: "Conventions", Value: "CF-1.8, ACDD-1.3"},
		{Name: "title", Value: title},
		{Name: "summary", Value: summary},
		{Name: "keywords", Value: strings.Join(words, ", ")},
		{Name: "id", Value: p.id()},
		{Name: "naming_authority", Value: "lacuna"},
		{Name: "cdm_data_type", Value: "Grid"},
		{Name: "processing_level", Value: "L4"},
		{Name: "standard_name_vocabulary", Value: vocabulary},
		{Name: "source", Value: inputSource(p.Source.Attrs) + "; gaps filled by " + p.Method},
		{Name: "comment", Value: "The flags tell observed from filled pixels. " + inputSentence(p.Input()) + p.modeSentence()},
		{Name: "product_version", Value: fmt.Sprintf("revision %d", p.Revision)},
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

func (p *Product) modeSentence() string {
	delayed := 0
	for i := range p.Times {
		if p.mode(i) == Delayed {
			delayed++
		}
	}
	switch {
	case delayed == 0:
		return "Near real time: only granules up to the day had a part in it; a delayed-mode revision may follow."
	case delayed == len(p.Times):
		return "Delayed mode: granules before and after the day had a part in it."
	}
	return fmt.Sprintf("Delayed mode: later fields had a part in %d of its %d fields; the variable mode says in which.", delayed, len(p.Times))
}

// inputSentence says why a product holds no observation; empty where it does.
func inputSentence(input string) string {
	switch input {
	case CloudedOut:
		return "The granule holds no observation: everything here is filled from granules of other times. "
	case NoGranule:
		return "No granule of this time existed when the product was made: everything here is filled from granules of other times. "
	}
	return ""
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
		{Name: "institution", Value: institution},
		{Name: "project", Value: or(c.Project, d.Project)},
		{Name: "license", Value: or(c.License, text(p.Source.Attrs, "license"), d.License)},
		{Name: "acknowledgement", Value: or(c.Acknowledgement, d.Acknowledgement)},
		{Name: "creator_name", Value: name},
		{Name: "creator_type", Value: typ},
		{Name: "creator_email", Value: email},
		{Name: "creator_url", Value: url},
		{Name: "creator_institution", Value: institution},
		{Name: "publisher_name", Value: name},
		{Name: "publisher_type", Value: typ},
		{Name: "publisher_email", Value: email},
		{Name: "publisher_url", Value: url},
		{Name: "publisher_institution", Value: institution},
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
		{Name: "geospatial_bounds", Value: fmt.Sprintf("POLYGON ((%[1]v %[3]v, %[1]v %[4]v, %[2]v %[4]v, %[2]v %[3]v, %[1]v %[3]v))", lat.min, lat.max, lon.min, lon.max)},
		{Name: "geospatial_bounds_crs", Value: "EPSG:4326"},
		{Name: "geospatial_bounds_vertical_crs", Value: crs},
		{Name: "geospatial_lat_min", Value: []float64{lat.min}},
		{Name: "geospatial_lat_max", Value: []float64{lat.max}},
		{Name: "geospatial_lat_units", Value: "degrees_north"},
		{Name: "geospatial_lat_resolution", Value: []float64{lat.step}},
		{Name: "geospatial_lon_min", Value: []float64{lon.min}},
		{Name: "geospatial_lon_max", Value: []float64{lon.max}},
		{Name: "geospatial_lon_units", Value: "degrees_east"},
		{Name: "geospatial_lon_resolution", Value: []float64{lon.step}},
		{Name: "geospatial_vertical_min", Value: []float64{z.min}},
		{Name: "geospatial_vertical_max", Value: []float64{z.max}},
		{Name: "geospatial_vertical_units", Value: unitsOf(depth)},
		{Name: "geospatial_vertical_positive", Value: positive},
	}
	if lat.step == 0 && lon.step == 0 { // places of each cell have no step in degrees
		attrs = without(attrs, "geospatial_lat_resolution", "geospatial_lon_resolution")
	}
	first, last := p.covered()
	return append(attrs,
		Attr{Name: "time_coverage_start", Value: first.Format(time.RFC3339)},
		Attr{Name: "time_coverage_end", Value: last.Format(time.RFC3339)},
		Attr{Name: "time_coverage_duration", Value: isoDuration(last.Sub(first))},
		Attr{Name: "time_coverage_resolution", Value: isoDuration(p.step())})
}

// extent is the range of a coordinate and its mean step.
type extent struct{ min, max, step float64 }

func extentOf(f File, name string) extent {
	v, _ := f.variable(name)
	e := extent{min: math.Inf(1), max: math.Inf(-1)}
	all := unpacked(v)
	for _, x := range all {
		e.min, e.max = min(e.min, x), max(e.max, x)
	}
	if n := len(all); n > 1 && len(v.Dims) == 1 {
		e.step = (e.max - e.min) / float64(n-1)
	}
	return e
}

// unpacked returns the numbers of a coordinate.
func unpacked(v Var) []float64 {
	size := cdl.SizeOf(v.Type)
	scale, offset := 1.0, 0.0
	if s := cdl.Numbers(value(v.Attrs, "scale_factor")); len(s) == 1 {
		scale = s[0]
	}
	if o := cdl.Numbers(value(v.Attrs, "add_offset")); len(o) == 1 {
		offset = o[0]
	}
	all := make([]float64, len(v.Raw)/size)
	for i := range all {
		all[i] = number(v.Raw[i*size:], v.Type)*scale + offset
	}
	return all
}

// isoDuration writes d after ISO 8601.
func isoDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "PT0S"
	case d%dayLength == 0:
		return fmt.Sprintf("P%dD", d/dayLength)
	}
	return fmt.Sprintf("PT%dS", d/time.Second)
}
