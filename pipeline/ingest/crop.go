package ingest

import (
	"fmt"
	"slices"

	"lacuna/internal/bbox"
	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// crop leaves of the extract what lies in a box. Where the box crosses the edge
// of the grid the part beyond it is put behind, and the longitudes jump; grid
// counts them on.
func (x *extract) crop(box bbox.Box) error {
	if box.IsZero() {
		return nil
	}
	notes := x.plan.notes
	grid, err := x.grid()
	x.plan.notes = notes // they are made again, of what is left
	if err != nil {
		return err
	}
	if grid.Plane != nil {
		return x.cropPlane(grid, box)
	}
	rows, err := box.Rows(grid.Lat)
	if err != nil {
		return bad(err.Error(), "correct bbox, or the archive of the dataset")
	}
	columns, err := box.Columns(grid.Lon)
	if err != nil {
		return bad(err.Error(), "correct bbox, or the archive of the dataset")
	}
	a := x.plan.axes
	x.take(a.latDim, []bbox.Span{rows})
	x.take(a.lonDim, columns)
	return nil
}

// cropPlane leaves of the extract the rows and columns that have a cell in a box.
func (x *extract) cropPlane(grid field.Grid, box bbox.Box) error {
	top, left, bottom, right := grid.Height(), grid.Width(), -1, -1
	for c := range grid.Len() {
		i, j := c/grid.Width(), c%grid.Width()
		if lat, lon := grid.Place(i, j); box.HoldsLat(lat) && box.HoldsLon(lon) {
			top, left, bottom, right = min(top, i), min(left, j), max(bottom, i), max(right, j)
		}
	}
	if bottom < 0 {
		return bad(fmt.Sprintf("none of its cells (%v) lies in bbox %v", grid, box), "correct bbox, or the archive of the dataset")
	}
	x.take(x.plan.axes.latDim, []bbox.Span{{First: top, Len: bottom + 1 - top}})
	x.take(x.plan.axes.lonDim, []bbox.Span{{First: left, Len: right + 1 - left}})
	return nil
}

// take leaves of every variable the spans of a dimension, one behind the other.
// The header is shared with nobody.
func (x *extract) take(dim int, spans []bbox.Span) {
	h := x.header
	length := 0
	for _, s := range spans {
		length += s.Len
	}
	for v, raw := range x.raw {
		at := slices.Index(h.Vars[v].Dims, dim)
		if at < 0 || len(raw) == 0 {
			continue
		}
		shape := h.Shape(v)
		inner := cdl.SizeOf(h.Vars[v].Type) // bytes of one place along the dimension
		for _, n := range shape[at+1:] {
			inner *= n
		}
		whole := inner * shape[at]
		out := make([]byte, 0, len(raw)/max(1, shape[at])*length)
		for from := 0; whole > 0 && from+whole <= len(raw); from += whole {
			for _, s := range spans {
				out = append(out, raw[from+s.First*inner:from+(s.First+s.Len)*inner]...)
			}
		}
		x.raw[v] = out
	}
	h.Dims = slices.Clone(h.Dims)
	h.Dims[dim].Len = length
}

// around returns the box of a grid, with half a cell on each side.
func around(g field.Grid) bbox.Box {
	south, north, west, east := g.Bounds()
	half := 0.5 * min((north-south)/float64(max(1, g.Height()-1)), (east-west)/float64(max(1, g.Width()-1)))
	return bbox.Box{West: west - half, South: max(south-half, -90), East: east + half, North: min(north+half, 90)}
}
