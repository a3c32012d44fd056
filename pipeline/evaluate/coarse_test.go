package evaluate

import (
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

func TestCoarseMapsAreMeansOfObservations(t *testing.T) {
	n := field.NaN()
	s := samples.Series{
		Grid: field.Grid{Lat: []float64{10, 11, 12, 13, 14}, Lon: []float64{0, 2, 4, 6}},
		Sea: field.Mask{
			true, true, true, true,
			true, true, true, true,
			true, false, false, false,
			true, false, false, true,
			true, true, true, true, // a row that fills no square
		},
		Days: []samples.Day{
			{Time: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Values: []float32{
				1, 3, n, n,
				n, n, 8, n,
				5, n, n, n,
				7, n, n, 9,
				2, 2, 2, 2,
			}},
			{Time: time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC), Values: slices.Repeat([]float32{n}, 20)},
		},
	}
	for _, tt := range []struct {
		majority bool
		want     []float32
	}{{false, []float32{2, 8, 6, n}}, {true, []float32{2, n, 6, n}}} {
		c, err := Coarsening{Factor: 2, Majority: tt.majority}.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Grid.Lat, []float64{10.5, 12.5}) || !slices.Equal(c.Grid.Lon, []float64{1, 5}) {
			t.Errorf("the grid is %v, %v", c.Grid.Lat, c.Grid.Lon)
		}
		if !slices.Equal(c.Sea, field.Mask{true, true, true, false}) {
			t.Errorf("the sea is %v", c.Sea)
		}
		if len(c.Days) != 1 || !slices.EqualFunc(c.Days[0].Values, tt.want, func(a, b float32) bool { return a == b || a != a && b != b }) {
			t.Errorf("majority %v: the days are %v, want one of %v", tt.majority, c.Days, tt.want)
		}
	}
	for _, factor := range []int{-1, 0, 5} {
		if _, err := (Coarsening{Factor: factor}).Of(s); err == nil {
			t.Errorf("squares of %d cells were accepted", factor)
		}
	}
}
