package trial

import "lacuna/pipeline/field"

// tileCells is the side of the largest sea that is simulated: it holds the
// Black Sea at 1 km. Larger ones are tiled from it, since a trial measures
// filling and not simulating.
const tileCells = 1200

// A mosaic is a map tiled from one tile, every other one mirrored, so that
// values and coasts continue across the joints.
type mosaic struct {
	height, width int // 0: those of the tile
	tile          field.Grid
}

func (m mosaic) whole() bool {
	return m.height <= m.tile.Height() && m.width <= m.tile.Width()
}

// grid returns the grid of the mosaic, with the step of the tile. A large one
// lies across the equator: there is no room for it elsewhere.
func (m mosaic) grid() field.Grid {
	if m.whole() {
		return m.tile
	}
	axis := func(tile []float64, n int, first float64) []float64 {
		step := (tile[len(tile)-1] - tile[0]) / float64(len(tile)-1)
		out := make([]float64, n)
		for i := range out {
			out[i] = first + step*float64(i)
		}
		return out
	}
	lat := axis(m.tile.Lat, m.height, 0)
	middle := (lat[0] + lat[len(lat)-1]) / 2
	for i := range lat {
		lat[i] -= middle
	}
	return field.Grid{Lat: lat, Lon: axis(m.tile.Lon, m.width, m.tile.Lon[0])}
}

// lay returns a map of the mosaic from one of its tile.
func lay[T any](m mosaic, tile []T) []T {
	if m.whole() {
		return tile
	}
	high, wide := m.tile.Height(), m.tile.Width()
	turned := func(i, n int) int {
		if i/n%2 == 1 {
			return n - 1 - i%n
		}
		return i % n
	}
	out := make([]T, m.height*m.width)
	for i := range out {
		out[i] = tile[turned(i/m.width, high)*wide+turned(i%m.width, wide)]
	}
	return out
}
