package sources

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lacuna/internal/cdf"
	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/merge"
)

// Adjusted is the bit of the variable of sources that marks a value from which a bias
// was taken.
const Adjusted = 64

// Most is the number of sources that the variable of sources has numbers for.
const Most = Adjusted - 1

// encode returns the file of a merged day. It says where every cell comes from, and
// which files had a part in it.
func (f *form) encode(dataset string, day time.Time, sources []merge.Source, parts []part, looks []look, merged merge.Merged) ([]byte, error) {
	var sourceOf []int // by look
	for _, p := range parts {
		for range p.looks {
			sourceOf = append(sourceOf, p.source)
		}
	}
	cells := len(merged.Values)
	physical, origin := make([]float32, cells), make([]byte, cells)
	f.transform.Inverse(physical, merged.Values)
	for i, at := range merged.Field {
		switch {
		case at < 0:
			physical[i] = field.NaN()
			continue
		case merged.Bias[i] == 0:
			physical[i] = looks[at].physical[i] // to the bit
		default:
			origin[i] = Adjusted
		}
		origin[i] |= byte(sourceOf[at] + 1)
	}
	file := cdl.File{Dims: f.dims, Vars: slices.Clone(f.coords), Attrs: f.globals(dataset, day, sources, parts)}
	own := f.variable
	own.Attrs = append(slices.Clone(own.Attrs),
		cdl.Attr{Name: "_FillValue", Value: []float32{field.NaN()}},
		cdl.Attr{Name: "ancillary_variables", Value: own.Name + "_error " + own.Name + "_source"})
	own.Raw = floats(physical)
	file.Vars = append(file.Vars, timeVar(day), own, f.errorVar(merged.Errors), f.sourceVar(sources, origin))
	if sea := seaOf(looks); sea != nil {
		file.Vars = append(file.Vars, f.seaVar(sea))
	}
	return cdf.Encode(file)
}

// globals returns the global attributes of a merged day.
func (f *form) globals(dataset string, day time.Time, sources []merge.Source, parts []part) []cdl.Attr {
	var names, lines []string
	for _, p := range parts {
		name := sources[p.source].Name
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		lines = append(lines, fmt.Sprintf("%s: %s sha256:%s", name, p.row.Name, p.row.SHA256))
	}
	attrs := []cdl.Attr{
		{Name: "Conventions", Value: "CF-1.10"},
		{Name: "title", Value: "observations of " + dataset + ", merged from its sources"},
		{Name: "source", Value: "satellite observations of " + strings.Join(names, ", ")},
		{Name: ingest.MergedSources, Value: strings.Join(names, " ")},
		{Name: "merged_inputs", Value: strings.Join(lines, "\n")},
		{Name: "time_coverage_start", Value: day.Format(time.RFC3339)},
		{Name: "time_coverage_end", Value: day.Add(24 * time.Hour).Format(time.RFC3339)},
	}
	if f.product != "" {
		attrs = append(attrs, cdl.Attr{Name: "product_name", Value: f.product})
	}
	return attrs
}

func timeVar(day time.Time) cdl.Var {
	return cdl.Var{
		Name: "time", Type: "int64", Dims: []string{"time"}, Raw: binary.LittleEndian.AppendUint64(nil, uint64(day.Unix())),
		Attrs: []cdl.Attr{
			{Name: "standard_name", Value: "time"},
			{Name: "units", Value: "seconds since 1970-01-01 00:00:00"},
			{Name: "calendar", Value: "standard"},
			{Name: "axis", Value: "T"},
		},
	}
}

// errorVar describes the errors of the observations.
func (f *form) errorVar(errors []float32) cdl.Var {
	long, units := "standard error of the observation, as fitted for its source", textOf(f.variable, "units")
	if f.transform.Log10 {
		long, units = "standard error of the decimal logarithm of the observation, as fitted for its source", "1"
	}
	attrs := []cdl.Attr{{Name: "long_name", Value: long}, {Name: "_FillValue", Value: []float32{field.NaN()}}}
	if units != "" {
		attrs = append(attrs, cdl.Attr{Name: "units", Value: units})
	}
	return cdl.Var{Name: f.variable.Name + "_error", Type: "float", Dims: f.variable.Dims, Attrs: attrs, Raw: floats(errors)}
}

// sourceVar describes which source each cell comes from.
func (f *form) sourceVar(sources []merge.Source, origin []byte) cdl.Var {
	meanings := []string{"none"}
	masks, values := []int8{Most}, []int8{0}
	for i, s := range sources {
		meanings = append(meanings, s.Name)
		masks, values = append(masks, Most), append(values, int8(i+1))
	}
	meanings = append(meanings, "adjusted")
	masks, values = append(masks, Adjusted), append(values, Adjusted)
	return cdl.Var{
		Name: f.variable.Name + "_source", Type: "byte", Dims: f.variable.Dims, Raw: origin,
		Attrs: []cdl.Attr{
			{Name: "long_name", Value: "source of the observation"},
			{Name: "flag_masks", Value: masks},
			{Name: "flag_values", Value: values},
			{Name: "flag_meanings", Value: strings.Join(meanings, " ")},
			{Name: "comment", Value: "adjusted: the bias of the source against " + sources[0].Name + " was taken from the value; any other value is as its source gave it"},
		},
	}
}

// seaOf returns the first sea mask that a source gives.
func seaOf(looks []look) field.Mask {
	for _, l := range looks {
		if l.sea != nil {
			return l.sea
		}
	}
	return nil
}

func (f *form) seaVar(sea field.Mask) cdl.Var {
	raw := make([]byte, len(sea))
	for i, wet := range sea {
		if wet {
			raw[i] = 1
		}
	}
	return cdl.Var{
		Name: "mask", Type: "byte", Dims: f.variable.Dims[1:], Raw: raw,
		Attrs: []cdl.Attr{{Name: "standard_name", Value: "sea_binary_mask"}, {Name: "long_name", Value: "1=sea, 0=land"}},
	}
}

func floats(x []float32) []byte {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}
