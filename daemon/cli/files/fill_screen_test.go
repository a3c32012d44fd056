package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/feed"
	"lacuna/pipeline/simulate"
)

func TestFillTellsWhatTestsRefuse(t *testing.T) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 32, Days: 12, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	archive, target := t.TempDir(), ""
	for _, d := range world.Schedule() {
		g := world.Granule(d)
		if d.Revision > 1 || g.Seen.ObservedMask().Count() == 0 {
			continue
		}
		target = filepath.Join(archive, g.Name)
		if err := feed.Write(target, g); err != nil {
			t.Fatal(err)
		}
	}
	for _, future := range []string{"10", "0"} { // delayed, and in near real time
		stdout, stderr, err := clitest.Run(t, fillCommand(), target, "-o", t.TempDir(), "--history", archive, "--model", "climatology",
			"--tests", "edge=0,spike", "--future-days", future)
		if err != nil {
			t.Fatal(err)
		}
		product, err := os.ReadFile(strings.TrimSpace(stdout))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stderr, " by edge, ") || strings.Contains(stderr, " 0 by edge") || !strings.Contains(string(product), "edge=0,edge.cells=1,spike=5") {
			t.Errorf("with %s days ahead standard error is %q", future, stderr)
		}
	}
	if _, _, err := clitest.Run(t, fillCommand(), target, "-o", t.TempDir(), "--tests", "spikes"); err == nil || !strings.Contains(err.Error(), "there is no test of that name") {
		t.Errorf("a test that does not exist: %v", err)
	}
}
