package places

import (
	"math"
	"testing"
)

func TestAxesAreThoseOfARegularGridOnly(t *testing.T) {
	rows, cols := []float64{44, 43.5, 43}, []float64{179, 180, -179, -178}
	lat, lon := Cross(rows, cols, func(y, x float64) (float64, float64) { return y + 0.01*math.Sin(x), x })
	gotRows, gotCols, swapped := Axes(lat, lon, 3, 4)
	if len(gotRows) != 3 || len(gotCols) != 4 || swapped || math.Abs(gotRows[1]-43.5) > 0.01 || gotCols[2] != -179 {
		t.Errorf("axes %v and %v, swapped %v", gotRows, gotCols, swapped)
	}
	bent, _ := Cross(rows, cols, func(y, x float64) (float64, float64) { return y + 0.1*math.Sin(x), x })
	if gotRows, _, swapped = Axes(bent, lon, 3, 4); gotRows != nil || swapped {
		t.Errorf("a bent grid has the rows %v, swapped %v", gotRows, swapped)
	}
	if gotRows, _, swapped = Axes(lon, lat, 3, 4); gotRows != nil || !swapped {
		t.Errorf("the other way round it has the rows %v, swapped %v", gotRows, swapped)
	}
}

func TestFarthestKnowsPolesAndTheDateLine(t *testing.T) {
	km, at := Farthest([]float64{0, 60, 89.9}, []float64{180, 10, 0}, []float64{0, 60, 89.9}, []float64{-180, 11, 180})
	if at != 1 || math.Abs(km-55.597) > 0.01 { // a degree of longitude at 60 degrees
		t.Errorf("%g km at %d, want 55.597 at 1", km, at)
	}
}
