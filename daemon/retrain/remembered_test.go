package retrain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/state"
)

func TestFailedTrainingIsKnownFromItsFiles(t *testing.T) {
	folder := t.TempDir()
	failure := func() string {
		r, err := Desk(folder).Report(DefaultConfig(), "sea", time.Now(), false)
		if err != nil {
			t.Fatal(err)
		}
		return r.Failure
	}
	if got := failure(); got != "" {
		t.Errorf("the failure is %q before any", got)
	}
	for file, v := range map[string]any{
		lastFile: LastTraining{State: StateFailed, Reasons: []string{"no memory"}},
		jobFile:  unfinishedJob{Failures: 2},
	} {
		if err := state.Save(filepath.Join(folder, file), v); err != nil {
			t.Fatal(err)
		}
	}
	if got := failure(); !strings.Contains(got, "2 times") {
		t.Errorf("the failure is %q while it is tried again", got)
	}
	if err := os.Remove(filepath.Join(folder, jobFile)); err != nil {
		t.Fatal(err)
	}
	if got := failure(); got != "no memory" {
		t.Errorf("the failure is %q after it was given up", got)
	}
}
