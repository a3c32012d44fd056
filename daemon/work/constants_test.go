package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
)

// A day is scored with constants of other days: those here are so bad that they
// show.
func TestAScoredDayIsFilledWithConstantsThatNeverSawIt(t *testing.T) {
	w := newTestWorker(t)
	w.cfg.State = state.Dir(t.TempDir())
	w.set.Fill.Method = "oi"
	world, days := someDays(t, w, 9)
	last := len(days) - 1
	s := scene{granule: days[last], history: days[:last], sea: world.Sea()}
	at := days[last].Fields[0].Time
	score := func(tuned ...fill.Tuning) float64 {
		t.Helper()
		kept := fill.Tunings{}.Of(days[last].Fields[0].Grid, days[last].Transform)
		for _, next := range tuned {
			kept = kept.Add(next)
		}
		file := w.cfg.State.Constants("sea")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := state.Save(file, kept); err != nil {
			t.Fatal(err)
		}
		got, err := w.scoreOverlay(t.Context(), ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}, s)
		if err != nil {
			t.Fatal(err)
		}
		return got.MSE
	}
	bad := func(from, to int) fill.Tuning {
		return fill.Tuning{Constants: infer.Constants{
			LengthKM: 0.01, Days: 0.01, Nugget: 0.98, SigmaScale: 1,
			Evidence: infer.Evidence{From: at.Add(time.Duration(from) * 24 * time.Hour), To: at.Add(time.Duration(to) * 24 * time.Hour)},
		}}
	}
	plain := score()
	if got := score(bad(-30, -1)); got < 1.2*plain {
		t.Errorf("constants of earlier days have the MSE %.4f and the defaults %.4f: they are not used", got, plain)
	}
	if got := score(bad(-30, 0)); got != plain {
		t.Errorf("constants of the day itself have the MSE %.4f, want the %.4f of the defaults", got, plain)
	}
	if got := score(bad(1, 30)); got != plain {
		t.Errorf("constants of later days have the MSE %.4f, want the %.4f of the defaults", got, plain)
	}
	if got := score(bad(-30, -9), bad(-5, 5)); got < 1.2*plain {
		t.Errorf("the MSE is %.4f, want that of the constants that are older and did not see the day", got)
	}
}

// shelf is a ledger of granules that the worker has decoded.
type shelf struct {
	Books
	days []ingest.Granule
	more int // days that it only counts
}

func (s shelf) CountTimes(context.Context, string) (int, error) { return len(s.days) + s.more, nil }

func (s shelf) LatestTimes(context.Context, string, int) ([]time.Time, error) {
	var times []time.Time
	for _, g := range slices.Backward(s.days) {
		times = append(times, g.Fields[0].Time)
	}
	return times, nil
}

func (s shelf) Window(_ context.Context, _ string, from, to time.Time) ([]ledger.Granule, error) {
	var rows []ledger.Granule
	for _, g := range s.days {
		if at := g.Fields[0].Time; !at.Before(from) && !at.After(to) {
			rows = append(rows, ledger.Granule{Arrival: ledger.Arrival{SHA256: g.SHA256}})
		}
	}
	return rows, nil
}

// Constants of a day in near real time are those of the days before it, whatever
// else is in the archive and in whatever order it is filled: the values of the day,
// and of later ones, change nothing.
func TestConstantsInNearRealTimeKnowNothingOfTheDayAndOfLaterOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 12, Width: 16, Days: 26, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var days []ingest.Granule
	for d := range world.Days() {
		seen := world.Day(d).Seen
		days = append(days, ingest.Granule{SHA256: fmt.Sprint("day ", d), Fields: []field.Field{seen}, Transform: field.Transform{Log10: true, Floor: 1e-3}})
	}
	const target = 21
	constants := func(days []ingest.Granule, future int, order ...int) infer.Constants {
		t.Helper()
		w := newTestWorker(t)
		w.cfg.State, w.Books = state.Dir(t.TempDir()), shelf{days: days}
		for _, g := range days {
			w.decoded[g.SHA256] = g
		}
		cfg := infer.DefaultConfig()
		cfg.PastDays, cfg.FutureDays = 10, future
		var c infer.Constants
		for _, i := range order {
			got, err := w.constants(t.Context(), fill.Job{Dataset: "sea", Granule: days[i], Sea: world.Sea(), Fill: cfg})
			if err != nil {
				t.Fatal(err)
			}
			c = *got
		}
		return c
	}
	changed := slices.Clone(days)
	for i := target; i < len(days); i++ {
		changed[i].Fields = slices.Clone(days[i].Fields)
		values := slices.Clone(days[i].Fields[0].Values)
		for c := range values {
			values[c] *= float32(3 + c%2)
		}
		changed[i].Fields[0].Values = values
	}
	newest := len(days) - 1
	for name, order := range map[string][]int{"first of all": {target}, "after the newest": {newest, target}} {
		a, b := constants(days, 0, order...), constants(changed, 0, order...)
		if a != b {
			t.Errorf("%s: other values on the day and after it change the constants from %+v to %+v", name, a, b)
		}
		if later := !a.Evidence.To.Before(days[target].Fields[0].Time); later || a.Tuned() == (name == "after the newest") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	// Where there are constants a granule that is waited for does not wait for others:
	// the product that follows it has them tuned.
	for _, tt := range []struct {
		future     int // of the dataset
		reanalysis bool
		tunings    int
	}{{future: 5, reanalysis: true, tunings: 1}, {future: 5, tunings: 2}, {reanalysis: true, tunings: 2}} {
		w := newTestWorker(t)
		w.cfg.State = state.Dir(t.TempDir())
		w.set.Reanalysis.Enabled, w.set.Fill.FutureDays = tt.reanalysis, tt.future
		for _, g := range days {
			w.decoded[g.SHA256] = g
		}
		cfg := infer.DefaultConfig()
		cfg.PastDays, cfg.FutureDays = 10, 0
		job := func(i int) fill.Job {
			return fill.Job{Dataset: "sea", Granule: days[i], Sea: world.Sea(), Fill: cfg}
		}
		var had []infer.Constants
		for _, b := range []shelf{{days: days[:22]}, {days: days[:25], more: 22}} { // it doubles
			w.Books = b
			c, err := w.constants(t.Context(), job(len(b.days)-1))
			if err != nil || !c.Tuned() {
				t.Fatalf("%+v: %+v, %v", tt, c, err)
			}
			had = append(had, *c)
		}
		if again := had[0] != had[1]; again != (tt.tunings > 1) {
			t.Errorf("%+v: constants of %v and %v", tt, had[0].Evidence.To, had[1].Evidence.To)
		}
		later := job(25)
		later.Fill.FutureDays = 5
		c, err := w.constants(t.Context(), later)
		if err != nil || !c.Evidence.To.After(had[0].Evidence.To) {
			t.Errorf("%+v: a product that follows has constants of %v, those before were of %v; %v", tt, c.Evidence.To, had[0].Evidence.To, err)
		}
	}
	// A delayed product may know of them.
	if a, b := constants(days, 5, newest, target), constants(changed, 5, newest, target); a == b || !a.Tuned() {
		t.Errorf("a delayed product has %+v, and %+v with other values after it", a, b)
	}
}
