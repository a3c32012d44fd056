package jobs

import (
	"testing"

	"lacuna/pipeline/field"
)

func TestBoundingBoxCountsFromMinus180(t *testing.T) {
	tests := []struct {
		name string
		lon  []float64
		want [2]float64 // west, east
	}{
		{"as it is", []float64{26, 42}, [2]float64{26, 42}},
		{"counted from 0", []float64{220, 240}, [2]float64{-140, -120}},
		{"across the date line", []float64{170, 190}, [2]float64{170, -170}},
		{"all around", []float64{0.5, 90.5, 180.5, 270.5}, [2]float64{-180, 180}},
	}
	for _, tt := range tests {
		box := boundingBox(field.Grid{Lat: []float64{50, 40}, Lon: tt.lon})
		if want := [4]float64{tt.want[0], 40, tt.want[1], 50}; box != want {
			t.Errorf("%s: %v, want %v", tt.name, box, want)
		}
	}
}
