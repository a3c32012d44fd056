package classical

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
)

func TestSettingsFollowTheStepOfTheSeries(t *testing.T) {
	const day = 24 * time.Hour
	start := DefaultOI(field.Grid{Lat: []float64{40, 41}, Lon: []float64{5, 6}})
	for _, tt := range []struct {
		name  string
		step  time.Duration
		days  float64       // e-folding time without tuning
		apart time.Duration // least time between a frame and the gaps laid over it
	}{
		{"not known", 0, 5, 12 * day},
		{"hourly", time.Hour, 5, day},
		{"twice a day", 12 * time.Hour, 5, 6 * day},
		{"daily", day, 5, 12 * day},
		{"8-day", 8 * day, 12, 12 * day},
		{"monthly", 30 * day, 45, 12 * day},
	} {
		if got := start.OfStep(tt.step); got.Days != tt.days || got.LengthKM != start.LengthKM {
			t.Errorf("%s: %g days and %g km, want %g days and the same length", tt.name, got.Days, got.LengthKM, tt.days)
		}
		if got := DefaultTuning().OfStep(tt.step).Apart; got != tt.apart {
			t.Errorf("%s: gaps come from %v away, want %v", tt.name, got, tt.apart)
		}
	}
}
