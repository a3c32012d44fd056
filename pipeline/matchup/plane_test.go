package matchup

import (
	"testing"

	"lacuna/pipeline/field"
)

// On a grid with a place for every cell the axes say nothing of where it lies.
func TestAnObservationFindsItsCellOnABentGrid(t *testing.T) {
	var lat, lon []float64
	for c := range 30 {
		lat, lon = append(lat, 70+0.1*float64(c/6)+0.02*float64(c%6)), append(lon, field.Wrap(179+0.3*float64(c%6)))
	}
	g, err := field.NewPlane(lat, lon, 6, true, false)
	if err != nil {
		t.Fatal(err)
	}
	one := Map{Grid: g, Values: make([]float32, 30)}
	one.Values[14] = field.NaN()
	if cell, holds := nearest(one, lat[15]+0.01, lon[15], 0); cell != 15 || !holds {
		t.Errorf("cell %d, %v; want 15, beyond the date line", cell, holds)
	}
	if cell, holds := nearest(one, lat[14], lon[14], 0); cell != -1 || !holds {
		t.Errorf("cell %d, %v; want none, on the grid", cell, holds)
	}
	if cell, _ := nearest(one, lat[14], lon[14], 15); cell != 13 && cell != 15 && cell != 8 && cell != 20 {
		t.Errorf("cell %d; want one beside the gap", cell)
	}
	if cell, holds := nearest(one, 40, 10, 50); cell != -1 || holds {
		t.Errorf("cell %d, %v; want none, off the grid", cell, holds)
	}
}
