package bbox

import (
	"slices"
	"testing"
)

func TestColumnsAreCutAcrossTheEdgeOfTheGrid(t *testing.T) {
	global := func(first float64) (lon []float64) {
		for x := range 36 {
			lon = append(lon, first+10*float64(x))
		}
		return lon
	}
	for _, tt := range []struct {
		name string
		box  Box
		lon  []float64
		want []Span
	}{
		{"the globe", Box{}, global(-175), []Span{{0, 36, 0}}},
		{"a sea", Box{-30, 0, 30, 10}, global(-175), []Span{{15, 6, 0}}},
		{"the Pacific", Box{150, 0, -150, 10}, global(-175), []Span{{33, 3, 0}, {0, 3, 360}}},
		{"the Pacific on a grid around it", Box{150, 0, -150, 10}, global(5), []Span{{15, 6, 0}}},
		{"Europe on a grid from 0 to 360", Box{-30, 0, 30, 10}, global(5), []Span{{33, 3, 0}, {0, 3, 360}}},
	} {
		got, err := tt.box.Columns(tt.lon)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
			continue
		}
		var joined []float64
		for _, s := range got {
			for _, x := range tt.lon[s.First : s.First+s.Len] {
				joined = append(joined, x+s.Turn)
			}
		}
		if !slices.IsSorted(joined) {
			t.Errorf("%s: the longitudes %v do not run one way", tt.name, joined)
		}
	}
	if got, err := (Box{0, 0, 5, 5}).Columns([]float64{10, 20}); err == nil {
		t.Errorf("a box beside the grid: %v", got)
	}
}

func TestRowsAreCutInEitherDirection(t *testing.T) {
	box := Box{0, 40, 10, 45}
	up, err := box.Rows([]float64{38, 40, 42, 44, 46})
	if err != nil || up != (Span{First: 1, Len: 3}) {
		t.Errorf("upwards: %v, %v", up, err)
	}
	down, err := box.Rows([]float64{46, 44, 42, 40, 38})
	if err != nil || down != (Span{First: 1, Len: 3}) {
		t.Errorf("downwards: %v, %v", down, err)
	}
	if got, err := box.Rows([]float64{1, 2}); err == nil {
		t.Errorf("a box beside the grid: %v", got)
	}
}
