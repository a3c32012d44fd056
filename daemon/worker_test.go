package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Workers that start at the same time take none of the others' folders for one that
// was left behind.
func TestWorkersThatStartTogetherKeepTheirFolders(t *testing.T) {
	top := t.TempDir()
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for range 100 {
				dir, end, err := workerCache(top)
				if err != nil {
					return err
				}
				if err := errors.Join(os.WriteFile(filepath.Join(dir, "granule.nc"), nil, 0o600), end()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAWorkerRemovesWhatKilledOnesHaveLeftAndNothingElse(t *testing.T) {
	top := t.TempDir()
	living, end, err := workerCache(top)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(top, "lacuna-worker-1")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "granule.nc"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	next, endNext, err := workerCache(top)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a killed worker left is there: %v", err)
	}
	for _, dir := range []string{living, next} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the folder of a worker that lives is gone: %v", err)
		}
	}
	if err := errors.Join(end(), endNext()); err != nil {
		t.Error(err)
	}
	if all, _ := filepath.Glob(filepath.Join(top, "*")); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}
