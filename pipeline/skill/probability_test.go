package skill

import (
	"math"
	"slices"
	"testing"
)

func TestReliabilityByHand(t *testing.T) {
	bins := Reliability([]float64{0.1, 0.1, 0.9, 0.8, 1}, []bool{true, false, true, true, false}, 5)
	want := []ReliabilityBin{{Forecast: 0.1, Observed: 0.5, Count: 2}, {Forecast: 0.9, Observed: 2. / 3, Count: 3}}
	if len(bins) != len(want) {
		t.Fatalf("bins are %v, want %v", bins, want)
	}
	for i, b := range bins {
		if math.Abs(b.Forecast-want[i].Forecast) > 1e-12 || math.Abs(b.Observed-want[i].Observed) > 1e-12 || b.Count != want[i].Count {
			t.Errorf("bin %d is %v, want %v", i, b, want[i])
		}
	}
}

func TestErrorByQuantileKeepsEqualPredictorsTogether(t *testing.T) {
	got := RMSEByQuantile([]float64{3, 1, 1, 1, 2, 4}, []float64{4, 1, -1, 1, 3, 5}, 3)
	want := []Quantile{
		{Low: 1, High: 1, RMSE: 1, Pixels: 3},
		{Low: 2, High: 2, RMSE: 3, Pixels: 1},
		{Low: 3, High: 4, RMSE: math.Sqrt((16 + 25) / 2.0), Pixels: 2},
	}
	if !slices.Equal(got, want) {
		t.Errorf("quantiles are %v, want %v", got, want)
	}
}
