package simulate

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
)

// A companion goes with the anomalies of the truth as far as it is told to, whole over
// the sea, and is the same whenever it is asked for.
func TestACompanionGoesWithTheTruth(t *testing.T) {
	w, err := New(Config{Product: "blk-chl", Height: 40, Width: 64, Days: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	sea := coarse(field.Field{Grid: w.Grid(), Values: w.physical(w.tracer(0))}, companionCells)
	for _, want := range []float64{0, 0.8, -1} {
		sums := [5]float64{}
		n := 0.0
		for day := 0; day < 400; day += 20 { // other days are another weather
			g, err := w.Companion(day, want)
			if err != nil {
				t.Fatal(err)
			}
			if g.Seen.Grid.Len() != sea.Grid.Len() {
				t.Fatalf("its grid is %v, want %v", g.Seen.Grid, sea.Grid)
			}
			anomalies := w.tracer(day)
			for i := range anomalies {
				anomalies[i] -= float32(w.basin.water.climate(i, float64(w.origin+day)))
				if !w.chart.sea[i] {
					anomalies[i] = field.NaN()
				}
			}
			truth := coarse(field.Field{Grid: w.Grid(), Values: anomalies}, companionCells)
			season := float32(companionMean + companionSeason*math.Cos(2*math.Pi*(yearDay(float64(w.origin+day))-225)/365.25))
			for i, a := range truth.Values {
				b := g.Seen.Values[i] - season
				if (a != a) != (b != b) {
					t.Fatalf("cell %d: truth %g, companion %g", i, a, b)
				}
				if a != a { // NaN: land
					continue
				}
				x, y := float64(a), float64(b)
				for k, v := range [5]float64{x, y, x * x, y * y, x * y} {
					sums[k] += v
				}
				n++
			}
		}
		got := (sums[4]/n - sums[0]*sums[1]/n/n) / math.Sqrt((sums[2]/n-sums[0]*sums[0]/n/n)*(sums[3]/n-sums[1]*sums[1]/n/n))
		if math.Abs(got-want) > 0.15 {
			t.Errorf("the correlation is %.2f, want %.2f", got, want)
		}
	}
	if _, err := w.Companion(0, 1.1); err == nil {
		t.Error("a correlation of 1.1 was taken")
	}
}
