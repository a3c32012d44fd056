package matchup

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/internal/cftime"
	"lacuna/pipeline/field"
)

// FromFile returns the measurements of a NetCDF file: a list, a station, a track or
// profiles along time, as CF and Copernicus' in-situ files have them. The variable
// of values has one dimension, that of the times, or a second one of depths. Values
// that a variable NAME_QC does not call good or probably good are passed over.
func FromFile(f cdl.File, variables []string, columns Columns, maxDepth float64) (Table, error) {
	header := make([]string, len(f.Vars))
	for i, v := range f.Vars {
		header[i] = v.Name
	}
	at, _, err := locate(header, variables, columns)
	if err != nil {
		return Table{}, err
	}
	p := points{file: f, value: f.Vars[at["value"]]}
	if n := len(p.value.Dims); n != 1 && n != 2 {
		return Table{}, fmt.Errorf("its variable %s has %d dimensions: measurements have one, that of the times, or a second of depths", p.value.Name, n)
	}
	columnsOf := map[string][]float64{}
	for role, i := range at {
		if role == "platform" {
			continue
		}
		if columnsOf[role], err = p.along(f.Vars[i], role == "depth"); err != nil {
			return Table{}, err
		}
	}
	clock, _, err := cftime.New(textOf(f.Vars[at["time"]].Attrs, "units"), textOf(f.Vars[at["time"]].Attrs, "calendar"))
	if err != nil {
		return Table{}, fmt.Errorf("its variable %s: %w", header[at["time"]], err)
	}
	t := Table{Column: p.value.Name, Units: textOf(p.value.Attrs, "units"), Passed: map[string]int{}}
	platforms, flags := p.platforms(at), p.flags()
	for i, x := range columnsOf["value"] {
		o := Observation{Lat: columnsOf["lat"][i], Lon: columnsOf["lon"][i], Value: x, Platform: platforms[i]}
		when, ok := clock.At(columnsOf["time"][i])
		deep := columnsOf["depth"] != nil && math.Abs(columnsOf["depth"][i]) > maxDepth
		switch {
		case math.IsNaN(x):
			t.Passed["no value"]++
		case !ok:
			t.Passed["no time"]++
		case !(math.Abs(o.Lat) <= 90) || !(math.Abs(o.Lon) <= 540):
			t.Passed["no place"]++
		case deep:
			t.Passed["too deep"]++
		case flags != nil && flags[i] != 1 && flags[i] != 2: // good, probably good
			t.Passed["not flagged good"]++
		default:
			o.Time, o.Lon = when, field.Wrap(o.Lon)
			t.Observations = append(t.Observations, o)
		}
	}
	return t, nil
}

// points are the measurements of a file.
type points struct {
	file  cdl.File
	value cdl.Var
}

// shape is that of the values: rows, and depths of each.
func (p points) shape() (rows, depths int) {
	depths = 1
	for i, name := range p.value.Dims {
		n := p.length(name)
		if i == 0 {
			rows = n
		} else {
			depths = n
		}
	}
	return rows, depths
}

func (p points) length(dim string) int {
	i := slices.IndexFunc(p.file.Dims, func(d cdl.Dim) bool { return d.Name == dim })
	if i < 0 {
		return 0
	}
	return p.file.Dims[i].Len
}

// along returns the numbers of a variable for each value: as many, one for each
// row, one for all of them, or, of depths, one for each depth.
func (p points) along(v cdl.Var, isDepth bool) ([]float64, error) {
	rows, depths := p.shape()
	x := unpacked(v)
	out := make([]float64, rows*depths)
	for i := range out {
		switch {
		case len(x) == len(out) && len(v.Dims) == len(p.value.Dims):
			out[i] = x[i]
		case len(x) == rows && len(v.Dims) == 1 && (!isDepth || v.Dims[0] == p.value.Dims[0]): // Copernicus gives latitudes a dimension of their own
			out[i] = x[i/depths]
		case isDepth && len(x) == depths && len(v.Dims) == 1 && len(p.value.Dims) == 2 && v.Dims[0] == p.value.Dims[1]:
			out[i] = x[i%depths]
		case len(x) == 1:
			out[i] = x[0]
		default:
			return nil, fmt.Errorf("its variable %s (%s) has not the dimension of %s (%s)", v.Name, strings.Join(v.Dims, ", "), p.value.Name, strings.Join(p.value.Dims, ", "))
		}
	}
	return out, nil
}

// unpacked returns the numbers of a variable as they are meant, NaN for its fill
// value.
func unpacked(v cdl.Var) []float64 {
	x := slices.Clone(cdl.Floats(v.Type, v.Raw))
	scale, offset := numberOf(v.Attrs, "scale_factor", 1), numberOf(v.Attrs, "add_offset", 0)
	fill, missing := numberOf(v.Attrs, "_FillValue", math.NaN()), numberOf(v.Attrs, "missing_value", math.NaN())
	for i, stored := range x {
		if x[i] = stored*scale + offset; stored == fill || stored == missing || math.Abs(stored) > 1e30 { // netCDF's own fill value
			x[i] = math.NaN()
		}
	}
	return x
}

// flags returns the quality flags of the values; nil: there are none.
func (p points) flags() []float64 {
	for _, v := range p.file.Vars {
		if strings.EqualFold(v.Name, p.value.Name+"_QC") && v.Type != "char" && slices.Equal(v.Dims, p.value.Dims) {
			return cdl.Floats(v.Type, v.Raw)
		}
	}
	return nil
}

// platforms returns the platform of each value: by a variable of numbers or
// letters along the rows, else by the attributes of the file.
func (p points) platforms(at map[string]int) []string {
	rows, depths := p.shape()
	all := make([]string, rows*depths)
	whole := ""
	for _, name := range []string{"platform_code", "wmo_platform_code", "platform_name", "platform"} {
		if whole = textOf(p.file.Attrs, name); whole != "" {
			break
		}
	}
	var names []string
	if i, told := at["platform"]; told {
		names = namesIn(p.file.Vars[i], rows)
	}
	for k := range all {
		if all[k] = whole; names != nil {
			all[k] = names[k/depths]
		}
	}
	return all
}

// namesIn returns the names in the rows of a variable of letters or numbers; nil:
// it is not along the rows.
func namesIn(v cdl.Var, rows int) (names []string) {
	x := cdl.Floats(v.Type, v.Raw)
	switch {
	case v.Type == "char" && len(v.Dims) == 2 && rows > 0 && len(v.Raw)%rows == 0:
		width := len(v.Raw) / rows
		for row := range rows {
			names = append(names, strings.Trim(string(v.Raw[row*width:(row+1)*width]), " \x00"))
		}
	case v.Type != "char" && len(x) == rows:
		for _, number := range x {
			names = append(names, fmt.Sprintf("%.0f", number))
		}
	}
	return names
}

func textOf(attrs []cdl.Attr, name string) string {
	for _, a := range attrs {
		if s, ok := a.Value.(string); ok && a.Name == name {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

// numberOf returns an attribute that is one number.
func numberOf(attrs []cdl.Attr, name string, otherwise float64) float64 {
	i := slices.IndexFunc(attrs, func(a cdl.Attr) bool { return a.Name == name })
	if i < 0 {
		return otherwise
	}
	list := reflect.ValueOf(attrs[i].Value)
	if list.Kind() != reflect.Slice || list.Len() != 1 {
		return otherwise
	}
	switch x := list.Index(0); {
	case x.CanFloat():
		return x.Float()
	case x.CanInt():
		return float64(x.Int())
	case x.CanUint():
		return float64(x.Uint())
	}
	return otherwise
}
