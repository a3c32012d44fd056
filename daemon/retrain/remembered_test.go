package retrain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/state"
)

func TestFailedTrainingIsKnownFromItsFiles(t *testing.T) {
	folder := t.TempDir()
	if got := Failure(folder); got != "" {
		t.Errorf("Failure() = %q before any", got)
	}
	for file, v := range map[string]any{
		lastFile: LastTraining{State: StateFailed, Reasons: []string{"no memory"}},
		jobFile:  unfinishedJob{Failures: 2},
	} {
		if err := state.Save(filepath.Join(folder, file), v); err != nil {
			t.Fatal(err)
		}
	}
	if got := Failure(folder); !strings.Contains(got, "2 times") {
		t.Errorf("Failure() = %q while it is tried again", got)
	}
	if err := os.Remove(filepath.Join(folder, jobFile)); err != nil {
		t.Fatal(err)
	}
	if got := Failure(folder); got != "no memory" {
		t.Errorf("Failure() = %q after it was given up", got)
	}
}
