package ingest

import (
	"context"

	"lacuna/internal/cdl"
)

// ReadPoints returns the variables of a file that are no maps: tables, stations,
// tracks and profiles, with numbers as they are stored. Errors are as those of Read.
func (r *Reader) ReadPoints(ctx context.Context, path string) (cdl.File, error) {
	var f cdl.File
	_, err := r.decode(ctx, path, request{Want: wantPoints}, func(x *extract) error {
		f = x.points()
		return nil
	})
	if err != nil {
		return cdl.File{}, named(path, err)
	}
	return f, nil
}

// planPoints plans the reading of all variables of at most two dimensions: a place
// or a time, and a depth or letters.
func planPoints(h *header) (*plan, error) {
	p := &plan{axes: axes{timeDim: -1}, variable: -1, sea: -1, err: noError}
	for v := range h.Vars {
		if h.Vars[v].Type != "" && len(h.Vars[v].Dims) <= 2 {
			p.reads = append(p.reads, v)
		}
	}
	if len(p.reads) == 0 {
		return nil, bad("it has no variable that is not a map", "give a file of measurements, along time or a list")
	}
	return p, nil
}

func (x *extract) points() cdl.File {
	f := cdl.File{Dims: x.header.Dims, Attrs: typed(x.header.Attrs)}
	for _, i := range x.plan.reads {
		v := x.header.Vars[i]
		f.Vars = append(f.Vars, Var{Name: v.Name, Type: v.Type, Dims: dimNames(x.header, v.Dims), Attrs: typed(v.Attrs), Raw: x.raw[i]})
	}
	return f
}
