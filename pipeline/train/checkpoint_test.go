package train

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckpointsAreApart(t *testing.T) {
	task := lineTask(2)
	now := time.Unix(0, 0)
	path := filepath.Join(t.TempDir(), "run")
	var kept []int
	hooks := Hooks{
		Checkpoint: path, CheckpointEvery: 2, CheckpointPause: 3 * time.Second, Now: func() time.Time { return now },
		Progress: func(p Progress) {
			now = now.Add(time.Second) // a step takes a second
			at, err := CheckpointStep(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(kept); at > 0 && (n == 0 || kept[n-1] != at) {
				kept = append(kept, at)
			}
		},
	}
	weightsOf(t, stepOf(t, task), task, hooks)
	if want := []int{2, 6, 10, 14, 18}; !slices.Equal(kept, want) {
		t.Errorf("checkpoints of steps %v, want %v", kept, want)
	}
	if at, err := CheckpointStep(path); at != task.Optimizer.Steps || err != nil {
		t.Errorf("at the end it is of step %d, %v", at, err)
	}
}

func TestACheckpointOfAnotherTaskIsRefused(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task)
	hooks := Hooks{Checkpoint: filepath.Join(t.TempDir(), "run")}
	weightsOf(t, step, task, hooks)
	kind := lineTask(2)
	kind.Kind = "curve"
	for _, other := range []Task{lineTask(3), kind} {
		if _, _, err := Run(t.Context(), step, other, hooks); err == nil || !strings.Contains(err.Error(), "other settings") {
			t.Errorf("a %s with %v goes on with it: %v", other.Kind, other.Settings, err)
		}
	}
	whole, err := os.ReadFile(hooks.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		if err := os.WriteFile(hooks.Checkpoint, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Run(t.Context(), step, task, hooks); err == nil || !strings.Contains(err.Error(), hooks.Checkpoint) {
			t.Errorf("the first %d of %d bytes: error %v, want one that names the file", n, len(whole), err)
		}
	}
}

// The mask prior wrote a line without a kind, its best weights and the state.
func TestACheckpointOfThePriorsOldFormatCountsAsNone(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task)
	want, _ := weightsOf(t, step, task, Hooks{})
	old := bytes.NewBufferString(`{"step":4,"worse":0,"distance":0.5,"weights":2}` + "\n")
	old.Write(make([]byte, 2*4))
	state := State{Step: 7, Weights: make([]float32, 2), EMA: make([]float32, 2), Mean: make([]float32, 2), Variance: make([]float32, 2)}
	if err := state.encode(old, &line); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "prior.ckpt")
	if err := os.WriteFile(path, old.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if at, err := CheckpointStep(path); at != 0 || err != nil {
		t.Errorf("it is of step %d, %v, want 0", at, err)
	}
	got, report := weightsOf(t, step, task, Hooks{Checkpoint: path})
	if report.Resumed != 0 || !slices.Equal(got, want) {
		t.Errorf("resumed at step %d, weights %v, want 0 and %v", report.Resumed, got, want)
	}
	if at, err := CheckpointStep(path); at != task.Optimizer.Steps || err != nil {
		t.Errorf("the new one is of step %d, %v", at, err)
	}
}
