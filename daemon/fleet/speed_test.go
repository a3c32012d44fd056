package fleet

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/work"
	"lacuna/pipeline/simulate"
	"lacuna/publish/kafka/brokertest"
)

// Two workers on two cores, with a coordinator and a broker beside them, fill about as
// fast as the daemon does by itself: optimal interpolation of two seas, granule for
// granule.
func TestTwoWorkersKeepUpWithTheDaemon(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("measures for minutes: set LACUNA_LONG=1")
	}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 158, Width: 220, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	days := firstVersions(w, 24)
	broker := brokertest.Start(t, brokertest.Options{}).Addrs()[0]
	run := func(kind string) (products int, took time.Duration) {
		folder := t.TempDir()
		producer := &producer{folder: filepath.Join(folder, "archive"), world: w, scratch: t.TempDir(), current: map[string]string{}}
		if err := os.MkdirAll(producer.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, d := range days {
			put(t, producer.folder, w.Granule(d))
		}
		f := &fleetRun{chainRun: chainRun{folder: folder, broker: broker, producer: producer}}
		if kind == "fast-kafka" {
			for _, name := range []string{"one", "two"} {
				f.keep(t, &member{role: "fast-worker", name: name})
			}
			time.Sleep(5 * time.Second) // until they have partitions
		}
		cmd := f.command(&member{role: kind, name: "daemon"})
		began := time.Now()
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, said)
		}
		took = time.Since(began)
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		files, _ := filepath.Glob(filepath.Join(folder, "products", "*", "2024", "*", "*_l4.nc"))
		f.stop()
		var theirs time.Duration
		for _, m := range f.members {
			theirs += m.used
		}
		t.Logf("%s: %d products in %v, processor time of the daemon %v, of the workers %v",
			kind, len(files), took.Round(10*time.Millisecond), used.Round(10*time.Millisecond), theirs.Round(10*time.Millisecond))
		return len(files), took
	}
	n, alone := run("fast-local")
	m, spread := run("fast-kafka")
	if n != m || n < 2*len(days) {
		t.Fatalf("%d and %d products", n, m)
	}
	if ratio := alone.Seconds() / spread.Seconds(); ratio < 0.95 {
		t.Errorf("%.2f of the throughput of the daemon by itself, want 0.95", ratio)
	} else {
		t.Logf("%.2f of the throughput of the daemon by itself", ratio)
	}
}

// fastConfig are two seas from one folder, filled by optimal interpolation.
func fastConfig(cfg daemon.Config) daemon.Config {
	for i := range cfg.Datasets {
		set := &cfg.Datasets[i]
		set.Archive.Type, set.Archive.Dir = "dir", filepath.Join(filepath.Dir(cfg.StateDir), "archive")
		set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "oi", 5, 2
		set.DailySkill, set.EmptyDays = false, work.SkipEmptyDays
	}
	cfg.Publish.Kafka = nil
	return cfg
}
