package trial

import "lacuna/pipeline/field"

// stoneCells is the side of the largest sea that is simulated: it holds the
// Black Sea at 1 km. Larger ones are laid out of it, since a trial is to measure
// filling and not simulating.
const stoneCells = 1200

// A mosaic is a map laid out of one stone, every other one turned over, so that
// values and coasts go on across the joints.
type mosaic struct {
	height, width int // 0: as the stone
	stone         field.Grid
}

func (m mosaic) whole() bool {
	return m.height <= m.stone.Height() && m.width <= m.stone.Width()
}

// grid returns the grid of the mosaic, with the step of the stone. A large one
// lies across the equator: there is no room for it elsewhere.
func (m mosaic) grid() field.Grid {
	if m.whole() {
		return m.stone
	}
	axis := func(stone []float64, n int, first float64) []float64 {
		step := (stone[len(stone)-1] - stone[0]) / float64(len(stone)-1)
		out := make([]float64, n)
		for i := range out {
			out[i] = first + step*float64(i)
		}
		return out
	}
	lat := axis(m.stone.Lat, m.height, 0)
	middle := (lat[0] + lat[len(lat)-1]) / 2
	for i := range lat {
		lat[i] -= middle
	}
	return field.Grid{Lat: lat, Lon: axis(m.stone.Lon, m.width, m.stone.Lon[0])}
}

// lay returns a map of the mosaic from one of its stone.
func lay[T any](m mosaic, stone []T) []T {
	if m.whole() {
		return stone
	}
	high, wide := m.stone.Height(), m.stone.Width()
	turned := func(i, n int) int {
		if i/n%2 == 1 {
			return n - 1 - i%n
		}
		return i % n
	}
	out := make([]T, m.height*m.width)
	for i := range out {
		out[i] = stone[turned(i/m.width, high)*wide+turned(i%m.width, wide)]
	}
	return out
}
