package netcdf

import (
	"fmt"
	"slices"

	"lacuna/internal/cdl"
	"lacuna/internal/faults"
)

// File describes the content of a NetCDF file to be written, not its storage.
type File cdl.File

type (
	// Dim is a dimension of a file.
	Dim = cdl.Dim
	// Var is a variable with its numbers exactly as they are stored.
	Var = cdl.Var
	// Attr is an attribute: a string or a slice of numbers.
	Attr = cdl.Attr
)

// Validate reports everything in f that Write would refuse, not just the
// first thing.
func (f File) Validate() error {
	var errs faults.List
	lens := map[string]int{}
	for _, d := range f.Dims {
		_, twice := lens[d.Name]
		errs.Check(!twice && d.Name != "" && d.Len > 0, "dimension %q of length %d is defined twice, nameless or empty", d.Name, d.Len)
		lens[d.Name] = d.Len
	}
	names := map[string]bool{}
	for _, v := range f.Vars {
		errs.Check(!names[v.Name] && v.Name != "", "variable %q is defined twice or nameless", v.Name)
		names[v.Name] = true
		errs.Add(validateVar(v, lens))
	}
	errs.Add(validateAttrs("", f.Attrs))
	return errs.Err()
}

func validateVar(v Var, lens map[string]int) error {
	size := cdl.SizeOf(v.Type)
	if size == 0 {
		return fmt.Errorf("variable %s has the unknown type %q", v.Name, v.Type)
	}
	want := size
	for _, name := range v.Dims {
		n, ok := lens[name]
		if !ok {
			return fmt.Errorf("variable %s has the undefined dimension %q", v.Name, name)
		}
		want *= n
	}
	if len(v.Raw) != want {
		return fmt.Errorf("variable %s has %d bytes, its dimensions ask for %d", v.Name, len(v.Raw), want)
	}
	return validateAttrs(v.Name+":", v.Attrs)
}

func validateAttrs(owner string, attrs []Attr) error {
	var errs faults.List
	for i, a := range attrs {
		errs.Check(cdl.TypeOf(a.Value) != "", "attribute %s%s has a value of type %T", owner, a.Name, a.Value)
		same := func(b Attr) bool { return b.Name == a.Name }
		errs.Check(a.Name != "" && !slices.ContainsFunc(attrs[:i], same), "attribute %s%s is defined twice or nameless", owner, a.Name)
	}
	return errs.Err()
}
