package fill

import (
	"slices"
	"sync"

	"lacuna/pipeline/field"
	"lacuna/pipeline/seamask"
)

// mostBuiltinCells bounds the memory of builtinSeas, a byte a cell.
const mostBuiltinCells = 8 << 20

// builtinSeas are the built-in masks of the grids that were asked for last. A mask is
// unpacked from the north pole down, which takes longer than to fill a small sea, and
// is the same for every granule of a dataset.
var builtinSeas builtins

type builtins struct {
	mu    sync.Mutex
	kept  []builtin // the oldest first
	cells int
}

type builtin struct {
	lat, lon []float64
	mask     field.Mask
}

// of returns the built-in mask of a grid, which the caller may change.
func (b *builtins) of(g field.Grid) (field.Mask, error) {
	if g.Plane != nil || g.Len() > mostBuiltinCells {
		return seamask.Builtin(g)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kept {
		if slices.Equal(k.lat, g.Lat) && slices.Equal(k.lon, g.Lon) {
			return slices.Clone(k.mask), nil
		}
	}
	mask, err := seamask.Builtin(g)
	if err != nil {
		return nil, err
	}
	b.kept = append(b.kept, builtin{lat: slices.Clone(g.Lat), lon: slices.Clone(g.Lon), mask: slices.Clone(mask)})
	for b.cells += len(mask); b.cells > mostBuiltinCells; b.kept = slices.Delete(b.kept, 0, 1) {
		b.cells -= len(b.kept[0].mask)
	}
	return mask, nil
}
