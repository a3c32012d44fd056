package seamask

import (
	"bytes"
	"fmt"
	"math"

	"lacuna/pipeline/field"
)

// mostSamples is the largest number of places, along either side of a cell, at
// which the mask is looked up.
const mostSamples = 8

// ofPlane returns the sea mask of a grid with a place for every cell. A cell is
// sea if at least half of the places in it are, which are about as far apart as
// the cells of the mask.
func ofPlane(g field.Grid) (field.Mask, error) {
	south, north, _, _ := g.Bounds()
	margin := 2 + int(g.StepKM()*cellsPerDegree/100) // half a cell of the grid, and more
	first, end := max(rowOf(north)-margin, 0), min(rowOf(south)+margin+1, rows)
	d := newDecoder(bytes.NewReader(packed))
	band := make([]bitmap, 0, end-first)
	for r := range end {
		if err := d.nextRow(); err != nil {
			return nil, fmt.Errorf("decode built-in sea mask, row %d: %w", r, err)
		}
		if r >= first {
			band = append(band, d.row)
		}
	}
	const mileKM = 1.852 // a cell of the mask
	samples := min(max(int(math.Ceil(g.StepKM()/mileKM)), 1), mostSamples)
	m := make(field.Mask, g.Len())
	for c := range m {
		i, j := c/g.Width(), c%g.Width()
		centre, down, across := at(g, i, j), half(at(g, i-1, j), at(g, i+1, j), i, g.Height()), half(at(g, i, j-1), at(g, i, j+1), j, g.Width())
		sea := 0
		for k := range samples * samples {
			// In cells from the centre.
			y, x := (float64(k/samples)+0.5)/float64(samples)-0.5, (float64(k%samples)+0.5)/float64(samples)-0.5
			var v [3]float64
			for a := range v {
				v[a] = centre[a] + y*down[a] + x*across[a]
			}
			row := min(max(rowOf(math.Atan2(v[2], math.Hypot(v[0], v[1]))*180/math.Pi)-first, 0), len(band)-1)
			lon := math.Atan2(v[1], v[0]) * 180 / math.Pi
			col := min(max(int(math.Floor((lon+180)*cellsPerDegree+slackCells)), 0), cols-1)
			sea += int(band[row][col/64] >> (col % 64) & 1)
		}
		m[c] = 2*sea >= samples*samples
	}
	return m, nil
}

// at returns the place of a cell, or of the one at the edge next to it.
func at(g field.Grid, i, j int) [3]float64 {
	x, y, z := g.Cartesian(min(max(i, 0), g.Height()-1), min(max(j, 0), g.Width()-1))
	return [3]float64{x, y, z}
}

// half returns the step of a cell from its neighbours on either side, of which one
// is the cell itself at the edge of the grid.
func half(before, after [3]float64, line, lines int) [3]float64 {
	steps := 2.0
	if line == 0 || line == lines-1 {
		steps = 1
	}
	for a := range after {
		after[a] = (after[a] - before[a]) / steps
	}
	return after
}

// rowOf returns the row of the mask that a latitude lies in.
func rowOf(lat float64) int {
	return min(max(int(math.Floor((90-lat)*cellsPerDegree+slackCells)), 0), rows-1)
}
