package ops

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// exampleFleet are two workers, of which one is at work.
func exampleFleet(now time.Time) *Fleet {
	return &Fleet{
		Workers: []FleetWorker{
			{Name: "gpu-1", Started: now.Add(-time.Hour), Dataset: "blk-chl", Granule: "20240409.nc", Since: now.Add(-time.Minute), Share: 0.5, Done: 12, Seconds: 61.5},
			{Name: "gpu-2", Started: now.Add(-time.Hour), Failed: 1},
		},
		UnderWay: 7, Trainings: 2, WaitingLive: 1, WaitingBackfill: 6, Counted: now, Done: 12, Failed: 3, Dead: 1,
	}
}

func TestMetricsTellTheLagOfWorkers(t *testing.T) {
	text := scrape(t, busy, nil)
	for _, want := range []string{
		"lacuna_workers 2\n", "lacuna_workers_busy 1\n", `lacuna_jobs_waiting{lane="live"} 1`, `lacuna_jobs_waiting{lane="backfill"} 6`, `lacuna_jobs_waiting{lane="train"} 2`,
		"lacuna_jobs_under_way 7\n", `lacuna_jobs_total{outcome="done"} 12`, `lacuna_jobs_total{outcome="failed"} 2`, `lacuna_jobs_total{outcome="dead"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	alone := func(ctx context.Context) (Status, error) {
		s, err := busy(ctx)
		s.Fleet = nil
		return s, err
	}
	if text := scrape(t, alone, nil); strings.Contains(text, "lacuna_workers") {
		t.Error("a daemon that fills by itself has figures of workers")
	}
}

func TestThePageShowsWorkersAndTheirJobs(t *testing.T) {
	s, err := New(DefaultConfig(), Sources{Status: busy}, slog.New(slog.DiscardHandler))
	must(t, err)
	r := get(t, s.handler, "/")
	for _, want := range []string{"gpu-1", "blk-chl: 20240409.nc", "50.0 %", "7 jobs are under way", "1 of them given up"} {
		if r.Code != http.StatusOK || !strings.Contains(r.Body.String(), want) {
			t.Errorf("%d: no %q on the page", r.Code, want)
		}
	}
}

func TestJobsWithoutWorkersAreAnAlarm(t *testing.T) {
	names := func(f *Fleet) (all []string) {
		for _, a := range Alarms(Status{Fleet: f}, Limits{}) {
			all = append(all, a.Name)
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		fleet *Fleet
		want  string
	}{
		{"no fleet", nil, ""},
		{"nothing to do", &Fleet{}, ""},
		{"jobs and no worker", &Fleet{UnderWay: 3}, "workers"},
		{"jobs and a worker", &Fleet{UnderWay: 3, Workers: []FleetWorker{{}}}, ""},
		{"a job was given up", &Fleet{Dead: 1, Failed: 1}, "dead"},
		{"a training, and nobody who trains", &Fleet{UnderWay: 1, Trainings: 1, Workers: []FleetWorker{{Name: "cpu"}}}, "trainers"},
		{"a training, and somebody who trains", &Fleet{UnderWay: 1, Trainings: 1, Workers: []FleetWorker{{Name: "gpu-train", Trains: true}}}, ""},
	} {
		if got := strings.Join(names(tt.fleet), " "); got != tt.want {
			t.Errorf("%s: alarms %q, want %q", tt.name, got, tt.want)
		}
	}
}
