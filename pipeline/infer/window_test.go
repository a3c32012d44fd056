package infer

import (
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/samples"
)

// rhythms are the series that a service may meet.
var rhythms = []struct {
	name string
	step time.Duration
}{
	{"hourly", time.Hour}, {"twice a day", 12 * time.Hour}, {"daily", day}, {"8-day", 8 * day}, {"monthly", 30 * day},
}

// offsets returns the times of Within as steps from the target.
func offsets(cfg Config, n int) []int { return offsetsAt(cfg, n, 0) }

// offsetsAt is offsets for a target some steps later.
func offsetsAt(cfg Config, n, later int) []int {
	times := make([]time.Time, 2*n+1)
	for i := range times {
		times[i] = day0.Add(time.Duration(i-n) * cfg.Step)
	}
	var out []int
	for _, i := range cfg.Within(times, day0.Add(time.Duration(later)*cfg.Step)) {
		out = append(out, i-n)
	}
	return out
}

func TestTheWindowGoesByTheStepOfTheSeries(t *testing.T) {
	for _, tt := range []struct {
		name        string
		cfg         Config
		first, last int // steps from the field
		frames      int
	}{
		{"daily", Config{Step: day, PastDays: 10, FutureDays: 5}, -10, 5, 16},
		{"daily, at times of day that differ", Config{Step: 25 * time.Hour, PastDays: 10, FutureDays: 5}, -10, 5, 16},
		{"daily, near-real-time", Config{Step: day, PastDays: 10}, -10, 0, 11},
		{"twice a day", Config{Step: 12 * time.Hour, PastDays: 10, FutureDays: 5}, -20, 10, 31},
		{"8-day", Config{Step: 8 * day, PastDays: 10, FutureDays: 5}, -10, 5, 16},
		{"monthly", Config{Step: 30 * day, PastDays: 10, FutureDays: 5}, -10, 5, 16},
		{"monthly, near-real-time", Config{Step: 30 * day, PastDays: 10}, -10, 0, 11},
		{"hourly, three days by their hours", Config{Step: time.Hour, Back: 36 * time.Hour, Ahead: 6 * time.Hour}, -36, 6, 43},
		{"hourly, thinned", Config{Step: time.Hour, PastDays: 10, FutureDays: 5}, -240, 117, 98},
		{"8-day by hours", Config{Step: 8 * day, Back: 16 * day}, -2, 0, 3},
		{"only itself", Config{Step: time.Hour}, 0, 0, 1},
	} {
		got := offsets(tt.cfg, 400)
		if got[0] != tt.first || got[len(got)-1] != tt.last || len(got) != tt.frames {
			t.Errorf("%s: %d frames from %d to %d, want %d from %d to %d", tt.name, len(got), got[0], got[len(got)-1], tt.frames, tt.first, tt.last)
		}
		if !slices.IsSorted(got) || !slices.Contains(got, 0) {
			t.Errorf("%s: frames %v, want them in order with the field itself", tt.name, got)
		}
	}
}

// What is left out of an hourly window lies far away, and no long hole is cut.
func TestAThinnedWindowKeepsTheNearestFieldsAndReachesAsFar(t *testing.T) {
	cfg := Config{Step: time.Hour, PastDays: 10}
	got := offsets(cfg, 400)
	for hour := -mostFrames / 2; hour <= 0; hour++ {
		if !slices.Contains(got, hour) {
			t.Errorf("the field of %d hours ago is left out", -hour)
		}
	}
	for i := 1; i < len(got); i++ {
		if hole := got[i] - got[i-1]; hole > 10 {
			t.Errorf("nothing from %d to %d hours ago", -got[i], -got[i-1])
		}
	}
	times := []time.Time{}
	for _, hour := range got {
		times = append(times, day0.Add(time.Duration(hour)*time.Hour))
	}
	// The next field shares all but a few of them.
	shared := 0
	for _, hour := range offsetsAt(cfg, 400, 1) {
		if slices.Contains(got, hour) {
			shared++
		}
	}
	if shared < len(got)-4 {
		t.Errorf("the next field has %d of the %d neighbours", shared, len(got))
	}
	if again := cfg.Within(times, day0); len(again) != len(times) {
		t.Errorf("thinned again, %d of %d fields are left", len(again), len(times))
	}
}

func TestAStepIsKnownFromFourFieldsOn(t *testing.T) {
	at := func(days ...int) (all []time.Time) {
		for _, d := range days {
			all = append(all, day0.AddDate(0, 0, d))
		}
		return all
	}
	if got := StepOf(at(0, 9, 9, 18)); got != 0 {
		t.Errorf("three days that are far apart have the step %v", got)
	}
	if got := StepOf(at(0, 8, 16, 24)); got != 8*day {
		t.Errorf("four composites of eight days have the step %v", got)
	}
	for step, want := range map[time.Duration]bool{0: true, time.Hour: false, 12 * time.Hour: false, 23 * time.Hour: true, day: true, 30 * time.Hour: true, 8 * day: false} {
		if got := Daily(step); got != want {
			t.Errorf("a step of %v is daily: %v", step, got)
		}
	}
}

// What is served must be what was judged: the exams of models show samples.LastDays
// days before a day, and none or samples.NextDays after it. The oldest of them must
// reach the analysis, and the one before it must not.
func TestTheDefaultWindowIsTheOneThatModelsAreJudgedWith(t *testing.T) {
	nrt := DefaultConfig()
	delayed := nrt
	delayed.FutureDays = JudgedFutureDays
	var times []time.Time
	for d := -40; d <= 20; d++ {
		times = append(times, day0.AddDate(0, 0, d))
	}
	for _, tt := range []struct {
		cfg         Config
		first, last int
	}{{nrt, -samples.LastDays, 0}, {delayed, -samples.LastDays, samples.NextDays}} {
		within := tt.cfg.Within(times, day0)
		if first, last := within[0]-40, within[len(within)-1]-40; first != tt.first || last != tt.last || tt.cfg.Unjudged() != "" {
			t.Errorf("days %d to %d are served, %d to %d were judged; told %q", first, last, tt.first, tt.last, tt.cfg.Unjudged())
		}
	}
	s := basin(24, 32, false)
	at := func(days int) Analysis {
		moved := s
		moved.History = slices.Clone(s.History)
		moved.History[0].Time = day0.AddDate(0, 0, days)
		return fillWith(t, nil, nrt, moved)
	}
	without := s
	without.History = s.History[1:]
	gone := fillWith(t, nil, nrt, without)
	if sameAnalysis(at(-samples.LastDays), gone) {
		t.Error("the oldest day that was judged with has no part in what is served")
	}
	if !sameAnalysis(at(-samples.LastDays-1), gone) {
		t.Error("a day that nothing was judged with has a part in what is served")
	}
	for name, edit := range map[string]func(*Config){
		"a shorter past":     func(c *Config) { c.PastDays = 10 },
		"a shorter future":   func(c *Config) { c.FutureDays = 5 },
		"hours back":         func(c *Config) { c.Back = 720 * time.Hour },
		"hours ahead":        func(c *Config) { c.Ahead = time.Hour },
		"a past that is off": func(c *Config) { c.PastDays = 31 },
	} {
		cfg := delayed
		edit(&cfg)
		if cfg.Unjudged() == "" {
			t.Errorf("%s: nobody is told that the scores do not hold", name)
		}
	}
}
