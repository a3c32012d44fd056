package netcdf

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/publish/netcdf/compliance"
)

func TestProductsOfEveryLayoutPassAnIndependentChecker(t *testing.T) {
	if testing.Short() {
		t.Skip("what Python reads; leave -short out to run it")
	}
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for i, name := range slices.Sorted(maps.Keys(fixtures)) {
		path := filepath.Join(dir, fmt.Sprintf("%d_%s.nc", i, strings.ReplaceAll(name, " ", "_")))
		if err := WriteProduct(path, fixtures[name]()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths = append(paths, path)
	}
	compliance.Check(t, paths...)
}

// The check must be able to fail: it must find faults in the input of a
// product, written as it is.
func TestCheckerFindsFaultsOfTheInput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "input.nc")
	if err := Write(path, alboran().Source); err != nil {
		t.Fatal(err)
	}
	faults := 0
	for _, f := range compliance.Findings(t, path) {
		if compliance.Accepted(f) == "" {
			faults++
		}
	}
	if faults < 10 {
		t.Errorf("the checker finds %d faults in a file without metadata, want many", faults)
	}
}
