package state

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSweepRemovesWhatAKilledProcessLeft(t *testing.T) {
	dir := t.TempDir()
	kept := []string{".hidden", ".ledger.db.note", "alarms.json", "calibration/chl.json", "ledger.db", "ledger.db.journal.cursor"}
	left := []string{".ledger.db.journal.cursor7326276458767431457", ".alarms.json8546991509766549461", "calibration/.sst.json9210161706373596873"}
	// An operator's command may be writing this one now.
	kept = append(kept, ".backfill-of-chl.json8546991509766549461")
	for _, name := range slices.Concat(kept, left) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Dir(dir).Sweep(); err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s was removed", name)
		}
	}
	for _, name := range left {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}
