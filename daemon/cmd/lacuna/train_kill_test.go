package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/simulate"
)

// trainee is the real program with a small job.
type trainee struct {
	program, archive string
	since            time.Time // the last twenty days begin
	extra            []string
}

// newTrainee finds the program, which is this one under its name as in the
// scripts, and writes its days, packed: reading granules starts a process for
// each, and would take longer than the training.
func newTrainee(t *testing.T) trainee {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the program several times")
	}
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	program, err := exec.LookPath("lacuna")
	if err != nil {
		t.Fatal(err)
	}
	tr := trainee{program: program, archive: filepath.Join(t.TempDir(), "sim.pack")}
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 24, Days: 75, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]field.Field, world.Days())
	for d := range fields {
		fields[d] = world.Day(d).Seen
	}
	series, err := samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	tr.since = series.Days[len(series.Days)-20].Time
	var packed bytes.Buffer
	if err := pack.Write(&packed, series); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tr.archive, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return tr
}

// command returns a run of the job on a store.
func (tr trainee) command(ctx context.Context, store string, more ...string) *exec.Cmd {
	args := append([]string{
		"train", "--data", tr.archive, "--store", store, "--dataset", "sim", "--engine", "ort", "--size", "tiny", "--side", "16",
		"--preset", "paper", "--steps", "16", "--batch", "4", "--prior-steps", "8", "--members-steps", "0", "--reliability-steps", "2", "--strategy", "empirical", "--json-lines",
	}, more...)
	return exec.CommandContext(ctx, tr.program, append(args, tr.extra...)...)
}

// weights returns the hashes of the networks of the only version in a store,
// and everything that is wrong with the store.
func weights(t *testing.T, dir string) map[string]string {
	t.Helper()
	s := modelstore.New(dir, time.Now)
	versions, bad, err := s.List()
	if err != nil || len(bad) > 0 {
		t.Fatalf("the store is damaged: %v, %v", err, bad)
	}
	if _, err := s.Log(); err != nil {
		t.Fatalf("the log is damaged: %v", err)
	}
	if len(versions) == 0 {
		return nil
	}
	if len(versions) > 1 {
		t.Fatalf("%d versions, want one", len(versions))
	}
	v, err := s.Load(versions[0].ID)
	if err != nil {
		t.Fatalf("the version is damaged: %v", err)
	}
	sums := map[string]string{}
	for _, f := range v.Card.Files {
		if filepath.Ext(f.Name) == ".onnx" || f.Name == modelstore.CalibrationFile || f.Name == modelstore.QueryFile {
			sums[f.Name] = f.SHA256
		}
	}
	return sums
}

// Killed at random moments and started again each time, the program ends with
// the version of a run that was left alone.
func TestKilledTrainingEndsWithTheSameVersion(t *testing.T) {
	tr := newTrainee(t)
	long := os.Getenv("LACUNA_LONG") != ""
	if long {
		tr.extra = []string{"--members-steps", "4"}
	}
	whole := filepath.Join(t.TempDir(), "whole")
	began := time.Now()
	if out, err := tr.command(t.Context(), whole).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	length := time.Since(began)
	want := weights(t, whole)
	if len(want) < 3 {
		t.Fatalf("the version has %v", want)
	}
	kills := 5
	if long {
		kills = 50
	}
	r := rand.New(rand.NewPCG(1, uint64(kills)))
	killed, stores := 0, 0
	for killed < kills {
		store := filepath.Join(t.TempDir(), "store")
		stores++
		for done := false; !done; {
			after := time.Duration(r.Float64() * float64(length) * 0.5) // a run from a checkpoint is shorter
			if killed >= kills {
				after = time.Hour // the last store is to be finished
			}
			done = tr.runFor(t, store, after)
			got := weights(t, store) // the store is sound at every moment
			if !done {
				killed++
			} else if !maps.Equal(got, want) {
				t.Fatalf("after %d kills the version is %v, want %v", killed, got, want)
			}
		}
	}
	t.Logf("%d kills, %d versions, %v each when left alone", killed, stores, length)
}

// runFor runs the job, kills it after a time, and reports whether it was done
// before.
func (tr trainee) runFor(t *testing.T, store string, after time.Duration) bool {
	t.Helper()
	var out bytes.Buffer
	c := tr.command(t.Context(), store)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if pending := timer.Stop(); pending && err != nil {
		t.Fatalf("it failed by itself: %v\n%s", err, &out)
	}
	return err == nil
}

// On SIGTERM there is a checkpoint within ten seconds, the program says how to
// go on, and it does go on from there.
func TestStoppedTrainingSaysHowToGoOn(t *testing.T) {
	tr := newTrainee(t)
	store := filepath.Join(t.TempDir(), "store")
	c := tr.command(t.Context(), store, "--steps", "100000", "--log", filepath.Join(t.TempDir(), "log.csv"))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var stopped time.Time
	retrain.ReadEvents(out, func(e retrain.Event) {
		if e.Phase == "imputer" && e.Step > 3 && stopped.IsZero() {
			stopped = time.Now()
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	})
	err = c.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Fatalf("it ended with %v, want exit status %d", err, exitFailed)
	}
	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if !strings.Contains(stderr.String(), "the same command goes on from the checkpoints in") {
		t.Errorf("it does not say how to go on:\n%s", &stderr)
	}
	found, err := filepath.Glob(filepath.Join(store, "training", "sim-*", "imputer.ckpt"))
	if err != nil || len(found) != 1 {
		t.Errorf("checkpoints %v, %v", found, err)
	}
}
