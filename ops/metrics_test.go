package ops

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/internal/golden"
)

// scrape returns the metrics of a service with a status.
func scrape(t *testing.T, status func(context.Context) (Status, error), tell func(*Metrics)) string {
	t.Helper()
	s, err := New(DefaultConfig(), Sources{Status: status}, slog.New(slog.DiscardHandler))
	must(t, err)
	if tell != nil {
		tell(s.Metrics())
	}
	r := get(t, s.handler, "/metrics")
	if r.Code != http.StatusOK {
		t.Fatalf("GET /metrics = %d: %s", r.Code, r.Body)
	}
	return r.Body.String()
}

// busy is a status with everything that metrics are made from.
func busy(context.Context) (Status, error) {
	s := example()
	d := &s.Datasets[0]
	d.Queue, d.NewestField, d.LastPoll, d.Breaker = 2, s.Now.Add(-36*time.Hour), s.Now.Add(-time.Minute), "open"
	s.Sinks = []Sink{{Name: "kafka:lacuna", Waiting: 3, Bytes: 3000, Oldest: s.Now.Add(-time.Hour), Aside: 1}, {Name: "disk"}}
	s.Disks = []Disk{{Folder: "products", FreeBytes: 5 << 30}}
	s.Ledger, s.Hung = Ledger{Bytes: 4096, Rebuilt: time.Unix(1e9, 0)}, "sink disk"
	d.CloudedOut, d.NoGranule = 4, 1
	d.Skill = &Skill{MSE: 0.125, Within90: 0.875}
	d.NewVersion, d.Due = "version 202411 is out", s.Now.Add(-2*time.Hour)
	d.Unfinished, d.TrainFailed, d.Drift = "disk full", "no memory", "40 % worse"
	s.Fleet = exampleFleet(s.Now)
	d.Train = &Training{State: "paused", Since: s.Now.Add(-time.Hour), Refusals: 2, NoGPU: "the last training ran on the processor"}
	fitted := 0.08
	d.Sources = []Source{{Name: "olci", NewestField: s.Now.Add(-36 * time.Hour)}, {Name: "viirs", NewestField: s.Now.Add(-240 * time.Hour), SilentSeconds: 3600, Bias: 0.125, Error: &fitted}}
	return s, nil
}

func work(m *Metrics) {
	m.Took("blk-chl", Decode, 100*time.Millisecond)
	m.Took("blk-chl", Analyse, 2*time.Second)
	m.Took("blk-chl", Store, 50*time.Millisecond)
	m.Covered("blk-chl", 0.25, 1)
	m.Refused("blk-chl", "spike", 7)
}

// Dashboards and alerts are built on these names.
func TestMetricNamesAreAPromise(t *testing.T) {
	var promised []string
	for line := range strings.Lines(scrape(t, busy, work)) {
		if strings.HasPrefix(line, "# HELP lacuna_") || strings.HasPrefix(line, "# TYPE lacuna_") {
			promised = append(promised, line)
		}
	}
	golden.Compare(t, "metrics.txt", []byte(strings.Join(promised, "")))
}

func TestMetricsHaveTheFiguresOfTheStatus(t *testing.T) {
	text := scrape(t, busy, work)
	for _, want := range []string{
		`lacuna_status_available 1`,
		`lacuna_ready 1`,
		`lacuna_granules{dataset="blk-chl",state="stored"} 40`,
		`lacuna_queue_granules{dataset="blk-chl"} 2`,
		`lacuna_lag_seconds{dataset="blk-chl"} 129600`,
		`lacuna_archive_breaker{dataset="blk-chl",phase="open"} 1`,
		`lacuna_archive_breaker{dataset="blk-chl",phase="closed"} 0`,
		`lacuna_dataset_problem{dataset="blk-chl"} 1`,
		`lacuna_dataset_problem{dataset="med-sst"} 0`,
		`lacuna_unseen_products{dataset="blk-chl",input="clouded-out"} 4`,
		`lacuna_unseen_products{dataset="blk-chl",input="no-granule"} 1`,
		`lacuna_publish_backlog{sink="kafka:lacuna"} 3`,
		`lacuna_publish_oldest_seconds{sink="kafka:lacuna"} 3600`,
		`lacuna_publish_oldest_seconds{sink="disk"} 0`,
		`lacuna_disk_free_bytes{folder="products"} 5.36870912e+09`,
		`lacuna_coverage_ratio{dataset="blk-chl",when="before"} 0.25`, `lacuna_refused_pixels{dataset="blk-chl",test="spike"} 7`,
		`lacuna_stage_duration_seconds_sum{dataset="blk-chl",stage="analyse"} 2`,
		`lacuna_new_version{dataset="blk-chl"} 1`, `lacuna_new_version{dataset="med-sst"} 0`,
		`lacuna_late_seconds{dataset="blk-chl"} 7200`, `lacuna_late_seconds{dataset="med-sst"} 0`,
		`lacuna_fill_unfinished{dataset="blk-chl"} 1`, `lacuna_fill_unfinished{dataset="med-sst"} 0`,
		`lacuna_train_failed{dataset="blk-chl"} 1`, `lacuna_skill_drift{dataset="blk-chl"} 1`,
		`lacuna_skill_mse{dataset="blk-chl"} 0.125`, `lacuna_skill_within90_ratio{dataset="blk-chl"} 0.875`,
		`lacuna_source_lag_seconds{dataset="blk-chl",source="viirs"} 864000`, `lacuna_source_silent{dataset="blk-chl",source="viirs"} 1`,
		`lacuna_source_silent{dataset="blk-chl",source="olci"} 0`, `lacuna_source_bias{dataset="blk-chl",source="viirs"} 0.125`, `lacuna_source_error{dataset="blk-chl",source="viirs"} 0.08`,
		`lacuna_ledger_bytes 4096`, `lacuna_ledger_rebuilt_timestamp_seconds 1e+09`, `lacuna_stage_hung 1`, `lacuna_fill_gpu_away 0`,
	} {
		if !slices.Contains(strings.Split(text, "\n"), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(text, `lacuna_lag_seconds{dataset="med-sst"}`) {
		t.Error("a dataset without a field has a lag")
	}
	for _, name := range []string{"20240519", "alert(1)"} {
		if strings.Contains(text, name) {
			t.Errorf("the name of a granule (%s) reached a label", name)
		}
	}
}

func TestMetricsSurviveALostStatus(t *testing.T) {
	broken := func(context.Context) (Status, error) { return Status{}, errors.New("disk I/O error") }
	text := scrape(t, broken, work)
	if !strings.Contains(text, "lacuna_status_available 0\n") || strings.Contains(text, "lacuna_ready") {
		t.Error("a service without status does not say so in its metrics")
	}
	if !strings.Contains(text, "lacuna_stage_duration_seconds_count") {
		t.Error("the counters are gone with the status")
	}
}

func TestNilMetricsDiscardRecords(*testing.T) {
	work(nil)
}
