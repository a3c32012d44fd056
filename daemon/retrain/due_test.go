package retrain

import (
	"strings"
	"testing"
	"time"
)

func TestTrainingIsDueForAReason(t *testing.T) {
	sunday := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	number := func(v float64) *float64 { return &v }
	quiet := Facts{Now: sunday, Champion: true, LastTrained: sunday.Add(-30 * time.Hour), Days: 200, NewGranules: 1}
	for _, tt := range []struct {
		name string
		cfg  func(*Config)
		edit func(*Facts)
		want string // part of the reason
		due  bool
	}{
		{name: "no store", cfg: func(c *Config) { c.Store = "" }, want: "off"},
		{name: "schedule passed", want: "scheduled for 2026-11-15 02:00", due: true},
		{name: "schedule not yet", edit: func(f *Facts) { f.Now = sunday.Add(-2 * time.Hour) }, want: "no trigger"},
		{name: "too few days", edit: func(f *Facts) { f.Days = 89 }, want: "89 of 90 days"},
		{name: "first model", edit: func(f *Facts) { f.Champion, f.LastTrained = false, time.Time{} }, want: "no model serves yet", due: true},
		{name: "first model was refused just now", edit: func(f *Facts) { f.Champion, f.LastTrained = false, sunday.Add(-time.Hour) }, want: "less than"},
		{
			name: "first model was refused a day ago", edit: func(f *Facts) { f.Champion, f.Last.State, f.Now = false, StateRefused, sunday.Add(-2*time.Hour) },
			want: "no trigger",
		},
		{name: "first model failed a day ago", edit: func(f *Facts) { f.Champion, f.Last.State = false, StateFailed }, want: "no model serves yet", due: true},
		{name: "nothing new", edit: func(f *Facts) { f.NewGranules = 0 }, want: "nothing new"},
		{name: "drift of gaps", edit: func(f *Facts) { f.MaskDrift = number(0.6) }, want: "the gaps moved by 0.60", due: true},
		{name: "drift of values", edit: func(f *Facts) { f.ValueDrift = number(0.8) }, want: "the values", due: true},
		{name: "worse products", edit: func(f *Facts) { f.SkillLoss = number(0.3) }, want: "recent products", due: true},
		{
			name: "little drift and no schedule", cfg: func(c *Config) { c.Schedule = "" },
			edit: func(f *Facts) { f.MaskDrift, f.ValueDrift, f.SkillLoss = number(0.1), number(0.1), number(0.1) }, want: "no trigger",
		},
		{
			name: "enough new", cfg: func(c *Config) { c.Schedule = "" },
			edit: func(f *Facts) { f.NewGranules = 30 }, want: "30 new granules", due: true,
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
	bad := Config{Store: "store", Schedule: "whenever", Policy: "maybe", Nice: 30}
	err := bad.Validate()
	for _, want := range []string{"schedule", "policy", "first_days", "budget", "nice", "check"} {
		if err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("Validate() = %v, want a message about %s", err, want)
		}
	}
}
