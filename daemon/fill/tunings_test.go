package fill

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// tuned returns a tuning on the days from one day of 2024 to another.
func tuned(length float64, known, from, to int) Tuning {
	at := func(d int) time.Time { return time.Date(2024, 1, d, 12, 0, 0, 0, time.UTC) }
	return Tuning{Known: known, Constants: infer.Constants{LengthKM: length, Evidence: infer.Evidence{From: at(from), To: at(to)}}}
}

func TestADatasetIsTunedWhenItHasDoubled(t *testing.T) {
	none := Tunings{}
	if none.Due(infer.TuneFields-1) || !none.Due(infer.TuneFields) {
		t.Error("the first tuning is not due with as many fields as it takes")
	}
	some := none.Add(tuned(50, 20, 1, 20))
	for known, want := range map[int]bool{0: false, 20: false, 39: false, 40: true, 90: true} {
		if got := some.Due(known); got != want {
			t.Errorf("tuned with 20 fields, due with %d: %v", known, got)
		}
	}
	some.Again = true
	if !some.Due(21) || some.Due(infer.TuneFields-1) {
		t.Error("what an operator wants is not due, or is with too few fields")
	}
	if some.Add(tuned(50, 21, 1, 21)).Due(21) {
		t.Error("it is due once more")
	}
}

// A day has constants that know nothing of it, nor of a later one.
func TestConstantsBeforeADayWereTunedOnEarlierOnesOnly(t *testing.T) {
	all := Tunings{}.Add(tuned(50, 20, 1, 20)).Add(tuned(60, 40, 15, 40))
	for _, tt := range []struct {
		day  int
		want float64 // length of the constants; 0: the defaults
	}{{41, 60}, {30, 50}, {40, 50}, {21, 50}, {15, 0}, {20, 0}, {14, 0}, {1, 0}} {
		got := 0.0
		if c := all.Before(time.Date(2024, 1, tt.day, 12, 0, 0, 0, time.UTC)); c != nil {
			got = c.LengthKM
		}
		if got != tt.want {
			t.Errorf("day %d has a length of %g km, want %g", tt.day, got, tt.want)
		}
	}
	if c := all.Serving(); c == nil || c.LengthKM != 60 {
		t.Errorf("%+v fills, want the newest", c)
	}
}

func TestTuningsAreThoseOfOneGridAndTransform(t *testing.T) {
	grid := field.Grid{Lat: []float64{40, 41}, Lon: []float64{5, 6}}
	other := field.Grid{Lat: []float64{40, 41}, Lon: []float64{5, 6, 7}}
	all := Tunings{}.Of(grid, field.Transform{}).Add(tuned(50, 20, 1, 20))
	if all.Of(grid, field.Transform{}).Serving() == nil {
		t.Error("the constants do not serve their own grid")
	}
	if all.Of(other, field.Transform{}).Serving() != nil || all.Of(grid, field.Transform{Log10: true}).Serving() != nil {
		t.Error("the constants serve another grid, or another transform")
	}
	for n := range 3 * keptTunings {
		all = all.Add(tuned(float64(n), n, n, n+1))
	}
	if len(all.All) != keptTunings || all.Serving().LengthKM != 3*keptTunings-1 {
		t.Errorf("%d tunings are kept, the newest %+v", len(all.All), all.Serving())
	}
}
