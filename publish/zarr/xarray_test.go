package zarr

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"lacuna/publish"
	"lacuna/publish/netcdf/compliance"
)

// opened is a store as xarray has it.
type opened struct {
	Times     []string `json:"times"`
	Revisions []int    `json:"revisions"`
	Hashes    []string `json:"hashes"`
	Coords    []string `json:"coords"`
	Start     string   `json:"start"`
	End       string   `json:"end"`
}

// xarray opens the stores of folders, and fails where a slot has other numbers
// than the file of its product. A folder without a store gives nil.
func xarray(t *testing.T, products []publish.Product, folders ...string) []*opened {
	t.Helper()
	python := compliance.Python(t)
	if exec.Command(python, "-c", "import xarray, dask, zarr").Run() != nil {
		t.Skipf("%s has no xarray, dask and zarr: pip install -r ops/setup/requirements-test.txt into it to run this test", python)
	}
	wanted := map[string]string{}
	for _, p := range products {
		wanted[p.SHA256] = p.Path
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if err := os.WriteFile(filepath.Join(folder, "wanted.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", "open_stores.py")}, folders...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("open_zarr: %v\n%s", err, &stderr)
	}
	var all []*opened
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return all
}

func TestXarrayFindsInAStoreWhatIsInTheFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("what Python reads; leave -short out to run it")
	}
	t.Parallel()
	dir, wide := t.TempDir(), sea{300, 310} // two chunks each way
	s := InFolder(dir)
	var all []publish.Product
	for _, step := range []struct{ day, revision int }{{2, 1}, {3, 1}, {6, 1}, {3, 2}, {0, 1}, {4, 1}} {
		all = append(all, wide.product(t, step.day, step.revision))
	}
	publishAll(t, s, all...)
	gone := all[5]
	gone.Retracted, gone.Why = true, "sensor fault"
	if err := s.Retract(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	got := xarray(t, all, dir)[0]
	want := []string{"2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"}
	if !slices.Equal(got.Times, want) || !slices.Equal(got.Revisions, []int{1, 0, 1, 2, 0, 0, 1}) {
		t.Errorf("times %v with revisions %v, want %v", got.Times, got.Revisions, want)
	}
	if got.Start != "2024-02-27T00:00:00Z" || got.End != "2024-03-05T00:00:00Z" {
		t.Errorf("the store covers %s to %s", got.Start, got.End)
	}
	for _, name := range []string{"time", "lat", "lon", "mode", "model", "revision", "granule", "product_sha256", "observed_fraction"} {
		if !slices.Contains(got.Coords, name) {
			t.Errorf("%s is not a coordinate: %v", name, got.Coords)
		}
	}
}
