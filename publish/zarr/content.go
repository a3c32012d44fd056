package zarr

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

const (
	// seriesChunk is the number of slots in a chunk of a series: a store of ten
	// years is opened with some fifteen reads, and a day more rewrites a few
	// kilobytes.
	seriesChunk = 256
	// chunkSide is about the side of a chunk of a map, as in the NetCDF files.
	chunkSide = 256
	// fewCells is the length up to which a dimension makes no map: the corners of
	// a cell, the ends of a period.
	fewCells = 4
)

// The series that a store has beside those of its products.
const (
	revisionSeries = "revision" // 0: the slot has no product
	granuleSeries  = "granule"
	hashSeries     = "product_sha256"
)

// content is a product as it goes into a store.
type content struct {
	timeAxis string // name of the time coordinate
	timeDim  string
	times    []int64 // seconds since 1970
	step     int64   // seconds
	arrays   map[string]array
	rows     map[string][][]byte // of arrays along time: the bytes of each time
	static   map[string][]byte   // of the others
	order    []string            // names of arrays, the product's variable last
	attrs    map[string]any      // of the group
}

// newContent takes the file of a product apart.
func newContent(f netcdf.File, p publish.Product) (content, error) {
	if p.Variable == "" { // of a ledger that was made anew
		p.Variable = filledIn(f)
	}
	line, err := f.Timeline(p.Variable, p.Time)
	if err != nil {
		return content{}, fmt.Errorf("%w: %w", publish.ErrPermanent, err)
	}
	c := content{
		timeAxis: line.Axis, timeDim: line.Dim, step: day,
		arrays: map[string]array{}, rows: map[string][][]byte{}, static: map[string][]byte{}, attrs: groupAttrs(f.Attrs),
	}
	for _, t := range line.Times {
		c.times = append(c.times, t.Unix())
	}
	if len(line.Periods) > 0 {
		c.step = max(1, line.Periods[0][1].Unix()-line.Periods[0][0].Unix())
	}
	lens := map[string]int{}
	for _, d := range f.Dims {
		lens[d.Name] = d.Len
	}
	for _, v := range f.Vars {
		switch v.Name {
		case line.Axis:
			c.addTimes(v, line)
		case line.Bounds:
			c.addPeriods(v, line)
		default:
			if err := c.add(v, lens); err != nil {
				return content{}, fmt.Errorf("%w: variable %s: %w", publish.ErrPermanent, v.Name, err)
			}
		}
	}
	c.addOwn(p)
	c.order = slices.Sorted(maps.Keys(c.arrays))
	at := slices.Index(c.order, p.Variable)
	if at < 0 {
		return content{}, fmt.Errorf("%w: its file has no variable %s", publish.ErrPermanent, p.Variable)
	}
	c.order = append(slices.Delete(c.order, at, at+1), p.Variable)
	return c, nil
}

// filledIn returns the variable that was filled: the one that a file names, or has
// the uncertainty of.
func filledIn(f netcdf.File) string {
	if said := netcdf.NamesIn(f.Attrs, "").Value; said != "" {
		return said
	}
	for _, v := range f.Vars {
		if slices.ContainsFunc(f.Vars, func(u netcdf.Var) bool { return u.Name == v.Name+"_uncertainty" }) {
			return v.Name
		}
	}
	return ""
}

// addTimes adds the time coordinate, in seconds since 1970 whatever the units of
// the product: those of some producers change from file to file.
func (c *content) addTimes(v cdl.Var, line netcdf.Timeline) {
	attrs := keep(v.Attrs, "standard_name", "axis", "long_name", "coverage_content_type", "bounds")
	attrs["units"], attrs["calendar"] = "seconds since 1970-01-01 00:00:00", "proleptic_gregorian"
	c.arrays[v.Name] = newArray("int64", []string{c.timeDim}, []int{0}, []int{seriesChunk}, nil, 0.0, attrs)
	for _, t := range c.times {
		c.rows[v.Name] = append(c.rows[v.Name], binary.LittleEndian.AppendUint64(nil, uint64(t)))
	}
	if line.Bounds == "" {
		delete(attrs, "bounds")
	}
}

func (c *content) addPeriods(v cdl.Var, line netcdf.Timeline) {
	c.arrays[v.Name] = newArray("int64", []string{c.timeDim, v.Dims[1]}, []int{0, 2}, []int{seriesChunk, 2}, nil, 0.0, map[string]any{})
	for _, period := range line.Periods {
		row := binary.LittleEndian.AppendUint64(nil, uint64(period[0].Unix()))
		c.rows[v.Name] = append(c.rows[v.Name], binary.LittleEndian.AppendUint64(row, uint64(period[1].Unix())))
	}
}

// addOwn adds the series that say which product a slot has.
func (c *content) addOwn(p publish.Product) {
	var revision, granule, hash [][]byte
	for range c.times {
		revision = append(revision, binary.LittleEndian.AppendUint32(nil, uint32(p.Revision)))
		granule, hash = append(granule, []byte(p.Granule)), append(hash, []byte(p.SHA256))
	}
	for name, series := range map[string]struct {
		typ, words string
		fill       any
		rows       [][]byte
	}{
		revisionSeries: {"int32", "revision of the product; 0: there is none of this time, or it is being replaced", 0.0, revision},
		granuleSeries:  {stringType, "granule that the product was made from", "", granule},
		hashSeries:     {stringType, "sha256 of the NetCDF file of the product", "", hash},
	} {
		attrs := map[string]any{"long_name": series.words, "coverage_content_type": "auxiliaryInformation"}
		c.arrays[name] = newArray(series.typ, []string{c.timeDim}, []int{0}, []int{seriesChunk}, nil, series.fill, attrs)
		c.rows[name] = series.rows
	}
}

// add adds a variable: a map or a series where it runs along time, else as it
// is.
func (c *content) add(v cdl.Var, lens map[string]int) error {
	typ, dims := typeNames[v.Type], slices.Clone(v.Dims)
	outer, inner, along := 1, cdl.SizeOf(v.Type), false
	var shape []int
	for _, d := range dims {
		switch {
		case d == c.timeDim:
			along = true
			continue
		case along:
			inner *= lens[d]
		default:
			outer *= lens[d]
		}
		shape = append(shape, lens[d])
	}
	if typ == "" {
		return fmt.Errorf("there is no type %s in a store", v.Type)
	}
	rows := [][]byte{v.Raw}
	if along {
		rows = timewise(v.Raw, outer, lens[c.timeDim], inner)
		dims = append([]string{c.timeDim}, slices.DeleteFunc(dims, func(d string) bool { return d == c.timeDim })...)
	}
	if v.Type == "char" && len(shape) > 0 {
		if len(shape) > 1 || !along {
			return fmt.Errorf("text along %v cannot be kept", v.Dims)
		}
		typ, dims, shape = stringType, dims[:1], nil
		for i, row := range rows {
			rows[i] = trimmed(row)
		}
	}
	attrs, fill := attrsOf(v.Attrs, typ), fillOf(v, typ)
	if !along {
		c.arrays[v.Name] = newArray(typ, dims, shape, shape, nil, fill, attrs)
		c.static[v.Name] = v.Raw
		return nil
	}
	c.rows[v.Name] = rows
	n := len(shape)
	if n < 2 || shape[n-1] <= fewCells || shape[n-2] <= fewCells {
		c.arrays[v.Name] = newArray(typ, dims, append([]int{0}, shape...), append([]int{seriesChunk}, shape...), nil, fill, attrs)
		return nil
	}
	if words, ok := attrs["coordinates"].(string); ok {
		attrs["coordinates"] = strings.Join([]string{words, granuleSeries, hashSeries}, " ")
	}
	chunk, shard := []int{1}, []int{1}
	for i, length := range shape {
		side := 1
		if i >= n-2 {
			parts := max(1, int(math.Round(float64(length)/chunkSide)))
			side = (length + parts - 1) / parts
		}
		chunk, shard = append(chunk, side), append(shard, (length+side-1)/side*side)
	}
	c.arrays[v.Name] = newArray(typ, dims, append([]int{0}, shape...), shard, chunk, fill, attrs)
	return nil
}

// timewise returns the numbers of each time of a variable of outer × times ×
// inner bytes.
func timewise(raw []byte, outer, times, inner int) [][]byte {
	rows := make([][]byte, times)
	for t := range rows {
		for o := range outer {
			rows[t] = append(rows[t], raw[(o*times+t)*inner:][:inner]...)
		}
	}
	return rows
}

// notReconstructible is the flag of a cell with neither an observation nor an
// analysis, which is the state of all cells of an empty slot.
const notReconstructible = float64(netcdf.NotReconstructible)

// fillOf returns the value of cells that are not stored: that for no value where
// there is one.
func fillOf(v cdl.Var, typ string) any {
	for _, a := range v.Attrs {
		if a.Name == "_FillValue" {
			return jsonNumber(typ, numberOf(a.Value))
		}
	}
	switch {
	case typ == stringType:
		return ""
	case typ == "float32" || typ == "float64":
		return "NaN"
	case slices.ContainsFunc(v.Attrs, func(a cdl.Attr) bool { return a.Name == "flag_masks" }):
		return notReconstructible
	case slices.ContainsFunc(v.Attrs, func(a cdl.Attr) bool { return a.Name == "flag_values" }) && typ == "int8":
		return -1.0 // none of the meanings
	}
	return 0.0
}

// groupAttrs are the attributes that hold of all products of a dataset.
func groupAttrs(attrs []cdl.Attr) map[string]any {
	words := []string{
		"Conventions", "title", "summary", "keywords", "naming_authority", "cdm_data_type", "processing_level", "standard_name_vocabulary",
		"institution", "project", "license", "acknowledgement", "lacuna_layout", "lacuna_variables",
	}
	for _, a := range attrs {
		for _, start := range []string{"creator_", "publisher_", "geospatial_"} {
			if strings.HasPrefix(a.Name, start) {
				words = append(words, a.Name)
			}
		}
	}
	return keep(attrs, words...)
}

// keep returns some of the attributes for JSON.
func keep(attrs []cdl.Attr, names ...string) map[string]any {
	return attrsOf(slices.DeleteFunc(slices.Clone(attrs), func(a cdl.Attr) bool { return !slices.Contains(names, a.Name) }), "")
}

// numberOf returns the first number of an attribute.
func numberOf(value any) float64 {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		return 0
	}
	switch v = v.Index(0); {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	}
	return v.Float()
}
