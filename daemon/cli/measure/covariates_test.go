package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/feed"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
)

// Evaluate says of a covariate what it brings on held-out days, and gives it to the rows
// that build on optimal interpolation.
func TestEvaluateSaysWhatACovariateBrings(t *testing.T) {
	cfg := simulate.Config{Product: "blk-chl", Height: 24, Width: 36, Days: 150, Seed: 5}
	archive, _ := clitest.Simulate(t, cfg)
	world, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	beside := t.TempDir()
	for n := range cfg.Days {
		g, err := world.Companion(n, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if err := feed.Write(filepath.Join(beside, g.Name), g); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--data", archive, "--var", "CHL", "--methods", "oi,persistence", "--overlays", "20", "--gap-days", "6", "--block-days", "4", "-o"}
	plain, err := runEvaluate(t, append(args, filepath.Join(t.TempDir(), "plain"))...)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "with")
	with, err := runEvaluate(t, append(args, out, "--covariate", "sst="+beside+":analysed_sst")...)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain, "Covariates") || !strings.Contains(with, "- sst is used; it saves +") || !strings.Contains(with, "- all that are used save +") {
		t.Errorf("without it says:\n%s\nwith it:\n%s", plain, with)
	}
	row := func(text, name string) string {
		_, rest, _ := strings.Cut(text, "\n| "+name+" | ")
		mse, _, _ := strings.Cut(rest, " |")
		return mse
	}
	if a, b := row(plain, "oi"), row(with, "oi"); a == "" || b >= a { // of one form: 0.1234
		t.Errorf("the MSE of oi is %s without and %s with the covariate", a, b)
	}
	if a, b := row(plain, "persistence"), row(with, "persistence"); a != b {
		t.Errorf("the MSE of persistence was %s and is %s", a, b)
	}
	if kept, err := os.ReadFile(filepath.Join(out, "covariates.json")); err != nil || !strings.Contains(string(kept), `"on_judge": true`) {
		t.Errorf("covariates.json is %s, %v", kept, err)
	}
}

// No day that judges learns or chooses.
func TestDaysThatJudgeHaveNoPartInTheChoice(t *testing.T) {
	var s samples.Series
	var times []time.Time
	for d := range 200 {
		times = append(times, time.Date(2024, 1, 1+d, 12, 0, 0, 0, time.UTC))
		s.Days = append(s.Days, samples.Day{Time: times[d]})
	}
	split := samples.DefaultSplit()
	days := covariateDays(s, times, split)
	calendar := samples.Extend(samples.Calendar{}, s.Days, split)
	if len(days.Learn) == 0 || len(days.Choose) == 0 || len(days.Judge) == 0 {
		t.Fatalf("%d learn, %d choose, %d judge", len(days.Learn), len(days.Choose), len(days.Judge))
	}
	used := map[int]bool{}
	for _, i := range append(append([]int(nil), days.Learn...), days.Choose...) {
		if used[i] || calendar.Role(samples.DateOf(times[i])) == samples.Judge {
			t.Errorf("day %d judges, or is used twice", i)
		}
		used[i] = true
	}
}
