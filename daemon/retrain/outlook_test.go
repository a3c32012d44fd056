package retrain

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// timesEvery returns n times at a step.
func timesEvery(step time.Duration, n int) []time.Time {
	times := make([]time.Time, n)
	for i := range times {
		times[i] = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * step)
	}
	return times
}

// The plan names the field with which a training begins: it must be the first one
// with which it can, whatever the step, and what begins must be judged.
func TestAnOutlookNamesTheFirstFieldWithWhichAVersionCanBeJudged(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		step         time.Duration
		first, least int // fields that are there; with which it begins
	}{
		"daily": {day, 5, 38}, "every 8 days": {8 * day, 3, 14}, "monthly": {30 * day, 4, 14},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := samples.DefaultSplit()
			o := outlookOf(samples.Calendar{}, timesEvery(tt.step, tt.first), 2, cfg)
			if o.ready() {
				t.Fatalf("%d fields are enough: %+v", tt.first, o)
			}
			all := timesEvery(tt.step, tt.least)
			if want := samples.DateOf(all[tt.least-1]); o.Begins != want {
				t.Errorf("begins with %v, want %v", o.Begins, want)
			}
			for n := tt.first; n <= tt.least; n++ {
				if ready := outlookOf(samples.Calendar{}, all[:n], 2, cfg).ready(); ready != (n == tt.least) {
					t.Errorf("with %d fields ready is %v", n, ready)
				}
			}
			series := samples.Series{Grid: field.Grid{Lat: []float64{40, 41}, Lon: []float64{10, 12}}, Days: daysOf(all)}
			uses, err := samples.Uses([]samples.Series{series}, []samples.Calendar{samples.Extend(samples.Calendar{}, series.Days, cfg)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var a, b []skill.Loss
			for i, d := range uses[0].Judge {
				a, b = append(a, skill.Loss{Day: d.Time(), Sum: float64(i), Pixels: 1}), append(b, skill.Loss{Day: d.Time(), Sum: 1, Pixels: 1})
			}
			if _, err := skill.DefaultBootstrap().Paired(a, b); err != nil || len(uses[0].Choose) == 0 {
				t.Errorf("the gate: %v, with %d days that choose", err, len(uses[0].Choose))
			}
		})
	}
}

// A calendar is for ever: days that a first training gave their use judge its
// children, and nothing waits for days of a new one.
func TestAnOutlookGoesByTheCalendarThatThereIs(t *testing.T) {
	cfg := samples.DefaultSplit()
	times := timesEvery(24*time.Hour, 120)
	known := samples.Extend(samples.Calendar{}, daysOf(times[:90]), cfg)
	if o := outlookOf(known, times, 90, cfg); !o.ready() || o.Judge != 23 {
		t.Errorf("%+v, want the 23 days of the calendar", o)
	}
	// The spool has been swept: of the days that judged few are left, and the next
	// ones are months away.
	if o := outlookOf(known, times[85:], 30, cfg); o.ready() || o.Begins <= samples.DateOf(times[119]) {
		t.Errorf("%+v, want a day to come", o)
	}
}
