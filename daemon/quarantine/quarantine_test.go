package quarantine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/state"
	"lacuna/ledger"
)

type retried struct{ path string }

func (r *retried) Retry(_ context.Context, _ int64, spoolPath, _ string, _ time.Time) error {
	r.path = spoolPath
	return nil
}

// Two datasets have the same file in the spool; to one of them it is no granule.
func TestWhatOneDatasetSetsAsideStaysInTheSpoolForAnother(t *testing.T) {
	dir := state.Dir(t.TempDir())
	sum := "33" + "03a0356dd4881150948d1edca773e3aa2670856e51b7c37d30e1ed9c71e0e5"
	place := filepath.Join(dir.Spool(), sum[:2], sum, "a.nc")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, []byte("granule"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := ledger.Granule{ID: 1, Revision: 1, Arrival: ledger.Arrival{Object: ledger.Object{Dataset: "sst", Name: "a.nc"}, SHA256: sum, SpoolPath: place}}
	f := Folder{State: dir}
	aside, err := f.Put(g, "it has no temperature")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(place); err != nil || string(text) != "granule" {
		t.Errorf("the other dataset has %q, %v", text, err)
	}
	if got := f.File(g); got != aside {
		t.Errorf("File() = %s, want %s", got, aside)
	}
	var books retried
	if err := f.TakeUp(t.Context(), &books, g, "asked", time.Now()); err != nil || books.path != place {
		t.Errorf("TakeUp() = %v, of %q", err, books.path)
	}
	for _, file := range []string{aside, aside + WhySuffix} {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s is left aside: %v", file, err)
		}
	}
}
