package daemon

import (
	"fmt"
	"testing"
	"time"

	"lacuna/daemon/operate"
)

// rhythms are series of other steps than a day, with the window of three steps
// back and two ahead.
var rhythms = []struct {
	name string
	step time.Duration
	keys func(*Dataset)
}{
	{"hourly", time.Hour, func(d *Dataset) { d.Fill.Back, d.Fill.Ahead = 3*time.Hour, 2*time.Hour }},
	{"twice a day", 12 * time.Hour, func(d *Dataset) { d.Fill.Back, d.Fill.Ahead = 36*time.Hour, 24*time.Hour }},
	{"daily", 24 * time.Hour, func(d *Dataset) { d.Fill.PastDays, d.Fill.FutureDays = 3, 2 }},
	{"8-day", 8 * 24 * time.Hour, func(d *Dataset) { d.Fill.PastDays, d.Fill.FutureDays = 3, 2 }},
	{"monthly", 30 * 24 * time.Hour, func(d *Dataset) { d.Fill.PastDays, d.Fill.FutureDays = 3, 2 }},
}

// Series of every rhythm go through the service: a finished archive becomes one
// product a field, made of the fields within so many steps, and a field that
// follows has the product whose window it ends made again.
func TestSeriesOfEveryRhythmAreFilledByTheirOwnStep(t *testing.T) {
	skipInShort(t)
	const fields = 8
	for _, rhythm := range rhythms {
		t.Run(rhythm.name, func(t *testing.T) {
			r := newRolling(t, fields)
			r.cfg.Datasets[0].Fill.Method = "oi"
			r.cfg.Datasets[0].Reanalysis.LeastChange = 0
			rhythm.keys(&r.cfg.Datasets[0])
			start := time.Date(2024, 1, 3, 12, 0, 0, 0, time.UTC)
			names := make([]string, fields)
			deliver := func(i int) {
				g := r.world.Granule(r.days[i]).At(start.Add(time.Duration(i) * rhythm.step))
				names[i] = g.Name
				put(t, r.archive(), g)
			}
			for i := range fields - 1 {
				deliver(i)
			}
			if s := r.pass(t, 0); s.Products != fields-1 || s.SetAside != 0 {
				t.Fatalf("%+v, want a product for each of %d fields\n%s", s, fields-1, r.log)
			}
			if step, err := operate.Step(t.Context(), r.book(t), "sea"); err != nil || step != rhythm.step {
				t.Errorf("the step is %v, %v", step, err)
			}
			check := func(i, last int, revision int, mode string) {
				t.Helper()
				p, ok, err := r.book(t).Current(t.Context(), "sea", names[i])
				if err != nil || !ok || p.Revision != revision {
					t.Fatalf("field %d has revision %d, %v, %v, want %d", i, p.Revision, ok, err, revision)
				}
				file := read(t, p.File, "CHL")
				for _, a := range file.Source.Attrs {
					if a.Name == "lacuna_mode" && a.Value != mode {
						t.Errorf("the product of field %d is %v, want %s", i, a.Value, mode)
					}
				}
				for j := range last {
					if want := j >= i-3 && j <= i+2; mentions(file, names[j]) != want {
						t.Errorf("the product of field %d has field %d among its inputs: %v", i, j, !want)
					}
				}
			}
			for i := range fields - 2 {
				check(i, fields-1, 1, "delayed")
			}
			check(fields-2, fields-1, 1, "near-real-time")
			deliver(fields - 1)
			if s := r.pass(t, time.Hour); s.Products != 2 {
				t.Errorf("the field that follows made %d products, want its own and that whose window it ends\n%s", s.Products, fmt.Sprint(r.log))
			}
			check(fields-3, fields, 2, "delayed")
			check(fields-2, fields-1, 1, "near-real-time") // it waits for one more
		})
	}
}

// The constants of optimal interpolation are tuned once, on days before the one
// that they first fill, kept over restarts, and tuned again when asked for.
func TestConstantsAreTunedOnceAndKept(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 21)
	r.world = world(t, 16, 24) // smaller: every trial of a tuning fills its days
	r.days = firstVersions(r.world, 21)
	set := &r.cfg.Datasets[0]
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays, set.DailySkill = "oi", 10, 0, true
	settings := r.cfg.Operate()
	tunings := func() operate.TuningStatus {
		t.Helper()
		all, err := settings.Tunings("sea")
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	for i := range 19 {
		r.deliver(t, i)
	}
	r.pass(t, 0)
	first := tunings()
	if len(first.All) != 1 || !first.Serving().Tuned() {
		t.Fatalf("tuned as %+v\n%s", first, r.log)
	}
	e := first.All[0].Evidence
	if day := func(i int) time.Time { return r.world.Granule(r.days[i]).Seen.Time }; !e.From.Equal(day(0)) || !e.To.Equal(day(14)) || e.Fields != 15 {
		t.Errorf("tuned on %+v, want the fifteen days before the sixteenth", e)
	}
	if e.Overlays == 0 || e.MSE <= 0 || e.Coverage90 <= 0 {
		t.Errorf("the evidence is %+v", e)
	}
	r.deliver(t, 19)
	r.pass(t, 0)
	if got := tunings(); len(got.All) != 1 {
		t.Errorf("tuned %d times, and the dataset has not doubled", len(got.All))
	}
	if _, err := settings.TuneAgain("sea"); err != nil {
		t.Fatal(err)
	}
	r.deliver(t, 20)
	r.pass(t, 0)
	if got := tunings(); len(got.All) != 2 || got.Again || got.All[1].Evidence.Fields != 20 {
		t.Errorf("asked for again there are %+v", got)
	}
}
