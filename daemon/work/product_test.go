package work

import (
	"testing"
	"time"

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

func TestNamesWithoutADayGetIt(t *testing.T) {
	day := time.Date(2024, 4, 9, 12, 0, 0, 0, time.UTC)
	for granule, want := range map[string]string{
		"2024/04/20240409_chl.nc": "20240409_chl_l4",
		"09/chl.nc":               "20240409_chl_l4",
		"chl-2024-04-09.nc":       "chl-2024-04-09_l4",
		"A2024100.L3m.nc":         "A2024100.L3m_l4",
	} {
		if got := datedName(granule, day); got != want {
			t.Errorf("datedName(%s) = %s, want %s", granule, got, want)
		}
	}
}
