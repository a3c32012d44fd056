package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/feed"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/simulate"
)

// runEvaluate runs the command as a user would.
func runEvaluate(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	c := evaluateCommand()
	var out, errs bytes.Buffer
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(t.Context())
	if err != nil {
		t.Logf("standard error: %s", errs.String())
	}
	return out.String(), err
}

// writeFeed writes simulated granules and their truth, without the days of
// which nothing was seen.
func writeFeed(t *testing.T) (archive, truth string) {
	t.Helper()
	archive, truth = t.TempDir(), t.TempDir()
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 110, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range world.Schedule() {
		g := world.Granule(d)
		if g.Seen.ObservedMask().Count() == 0 {
			continue
		}
		err := errors.Join(feed.Write(filepath.Join(archive, g.Name), g), feed.Write(filepath.Join(truth, g.Name), world.TruthGranule(d.Day)))
		if err != nil {
			t.Fatal(err)
		}
	}
	return archive, truth
}

func TestEvaluateWritesTablesAndPicturesOfGranules(t *testing.T) {
	archive, truth := writeFeed(t)
	out := filepath.Join(t.TempDir(), "report")
	args := []string{"--data", archive, "--truth", truth, "--var", "CHL", "--methods", "oi,persistence,climatology", "--overlays", "12", "-o", out}
	stdout, err := runEvaluate(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| oi | ", "| climatology | ", "under the real clouds", "gap MSE", "32×32"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	for _, name := range []string{tables.ResultsFile, tables.MarkdownFile, tables.TimingFile, "maps.png", "distance.png", "reliability.png", "rank-oi.png"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := runEvaluate(t, args...); err != nil || again != stdout {
		t.Errorf("the same command says otherwise: %v\n%s", err, again)
	}
}

func TestEvaluateComparesWithExactKriging(t *testing.T) {
	stdout, err := runEvaluate(t, "--synthetic", "gaussian", "--days", "120", "--side", "16", "--methods", "kriging,oi,climatology", "--mode", "single", "-o", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout, "| kriging | ") || !strings.Contains(stdout, "against kriging") {
		t.Errorf("the table reads\n%s", stdout)
	}
}

func TestEvaluateRefusesWhatItCannotDo(t *testing.T) {
	out := t.TempDir()
	for _, args := range [][]string{
		{},
		{"--data", "archive", "-o", out},
		{"--data", "archive", "--table", "nonsense", "-o", out},
		{"--data", "archive", "--table", "main", "--methods", "oi", "-o", out},
		{"--data", "archive", "--methods", "nonsense", "-o", out},
		{"--data", "archive", "--table", "main", "--mode", "nonsense", "-o", out},
		{"--data", "archive", "--table", "main", "--size", "enormous", "-o", out},
		{"--data", "archive", "--table", "main", "--seeds", "-1", "-o", out},
		{"--data", "archive", "--table", "mnar", "-o", out},
		{"--data", "archive", "--table", "main"},
		{"--synthetic", "nonsense", "-o", out},
		{"--synthetic", "gaussian", "--data", "archive", "-o", out},
	} {
		_, err := runEvaluate(t, args...)
		var usage usageError
		if !errors.As(err, &usage) {
			t.Errorf("%v: %v, want an error of usage", args, err)
		}
	}
}
