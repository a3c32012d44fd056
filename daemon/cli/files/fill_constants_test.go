package files

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
)

// With --future-days 0 a day is filled as a near-real-time service would have: with
// constants that its own values, and later ones, do not change.
func TestConstantsWithoutAFutureAreOfTheDaysBefore(t *testing.T) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 12, Width: 16, Days: 24, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	const target = 20
	archive := func(times float32) []ingest.Granule {
		var days []ingest.Granule
		for d := range world.Days() {
			seen := world.Day(d).Seen
			if d >= target {
				seen.Values = slices.Clone(seen.Values)
				for c := range seen.Values {
					seen.Values[c] *= times + float32(c%2)*(times-1)
				}
			}
			days = append(days, ingest.Granule{SHA256: fmt.Sprint("day ", d), Fields: []field.Field{seen}, Transform: field.Transform{Log10: true, Floor: 1e-3}})
		}
		return days
	}
	constants := func(days []ingest.Granule, future int) infer.Constants {
		t.Helper()
		flags := fillFlags{tuned: map[string]fill.Tunings{}}
		cfg := infer.DefaultConfig()
		cfg.Method, cfg.FutureDays = "oi", future
		var c *infer.Constants
		for _, d := range []int{len(days) - 1, target} { // the newest first
			if c, err = flags.constants(t.Context(), fill.Job{Granule: days[d], History: days, Sea: world.Sea(), Fill: cfg}, io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		return *c
	}
	plain, other := archive(1), archive(4)
	if a, b := constants(plain, 0), constants(other, 0); a != b || !a.Tuned() || !a.Evidence.To.Before(plain[target].Fields[0].Time) {
		t.Errorf("the constants are %+v, and %+v with other values on the day and after it", a, b)
	}
	if a, b := constants(plain, 5), constants(other, 5); a == b || !a.Tuned() {
		t.Errorf("with a future they are %+v, and %+v with other values", a, b)
	}
}
