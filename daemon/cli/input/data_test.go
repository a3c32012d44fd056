package input

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/simulate"
)

func simulated(t *testing.T, height int) string {
	t.Helper()
	archive, _ := clitest.Simulate(t, simulate.Config{Product: "blk-chl", Days: 4, Height: height, Width: 24, Seed: 2})
	return archive
}

func TestAFileThatWasNamedMustBeReadableAndOneOfAFolderNot(t *testing.T) {
	archive := simulated(t, 16)
	bad := filepath.Join(archive, "bad.nc")
	if err := os.WriteFile(bad, []byte("not a granule"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	found := Data{Files: []string{archive}, Mask: "auto"}
	set, err := found.Load(t.Context(), &stderr)
	if err != nil {
		t.Fatal(err)
	}
	if set.Variable != "CHL" || len(set.Series.Days) < 3 || len(set.Granules) < 3 || set.Sample.Fields != nil {
		t.Errorf("%d days and %d granules of %q", len(set.Series.Days), len(set.Granules), set.Variable)
	}
	if !strings.Contains(stderr.String(), "left out") || !strings.Contains(stderr.String(), "bad.nc") {
		t.Errorf("nothing was said of the bad file: %q", &stderr)
	}
	named := Data{Files: []string{archive, bad}, Mask: "auto"}
	if _, err := named.Load(t.Context(), &stderr); !errors.As(err, new(*ingest.BadGranule)) {
		t.Errorf("a bad file that was named: %v", err)
	}
}

func TestFilesOfTwoGridsAreTwoDatasets(t *testing.T) {
	data := Data{Files: []string{simulated(t, 16), simulated(t, 20)}, Mask: "auto"}
	all, err := data.LoadAll(t.Context(), &bytes.Buffer{})
	if err != nil || len(all) != 2 || all[0].Series.Grid.Height() != 16 || all[1].Series.Grid.Height() != 20 {
		t.Fatalf("%d datasets, %v", len(all), err)
	}
	if _, err := data.Load(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "use files of one grid") {
		t.Errorf("as one dataset: %v", err)
	}
}

func TestAPackedSeriesIsItsOwnGranule(t *testing.T) {
	data := Data{Files: []string{simulated(t, 16)}, Mask: "auto"}
	set, err := data.Load(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := pack.Write(&packed, set.Series); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sea.pack")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := (&Data{Files: []string{path}, Options: ingest.Options{Variable: "CHL"}}).Load(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Name != "sea" || again.Variable != "CHL" || len(again.Granules) != 1 || len(again.Granules["sea.pack"]) != 64 ||
		len(again.Series.Days) != len(set.Series.Days) {
		t.Errorf("%q of %q, granules %v, %d days", again.Variable, again.Name, again.Granules, len(again.Series.Days))
	}
}

func TestWrongDataFlagsAreErrorsOfUsage(t *testing.T) {
	for name, d := range map[string]Data{
		"no files":                {},
		"half a range":            {Files: []string{"a.nc"}, validRange: []float64{1}},
		"a transform of no sense": {Files: []string{"a.nc"}, Options: ingest.Options{Transform: "cube"}},
	} {
		if err := d.Validate(); !errors.As(err, new(cli.UsageError)) {
			t.Errorf("%s: %v, want an error of usage", name, err)
		}
	}
}
