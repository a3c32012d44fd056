package netcdf

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// chunkSide is about the side of a chunk in cells: 256 x 256 floats are
	// 256 KiB, so a map at one zoom level reads a few chunks, and a chunk fits
	// the cache of a reader many times over.
	chunkSide = 256

	// boundsVertices is the most corners a cell has in a bounds variable; a
	// dimension no longer than that makes no field.
	boundsVertices = 4
)

// chunks returns the lengths of a chunk of v, nil to store v in one piece
// without compression, as coordinates are.
func (f File) chunks(v Var) []int {
	shape := f.shape(v)
	n := len(shape)
	if !f.isField(v) {
		if f.isRecord(v) {
			return shape // the library cannot store a record variable in one piece
		}
		return nil
	}
	chunks := make([]int, n)
	for i := range chunks {
		chunks[i] = 1
	}
	chunks[n-2] = chunkLength(shape[n-2])
	chunks[n-1] = chunkLength(shape[n-1])
	return chunks
}

// isField reports whether a variable is large and so compressed, unlike
// coordinates, their bounds and the like.
func (f File) isField(v Var) bool {
	shape := f.shape(v)
	n := len(shape)
	return n >= 2 && shape[n-1] > boundsVertices && shape[n-2] > boundsVertices
}

// isDirect reports whether the chunks of a field can be handed to HDF5. A
// variable under the name of a dimension, or one not in plain letters, it may
// know by another name than netCDF-C.
func (f File) isDirect(v Var) bool {
	sameName := func(d Dim) bool { return d.Name == v.Name }
	return f.isField(v) && !slices.ContainsFunc(f.Dims, sameName) &&
		!strings.ContainsFunc(v.Name, func(r rune) bool { return r > unicode.MaxASCII })
}

// chunkLength cuts n cells into equal parts of about chunkSide. Equal, because
// the part of a chunk that hangs over the edge of the grid is compressed too:
// parts of 256 would make 1.5 times the work on a grid of 790 x 1101.
func chunkLength(n int) int {
	parts := max(1, int(math.Round(float64(n)/chunkSide)))
	return (n + parts - 1) / parts
}

func (f File) shape(v Var) []int {
	shape := make([]int, len(v.Dims))
	for i, name := range v.Dims {
		for _, d := range f.Dims {
			if d.Name == name {
				shape[i] = d.Len
			}
		}
	}
	return shape
}

func (f File) isRecord(v Var) bool {
	for _, name := range v.Dims {
		for _, d := range f.Dims {
			if d.Name == name && d.Unlimited {
				return true
			}
		}
	}
	return false
}
