package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/feed"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

// Evaluate says of a covariate what it brings on held-out days, and gives it to the rows
// that build on optimal interpolation.
func TestEvaluateSaysWhatACovariateBrings(t *testing.T) {
	cfg := simulate.Config{Product: "blk-chl", Height: 24, Width: 36, Days: 150, Seed: 5}
	archive, _ := simulated(t, cfg)
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
	if strings.Contains(plain, "Covariates") || !strings.Contains(with, "\n| sst | used; it saves +") || !strings.Contains(with, "\n| all that are used | +") {
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

// What covariates bring to a network stands beside what they bring to interpolation.
func TestOneTableSaysWhatCovariatesBring(t *testing.T) {
	gain := func(share float64) *covariate.Gain {
		return &covariate.Gain{Share: share, Interval: skill.Interval{Low: share - 0.1, High: share + 0.1}, Days: 20}
	}
	b := &brought{rows: []string{"model:v1"}, Networks: map[string]covariate.Kept{"model:v1": {
		Judged: []covariate.Verdict{{Name: "sst", Used: true, Gain: gain(0.2)}, {Name: "wind", Why: "it has no map of these days"}}, Gain: gain(0.2),
	}}}
	b.Learn, b.Choose, b.Judged = 60, 30, []covariate.Verdict{{Name: "sst", Why: "no gain beyond chance", Gain: gain(0.05)}}
	const want = `
| covariate | optimal interpolation | model:v1 |
|---|---|---|
| sst | not used: no gain beyond chance; it saves +5.0 % (95 %: -5.0 to +15.0 %, 20 days) | used; it saves +20.0 % (95 %: +10.0 to +30.0 %, 20 days) |
| wind | it does not know it | not used: it has no map of these days |
| all that are used | | +20.0 % (95 %: +10.0 to +30.0 %, 20 days) |
`
	if got := b.markdown(); !strings.Contains(got, want) {
		t.Errorf("it reads\n%s", got)
	}
}
