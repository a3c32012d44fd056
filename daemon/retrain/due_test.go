package retrain

import (
	"strings"
	"testing"
	"time"
)

func TestTrainingIsDueForAReason(t *testing.T) {
	sunday := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	number := func(v float64) *float64 { return &v }
	ready := Outlook{Days: 200, Wanted: 90, Judge: 40, Judged: true}
	quiet := Facts{
		Now: sunday, Champion: true, LastTrained: sunday.Add(-30 * time.Hour), Since: sunday.AddDate(0, -1, 0), Outlook: ready, NewGranules: 1,
	}
	for _, tt := range []struct {
		name string
		cfg  func(*Config)
		edit func(*Facts)
		want string // part of the reason
		due  bool
	}{
		{name: "no store", cfg: func(c *Config) { c.Store = "" }, want: "off"},
		{name: "schedule passed", want: "scheduled for Sunday 2026-11-15 02:00 UTC", due: true},
		{name: "schedule not yet", edit: func(f *Facts) { f.Now = sunday.Add(-2 * time.Hour) }, want: "scheduled every Sunday at 02:00 UTC, next on Sunday 2026-11-15 02:00 UTC"},
		{
			name: "a champion that was never trained here, and a schedule that is new",
			edit: func(f *Facts) { f.LastTrained, f.Since = time.Time{}, sunday }, want: "next on Sunday 2026-11-22 02:00 UTC",
		},
		{
			name: "the next time of a new schedule",
			edit: func(f *Facts) { f.LastTrained, f.Since, f.Now = time.Time{}, sunday, sunday.AddDate(0, 0, 7) }, want: "scheduled for Sunday 2026-11-22", due: true,
		},
		{name: "nobody watches the schedule yet", edit: func(f *Facts) { f.Since = time.Time{} }, want: "no trigger"},
		{name: "no day at all", edit: func(f *Facts) { f.Outlook = Outlook{Wanted: 90} }, want: "0 of 90 days are there"},
		{name: "too few days", edit: func(f *Facts) { f.Outlook.Days = 89 }, want: "89 of 90 days"},
		{
			name: "days enough to learn from, too few to judge on", edit: func(f *Facts) { f.Outlook.Judged, f.Outlook.Judge, f.Outlook.Begins = false, 8, 20000 },
			want: "of which 8 would judge, and the gate needs days to learn from, days to choose by and 10 days in a row that judge; if none is missing from now on, a training begins with the field of 2024-10-04",
		},
		{name: "first model", edit: func(f *Facts) { f.Champion, f.LastTrained = false, time.Time{} }, want: "no model serves yet", due: true},
		{name: "first model was refused just now", edit: func(f *Facts) { f.Champion, f.LastTrained = false, sunday.Add(-time.Hour) }, want: "not before Monday 2026-11-16 02:00 UTC"},
		{
			name: "first model was refused a day ago", edit: func(f *Facts) { f.Champion, f.Last.State, f.Now = false, StateRefused, sunday.Add(-2*time.Hour) },
			want: "no trigger",
		},
		{name: "first model failed a day ago", edit: func(f *Facts) { f.Champion, f.Last.State = false, StateFailed }, want: "no model serves yet", due: true},
		{name: "nothing new", edit: func(f *Facts) { f.NewGranules = 0 }, want: "nothing new"},
		{name: "drift of gaps", edit: func(f *Facts) { f.MaskDrift = number(0.6) }, want: "gaps surprise the model by 0.60 standard deviations more than those it was made with, and a training begins beyond 0.50", due: true},
		{name: "drift of values", edit: func(f *Facts) { f.ValueDrift = number(0.8) }, want: "values have moved by 0.80 of their standard deviation", due: true},
		{name: "worse products", edit: func(f *Facts) { f.SkillLoss = number(0.3) }, want: "error of recent products has risen by a share of 0.30, and a training begins beyond 0.20", due: true},
		{
			name: "little drift and no schedule", cfg: func(c *Config) { c.Schedule = "" },
			edit: func(f *Facts) { f.MaskDrift, f.ValueDrift, f.SkillLoss = number(0.1), number(0.1), number(0.1) }, want: "no trigger",
		},
		{
			name: "enough new", cfg: func(c *Config) { c.Schedule = "" },
			edit: func(f *Facts) { f.NewGranules = 30 }, want: "30 new granules since the last training, and a training begins with 30", due: true,
		},
		{
			name: "a first model could not be judged", edit: func(f *Facts) { f.Champion, f.Last.State, f.Now = false, StateUnjudged, sunday.Add(-2*time.Hour) },
			want: "no trigger",
		},
		{
			name: "a first model waits for an operator", edit: func(f *Facts) { f.Champion, f.Last.State, f.Now = false, StateWaiting, sunday.Add(-2*time.Hour) },
			want: "no trigger",
		},
		{
			name: "a first model was cancelled", edit: func(f *Facts) { f.Champion, f.Last.State, f.Now = false, StateCancelled, sunday.Add(-2*time.Hour) },
			want: "no trigger",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, facts := DefaultConfig(), quiet
			cfg.Store = "store"
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			if tt.edit != nil {
				tt.edit(&facts)
			}
			due, why := cfg.Due(facts)
			if due != tt.due || !strings.Contains(why, tt.want) {
				t.Errorf("due %v because %q, want %v because of %q", due, why, tt.due, tt.want)
			}
		})
	}
}

func TestTrainSettingsReportEveryFault(t *testing.T) {
	good := DefaultConfig()
	good.Store = "store"
	if err := good.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	bad := Config{Store: "store", Schedule: "whenever", Policy: "maybe", Nice: 30, Window: "22-6"}
	err := bad.Validate()
	for _, want := range []string{"schedule", "policy", "first_days", "budget", "window", "nice", "check"} {
		if err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("Validate() = %v, want a message about %s", err, want)
		}
	}
}
