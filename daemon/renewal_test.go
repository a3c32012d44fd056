package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/infer"
)

// countingTrainer is a trainer that writes its process number to a file and counts
// until it is stopped.
const countingTrainer = `
echo '{"event":"start"}'
trap 'echo stopped > "$0.end"; exit 1' TERM
echo $$ > "$0.new"; mv "$0.new" "$0.pid"
n=0
while :; do n=$((n+1)); echo $n > "$0.n"; mv "$0.n" "$0.count"; sleep 0.01; done`

// spy is a decoding child that first notes whether the trainer is paused: it
// is stopped (T), or will be when it next has its turn, for the signal (number
// 19, bit 18 of the mask) is waiting for it.
const spy = `
if read -r pid < "$1.pid"; then
	while read -r key value rest; do
		case $key$value in State:T | ShdPnd:*[4567cdef]????) echo paused >> "$1.states";; esac
	done < "/proc/$pid/status"
	echo looked >> "$1.states"
fi
exec "$2" decode`

func count(path string) int {
	data, _ := os.ReadFile(path)
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}

// until waits for a condition.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if happened() {
			return
		}
	}
	t.Fatalf("%s did not happen", what)
}

// start runs a daemon until stop is called.
func start(t *testing.T, d *Daemon) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run() = %v, want nil after a stop", err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("Run did not stop")
		}
	}
}

func TestTrainingIsPausedWhileAGranuleIsFilled(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	trainer := filepath.Join(dir, "trainer")
	if err := os.WriteFile(trainer, []byte(countingTrainer), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Train.Store, b.cfg.Train.FirstDays, b.cfg.Train.Check = filepath.Join(dir, "store"), 1, 20*time.Millisecond
	b.cfg.Train.Nice = 0 // the tests of other packages are not
	// The second granule reopens the product of the first, and the comparison
	// decodes that product: the granule itself was decoded on arrival.
	b.cfg.Datasets[0].Reanalysis.Settle, b.cfg.Datasets[0].Reanalysis.LeastChange = 0, 1000
	d, err := New(b.cfg, Parts{
		Log: slog.New(slog.DiscardHandler), Program: []string{"/bin/sh", trainer}, Child: []string{"/bin/sh", "-c", spy, "spy", trainer, self},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := world(t, 24, 32)
	days := firstVersions(w, 2)
	// Two days start no training, but one that broke off goes on.
	folder := b.cfg.state().Training("sea")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "job.json"), []byte(`{"args": ["train"]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	put(t, b.archive(), w.Granule(days[0]))
	stop := start(t, d)
	until(t, "a training", func() bool { return count(trainer+".count") > 0 })

	put(t, b.archive(), w.Granule(days[1]))
	until(t, "a second product", func() bool { return b.made("sea") == 2 })
	until(t, "a pause of the trainer while the worker is at work", func() bool {
		states, err := os.ReadFile(trainer + ".states")
		return err == nil && strings.Contains(string(states), "paused")
	})
	before := count(trainer + ".count")
	until(t, "going on", func() bool { return count(trainer+".count") > before })

	stop()
	if _, err := os.Stat(trainer + ".end"); err != nil {
		t.Error("the training was not asked to stop")
	}
	if _, err := os.Stat(filepath.Join(b.cfg.state().Training("sea"), "job.json")); err != nil {
		t.Errorf("the training is not remembered: %v", err)
	}
}

func TestAModelNeedsAStore(t *testing.T) {
	text := strings.Replace(validConfig, "past_days: 5", "past_days: 5\n      method: model", 1)
	if _, err := parseConfig("f", []byte(text)); err == nil || !strings.Contains(err.Error(), "train.store is empty") {
		t.Errorf("method model without a store: error %v", err)
	}
	if _, err := parseConfig("f", []byte(text+"\ntrain: {store: models}\n")); err != nil {
		t.Errorf("method model with a store: %v", err)
	}
}

// modelOf returns the model that a product names.
func modelOf(t *testing.T, product string) string {
	t.Helper()
	for _, a := range read(t, product, "CHL").Source.Attrs {
		if a.Name == "lacuna_model" {
			return fmt.Sprint(a.Value)
		}
	}
	t.Fatalf("%s has no lacuna_model", product)
	return ""
}

// Day one has no model, day two has one, and day three has one of another grid:
// there is a product every day, and it names its method.
func TestADatasetIsFilledByItsChampionOrElseByInterpolation(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	b.cfg.Train.Store, b.cfg.Train.Engine = filepath.Join(t.TempDir(), "store"), "ort"
	b.cfg.Datasets[0].Name, b.cfg.Datasets[0].Fill.Method = "chl", "model"
	b.cfg.Datasets[0].Fill.Network.Tier = infer.Fast // the test is about who fills, not how well
	w := world(t, 24, 32)
	days := firstVersions(w, 3)
	store := modelstore.New(b.cfg.Train.Store, time.Now)
	var want []string
	for i, files := range []map[string][]byte{nil, filltest.UntrainedFiles(t, 1), filltest.UntrainedFiles(t, 2)} {
		switch i {
		case 0:
			want = append(want, "oi")
		case 1:
			delete(files, modelstore.ScalingFile) // fields are scaled by the days around them
			want = append(want, filltest.Promote(t, store, files))
		case 2:
			filltest.Promote(t, store, files) // a model of a grid of two cells by two
			want = append(want, "oi")
		}
		put(t, b.archive(), w.Granule(days[i]))
		if s := b.once(t); s.Products != 1 {
			t.Fatalf("day %d: Once() = %+v, want a product\n%s", i+1, s, b.log)
		}
	}
	for i, product := range b.products(t) {
		if got := modelOf(t, product); got != want[i] {
			t.Errorf("day %d was filled by %q, want %q", i+1, got, want[i])
		}
	}
	for _, line := range []string{"no model of its own yet", "the model cannot fill"} {
		if log := b.log.String(); !strings.Contains(log, line) {
			t.Errorf("the log does not say %q:\n%s", line, log)
		}
	}
}
