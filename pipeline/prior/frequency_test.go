package prior

import (
	"math"
	"testing"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

func TestFrequencyIsCountedOverDaysAndCutByPlace(t *testing.T) {
	_, train, _ := samplestest.Archive(t, 30, 16)
	f := FrequencyOf(train)
	var seen [16 * 16]float64
	total := 0.0
	for d := range train.Days() {
		for c, o := range train.Cut(samples.Ref{Day: d, Window: samples.Square(0, 0, 16)}).Observed() {
			seen[c] += indicator(o)
			total += indicator(o)
		}
	}
	mean := total / float64(train.Sea().Count())
	place := Place{Row: 4, Col: -2, Height: 8, Width: 8}
	plane := make([]float32, 64)
	f.fill(plane, place, size{8, 8})
	for i, got := range plane {
		row, col := 4+i/8, i%8-2
		want := 0.0 // beyond the grid
		if col >= 0 {
			want = seen[row*16+col]/mean - 1
		}
		if math.Abs(float64(got)-want) > 0.5/frequencySteps+1e-6 {
			t.Fatalf("cell %d has frequency %g, want %g", i, got, want)
		}
	}
}
