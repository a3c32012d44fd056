package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/feed"
	"lacuna/pipeline/simulate"
)

// Series of every rhythm are filled from the fields around: the product names
// those within so many steps as its inputs.
func TestFillGoesByTheStepOfTheSeries(t *testing.T) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 32, Days: 20, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var seen []simulate.Granule
	for _, d := range world.Schedule() {
		if g := world.Granule(d); d.Revision == 1 && g.Seen.ObservedMask().Count() > 0 && len(seen) < 9 {
			seen = append(seen, g)
		}
	}
	const target = 4
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name  string
		step  time.Duration
		flags []string
	}{
		{"hourly", time.Hour, []string{"--past", "3h", "--future", "2h"}},
		{"twice a day", 12 * time.Hour, []string{"--past", "36h", "--future", "24h"}},
		{"daily", day, []string{"--past-days", "3", "--future-days", "2"}},
		{"8-day", 8 * day, []string{"--past-days", "3", "--future-days", "2"}},
		{"monthly", 30 * day, []string{"--past-days", "3", "--future-days", "2"}},
	} {
		archive, out := t.TempDir(), t.TempDir()
		var names []string
		for i, g := range seen {
			g = g.At(time.Date(2024, 1, 3, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * tt.step))
			names = append(names, g.Name)
			if err := feed.Write(filepath.Join(archive, g.Name), g); err != nil {
				t.Fatal(err)
			}
		}
		args := append([]string{filepath.Join(archive, names[target]), "-o", out, "--history", archive, "--model", "oi"}, tt.flags...)
		stdout, stderr, err := clitest.Run(t, fillCommand(), args...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !strings.Contains(stderr, "default scales: fewer than 15 fields") {
			t.Errorf("%s: standard error is %q, want why nothing was tuned", tt.name, stderr)
		}
		product, err := os.ReadFile(strings.TrimSpace(stdout))
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			if want := i >= target-3 && i <= target+2; strings.Contains(string(product), name) != want {
				t.Errorf("%s: the product has field %d among its inputs: %v", tt.name, i, !want)
			}
		}
	}
}
