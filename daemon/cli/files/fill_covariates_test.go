package files

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/feed"
	"lacuna/pipeline/simulate"
)

// A covariate that cannot be used is said to be so, and the granule is filled.
func TestFillGoesOnWithoutACovariateThatCannotBeUsed(t *testing.T) {
	cfg := simulate.Config{Product: "blk-chl", Height: 12, Width: 16, Days: 20, Seed: 3}
	archive, _ := clitest.Simulate(t, cfg)
	world, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	later := t.TempDir()
	for n := 40; n < 42; n++ {
		g, err := world.Companion(n, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := feed.Write(filepath.Join(later, g.Name), g); err != nil {
			t.Fatal(err)
		}
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 17 {
		t.Fatalf("%d days, %v", len(days), err)
	}
	slices.Sort(days)
	stdout, stderr, err := clitest.Run(t, fillCommand(), days[len(days)-1], "-o", t.TempDir(), "--history", archive, "--model", "oi", "--future-days", "0",
		"--covariate", "sst="+later+":analysed_sst", "--covariate", "depth="+filepath.Join(later, "none.nc")+",bathymetry")
	if err != nil || !strings.Contains(stdout, "_l4.nc") {
		t.Fatalf("%q, %v", stdout, err)
	}
	for _, want := range []string{
		"covariate sst: its first map is of 2024-05-11, later than", "must not know of the future: it is refused",
		"covariate depth: stat ", "covariates are not used: there are too few days to learn from and to choose by, and 40 are needed",
	} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("standard error has %q %d times:\n%s", want, strings.Count(stderr, want), stderr)
		}
	}
}
