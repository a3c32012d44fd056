package ops

import (
	"strings"
	"testing"
	"time"
)

// Where all sources are silent the dataset lags, and no other goes on.
func TestADatasetThatLagsIsOneAlarm(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	old := Source{NewestField: now.Add(-9 * day), SilentSeconds: (4 * day).Seconds()}
	s := Status{Now: now, Started: now, Datasets: []Dataset{{Name: "chl", NewestField: old.NewestField, Sources: []Source{old, old}}}}
	if got := Alarms(s, DefaultHookConfig().Limits); len(got) != 1 || got[0].Name != "lag" {
		t.Errorf("alarms are %+v, want the lag of the dataset", got)
	}
}

func TestASilentSourceIsAnAlarmWhileTheOthersGoOn(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	limit := (4 * day).Seconds()
	for _, tt := range []struct {
		name   string
		source Source
		up     time.Duration
		want   string // part of the summary; empty: no alarm
	}{
		{"it delivers", Source{Name: "viirs", NewestField: now.Add(-day), SilentSeconds: limit}, 30 * day, ""},
		{"nothing for five days", Source{Name: "viirs", NewestField: now.Add(-5 * day), SilentSeconds: limit}, 30 * day, "its newest field is 5 days old"},
		{"nothing ever, just started", Source{Name: "viirs", SilentSeconds: limit}, time.Hour, ""},
		{"nothing ever", Source{Name: "viirs", SilentSeconds: limit}, 30 * day, "brought nothing since the start, 30 days ago"},
		{"no limit", Source{Name: "viirs", NewestField: now.Add(-50 * day)}, 30 * day, ""},
		{"it cannot be reached", Source{Name: "viirs", NewestField: now.Add(-day), SilentSeconds: limit, Problem: "no such host"}, 30 * day, "no such host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Status{Now: now, Started: now.Add(-tt.up), Datasets: []Dataset{{
				Name: "chl", NewestField: now.Add(-day), Sources: []Source{{Name: "modis", NewestField: now.Add(-day), SilentSeconds: limit}, tt.source},
			}}}
			got := Alarms(s, DefaultHookConfig().Limits)
			if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0].Summary, tt.want) || got[0].Subject != "chl.viirs" || got[0].Remedy == "") {
				t.Errorf("alarms are %+v, want one of chl.viirs with %q", got, tt.want)
			}
		})
	}
}
