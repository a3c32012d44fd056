package zarr

import (
	"context"
	"fmt"
	"path"

	"lacuna/internal/cdl"
)

// File reads groups of one store, each below the one before it, into one
// description: all arrays that can be read, those of a later group in the place of
// an earlier one's. Numbers of more than most bytes are an error. Arrays that
// cannot be read are left out.
func File(ctx context.Context, groups []*Group, most int64) (cdl.File, error) {
	var f cdl.File
	at := map[string]int{}
	for _, g := range groups {
		f.Attrs = append(f.Attrs, Attributes(g.Attrs, "")...)
		for _, a := range g.Arrays {
			if a.Unusable != "" {
				continue
			}
			v, err := a.variable(ctx, &f, most)
			if err != nil {
				return cdl.File{}, err
			}
			most -= int64(len(v.Raw))
			if i, ok := at[v.Name]; ok {
				f.Vars[i] = v
				continue
			}
			at[v.Name] = len(f.Vars)
			f.Vars = append(f.Vars, v)
		}
	}
	return f, nil
}

// variable reads the whole array and adds its dimensions to a file.
func (a *Array) variable(ctx context.Context, f *cdl.File, most int64) (cdl.Var, error) {
	v := cdl.Var{Name: path.Base(a.Name), Type: a.Type, Attrs: a.Attributes()}
	for i, n := range a.Shape {
		name := fmt.Sprintf("%s_%d", v.Name, i) // for dimensions that have none
		if len(a.Dims) > 0 && a.Dims[i] != "" {
			name = a.Dims[i]
		}
		have := -1
		for k, d := range f.Dims {
			if d.Name == name {
				have = k
			}
		}
		switch {
		case have < 0:
			f.Dims = append(f.Dims, cdl.Dim{Name: name, Len: n})
		case f.Dims[have].Len != n:
			return v, fmt.Errorf("array %s has the length %d along %s, others have %d", a.Name, n, name, f.Dims[have].Len)
		}
		v.Dims = append(v.Dims, name)
	}
	var err error
	v.Raw, err = a.Read(ctx, make([]int, len(a.Shape)), a.Shape, most)
	return v, err
}
