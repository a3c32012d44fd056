package ingest

import (
	"slices"
	"time"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// A Granule is one decoded file.
type Granule struct {
	Name      string          // base name of the file
	SHA256    string          // SHA-256 of the file in hexadecimal
	Format    string          // "NetCDF-4", "NetCDF-3 classic", ...
	Product   string          // key of the product table that applied, "" if none
	Transform field.Transform // taken from the options or the product, or inferred
	Fields    []field.Field   // one per time, in file order; Sea is set where the file has a sea mask
	Rejected  []field.Mask    // per field: cells whose number a quality rule or a valid range refused
	// Errors are the standard errors of the observations as the file gives them,
	// per field, in the space of Transform, NaN where it gives none; nil: the file
	// says nothing of them.
	Errors [][]float32
	Ice    [][]float32    // share of sea ice of each field, 0..1, NaN where unknown; nil: not asked for, or not in the file
	Bounds [][2]time.Time // begin and end of each field, as the file gives them; nil: it does not
	Source Source         // carried over into the product unchanged
	Notes  []string       // assumptions that were made, a sentence each
}

// MergedSources is the global attribute that names the sources of a file that was
// merged from several: its observations differ in their errors, and are to be
// weighed by them.
const MergedSources = "merged_sources"

// Empty reports whether the granule holds no observation at all: its day was
// clouded out, or the sensor was off.
func (g Granule) Empty() bool {
	for _, f := range g.Fields {
		if slices.ContainsFunc(f.Values, func(v float32) bool { return v == v }) { // not NaN
			return false
		}
	}
	return true
}

// Neighbour returns the granule as the products of other days need it: without the
// numbers of its maps as they are stored, which are as large as its fields, and without
// its refusals. Only its own product carries them over.
func (g Granule) Neighbour() Granule {
	g.Rejected = nil
	g.Source.Vars = slices.Clone(g.Source.Vars)
	for i, v := range g.Source.Vars {
		if len(g.Fields) > 0 && len(v.Raw) >= len(g.Fields[0].Values)*cdl.SizeOf(v.Type) {
			g.Source.Vars[i].Raw = nil
		}
	}
	return g
}

// Whole reports whether a product of its own can be made of the granule: it is no
// Neighbour.
func (g Granule) Whole() bool {
	v, known := g.Source.Var(g.Source.Variable)
	return !known || len(v.Raw) > 0
}

// A Source is the part of a file that a product carries over unchanged: the
// variable, its coordinates with their bounds, its grid mapping, and the maps of
// its quality and of its errors.
type Source struct {
	Variable string
	Dims     []Dim
	Vars     []Var // in file order
	Attrs    []Attr
}

// Var returns the variable of that name.
func (s Source) Var(name string) (Var, bool) {
	for _, v := range s.Vars {
		if v.Name == name {
			return v, true
		}
	}
	return Var{}, false
}

type (
	// Dim is a dimension of a file.
	Dim = cdl.Dim
	// Var is a variable with its numbers exactly as they are stored.
	Var = cdl.Var
	// Attr is an attribute: a string or a slice of numbers.
	Attr = cdl.Attr
)
