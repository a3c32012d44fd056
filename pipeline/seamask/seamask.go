// Package seamask says which cells of a grid are sea, anywhere on Earth.
//
// The mask is compiled into the binary: 10800 rows by 21600 columns, cells of
// 1/60 degree (one nautical mile of latitude). It is decoded row by row for
// each call and never held as a whole, so a call costs tens of milliseconds
// and leaves nothing behind.
//
// Sea is the ocean of the source: water that is joined to the world ocean. That
// includes the Black Sea, the Sea of Azov, Marmara with both
// straits, the Baltic, the Red Sea and the Persian Gulf, and also the parts of
// the Ross Ice Shelf that float. The Caspian, the Great Lakes, Ladoga, the Aral
// Sea and every other lake are land: whoever needs one has to bring a mask, or to
// learn it from data.
//
// Package seamask knows nothing of tides, sea ice or files, and nothing of
// which cells a satellite can see: near the coast those are fewer.
package seamask

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

//go:generate go run ./gen ../../../shared/data/masks/globe_combined_mask_compressed.npz sea.bin

// Provenance is the origin of the built-in mask, for the attributes of
// products that use it.
const Provenance = "sea mask of 1/60 degree: majority of the 2 x 2 cells of 1/120 degree (ties are sea) of " +
	"global-land-mask (toddkarin/global-land-mask at 55b4502f, MIT licence), " +
	"derived from the NOAA GLOBE 1 km elevation model, version 1.0"

const (
	rows           = 10800
	cols           = 21600
	cellsPerDegree = 60
)

// slackCells is the share of a mask cell by which an axis may be off without
// changing the answer: axes stored in single precision are off by 1e-5
// degrees, and a grid must not change its mask when it counts from 0 instead
// of -180.
const slackCells = 1e-3

//go:embed sea.bin
var packed []byte

// Builtin returns the sea mask of g. A cell of g is sea if at least half of
// the mask cells whose centres it covers are; a cell that is too small to
// cover a centre takes the mask cell it lies in. Longitudes may follow any
// convention.
func Builtin(g field.Grid) (field.Mask, error) {
	if g.Len() == 0 {
		return nil, fmt.Errorf("make a sea mask: the grid is empty")
	}
	if g.Plane != nil {
		return ofPlane(g)
	}
	lon := columnSpans(g.Lon)
	lat := rowSpans(g.Lat)
	order := make([]int, len(lat)) // output rows from the north
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(lat[a].first, lat[b].first) })

	t := tally{lon: lon, lat: lat, sea: make([]int32, g.Len())}
	d := newDecoder(bytes.NewReader(packed))
	south := lat[order[len(order)-1]].end // spans end in the order in which they begin
	for r, open, next := 0, 0, 0; r < south; r++ {
		if err := d.nextRow(); err != nil {
			return nil, fmt.Errorf("decode built-in sea mask, row %d: %w", r, err)
		}
		for next < len(order) && lat[order[next]].first <= r {
			next++
		}
		for open < next && lat[order[open]].end <= r {
			open++
		}
		if open < next {
			t.add(d, order[open:next])
		}
	}
	return t.mask(), nil
}

// A span is a range of mask rows or columns, end excluded. A span of columns
// may run past the date line: it then ends beyond cols.
type span struct{ first, end int }

func (s span) len() int { return s.end - s.first }

func columnSpans(lon []float64) []span {
	spans := make([]span, len(lon))
	for j := range lon {
		west, east := edges(lon, j)
		s := covered((west+180)*cellsPerDegree, (east+180)*cellsPerDegree, (lon[j]+180)*cellsPerDegree)
		n := min(s.len(), cols)
		first := ((s.first % cols) + cols) % cols
		spans[j] = span{first, first + n}
	}
	return spans
}

func rowSpans(lat []float64) []span {
	spans := make([]span, len(lat))
	for i := range lat {
		south, north := edges(lat, i)
		s := covered((90-north)*cellsPerDegree, (90-south)*cellsPerDegree, (90-lat[i])*cellsPerDegree)
		first := min(max(s.first, 0), rows-1)
		spans[i] = span{first, min(max(s.end, first+1), rows)}
	}
	return spans
}

// edges returns the bounds of cell i of an axis: halfway to its neighbours,
// and as far out at the ends of the axis. An axis of one cell has no width.
func edges(x []float64, i int) (low, high float64) {
	if len(x) == 1 {
		return x[0], x[0]
	}
	before, after := max(i, 1), min(i, len(x)-2)
	a := x[i] - (x[before]-x[before-1])/2
	b := x[i] + (x[after+1]-x[after])/2
	return min(a, b), max(a, b)
}

// covered returns the mask cells whose centres lie in [low, high), or, if
// there is none, the one that holds centre. All are in units of mask cells.
func covered(low, high, centre float64) span {
	first := int(math.Ceil(low - 0.5 - slackCells))
	end := int(math.Ceil(high - 0.5 - slackCells))
	if end <= first {
		first = int(math.Floor(centre + slackCells))
		end = first + 1
	}
	return span{first, end}
}

// A tally counts the mask cells that are sea within each cell of a grid.
type tally struct {
	lon, lat []span
	sea      []int32
}

// add counts the decoder's row for the given rows of the grid.
func (t *tally) add(d *decoder, grid []int) {
	w := len(t.lon)
	for _, i := range grid {
		out := t.sea[i*w : (i+1)*w]
		for j, s := range t.lon {
			n := d.row.count(s.first, min(s.end, cols))
			if s.end > cols {
				n += d.row.count(0, s.end-cols)
			}
			out[j] += int32(n)
		}
	}
}

// mask returns the cells of which at least half is sea.
func (t *tally) mask() field.Mask {
	m := make(field.Mask, len(t.sea))
	w := len(t.lon)
	for i, rows := range t.lat {
		for j, cols := range t.lon {
			m[i*w+j] = int(2*t.sea[i*w+j]) >= rows.len()*cols.len()
		}
	}
	return m
}
