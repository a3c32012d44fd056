package fleet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/daemon/trainjob"
	"lacuna/daemon/workers"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/simulate"

	"github.com/twmb/franz-go/pkg/kfake"
)

// trainingConfig is that of a worker that trains. It is not nice: beside the tests of
// other packages a polite training gets hardly any of a processor.
func trainingConfig(folder, broker string) daemon.Config {
	cfg := daemon.DefaultConfig()
	cfg.StateDir, cfg.Train.Engine, cfg.Train.Nice = filepath.Join(folder, "state"), "ort", 0
	byWorkers(&cfg, "train", []string{broker})
	cfg.Workers.Train, cfg.Workers.Session, cfg.Workers.SharedDir = true, time.Second, filepath.Join(folder, "shared")
	return cfg
}

// packedDays writes days to learn from, in one file: reading granules starts a process
// for each, and would take longer than the training.
func packedDays(t *testing.T) string {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 24, Days: 75, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]field.Field, w.Days())
	for d := range fields {
		fields[d] = w.Day(d).Seen
	}
	series, err := samples.New(fields, w.Sea(), field.Transform{Log10: true, Floor: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := pack.Write(&packed, series); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sim.pack")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// networks returns the hashes of the networks of a version.
func networks(t *testing.T, store *modelstore.Store, id string) map[string]string {
	t.Helper()
	v, err := store.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, f := range v.Card.Files {
		if filepath.Ext(f.Name) == ".onnx" || f.Name == modelstore.CalibrationFile {
			sums[f.Name] = f.SHA256
		}
	}
	return sums
}

// A worker is killed in the middle of a training. The other goes on from its last
// checkpoint, and the version is that of a training that was left alone: the same
// networks, in the store of the coordinator, which decides on it.
func TestAKilledTrainingGoesOnElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for a minute")
	}
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	folder, broker := t.TempDir(), cluster.ListenAddrs()[0]
	local, remote := modelstore.New(filepath.Join(folder, "local"), time.Now), modelstore.New(filepath.Join(folder, "store"), time.Now)
	args := func(store *modelstore.Store) []string {
		return []string{
			"train", "--json-lines", "--store", store.Dir(), "--dataset", "sim", "--engine", "ort", "--policy", "auto", "--size", "tiny", "--side", "16",
			"--preset", "paper", "--steps", "40", "--batch", "4", "--prior-steps", "8", "--members-steps", "0", "--strategy", "empirical",
			"--reliability-steps", "3", // a step takes as long as twenty of the imputer
			"--data", filepath.Join(folder, "sim.pack"),
		}
	}
	if err := os.Rename(packedDays(t), filepath.Join(folder, "sim.pack")); err != nil {
		t.Fatal(err)
	}
	crew := &fleetRun{chainRun: chainRun{folder: folder, broker: broker, producer: &producer{scratch: t.TempDir()}}}
	for i := range 2 {
		crew.keep(t, &member{role: "train-worker", name: fmt.Sprint("gpu-", i)})
	}
	cfg := trainingConfig(folder, broker).Workers
	fleet, shared := startFleet(t, cfg)
	r := &trainjob.Remote{Fleet: fleet, Folder: shared, Dataset: "sim", Store: remote, Sent: filepath.Join(folder, "sent.json"), Log: slog.New(slog.DiscardHandler)}
	done := make(chan retrain.Event, 1)
	go func() {
		e, err := r.Train(t.Context(), args(remote), func(retrain.Event) {})
		if err != nil {
			t.Error(err)
		}
		done <- e
	}()
	killed := crew.killTrainer(t, shared)
	var e retrain.Event
	select {
	case e = <-done:
	case <-time.After(4 * time.Minute):
		t.Fatalf("no version; the workers said:\n%s", crew.said())
	}
	if said := crew.said(); e.Version == "" || !strings.Contains(said, "goes on from a checkpoint") {
		t.Fatalf("%+v after %s was killed; the workers said:\n%s", e, killed, said)
	}
	crew.stop()
	self, _ := os.Executable()
	if out, err := exec.Command(self, args(local)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	alone, _, err := local.List()
	if err != nil || len(alone) != 1 {
		t.Fatalf("%d versions, %v", len(alone), err)
	}
	want := networks(t, local, alone[0].ID)
	if got := networks(t, remote, e.Version); !maps.Equal(got, want) || len(want) < 2 {
		t.Errorf("the networks are %v, want %v", got, want)
	}
	decided, err := remote.Log()
	if err != nil || len(decided) != 1 || decided[0].Version != e.Version {
		t.Errorf("the coordinator has decided %+v, %v", decided, err)
	}
	mine, _ := remote.Calendar("sim")
	theirs, _ := local.Calendar("sim")
	if len(mine) == 0 || !bytes.Equal(mine, theirs) {
		t.Errorf("the days are assigned as\n%s\nwant\n%s", mine, theirs)
	}
}

// startFleet is the coordinator's side.
func startFleet(t *testing.T, cfg workers.Config) (*workers.Fleet, jobs.Folder) {
	t.Helper()
	shared, err := cfg.Folder()
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := workers.NewFleet(cfg, shared, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = fleet.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		ran.Wait()
		fleet.Close()
	})
	return fleet, shared
}

// killTrainer kills the worker that trains when it has shared a checkpoint, and returns
// its name. It is not started again before the other has had its session.
func (f *fleetRun) killTrainer(t *testing.T, shared jobs.Folder) string {
	t.Helper()
	for range 1200 {
		time.Sleep(100 * time.Millisecond)
		var kept, held string
		_ = shared.List("training", func(key string, _ time.Time) error {
			name := strings.TrimPrefix(key, "training/")
			if key, is := strings.CutSuffix(name, ".json"); is {
				kept = key
				held, _ = shared.Lease(key)
			}
			return nil
		})
		name, _, _ := strings.Cut(held, " ")
		at := slices.IndexFunc(f.members, func(m *member) bool { return m.name == name })
		if kept == "" || at < 0 {
			continue
		}
		f.ends.Store(true)
		f.members[at].signal(syscall.SIGKILL)
		return name
	}
	t.Fatalf("no worker has shared a checkpoint; they said:\n%s", f.said())
	return ""
}

// said returns what all members have said.
func (f *fleetRun) said() (all string) {
	for _, m := range f.members {
		text, _ := os.ReadFile(m.said)
		all += string(text)
	}
	return all
}
