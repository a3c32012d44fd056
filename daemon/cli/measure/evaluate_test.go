package measure

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/simulate"
)

// runEvaluate runs the command as a user would.
func runEvaluate(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	stdout, stderr, err := clitest.Run(t, evaluateCommand(), args...)
	if err != nil {
		t.Logf("standard error: %s", stderr)
	}
	return stdout, err
}

func TestEvaluateWritesTablesAndPicturesOfGranules(t *testing.T) {
	archive, truth := simulated(t, simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 110, Seed: 3})
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

// The command of a newcomer: is what comes with the program worth anything here?
func TestEvaluateJudgesTheStarterOnAUsersOwnDays(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive, _ := simulated(t, simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 110, Seed: 3})
	out, store := filepath.Join(t.TempDir(), "report"), t.TempDir()
	chl := importStarter(t, store, "chl.tar")
	stdout, err := runEvaluate(t, "--data", archive, "--methods", "oi,starter,persistence,model:"+chl, "--store", store, "--overlays", "12", "--engine", "ort", "-o", out)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(stdout) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			rows[name] = rest
		}
	}
	if rows["oi"] == "" || rows["starter"] == "" || rows["starter"] == rows["oi"] || rows["persistence"] == "" {
		t.Fatalf("the table reads\n%s", stdout)
	}
	// The starter in a store is the same model, so that it has the same scores.
	if got := rows["model:"+chl]; got != rows["starter"] {
		t.Errorf("the same version by its name has\n%swant\n%s", got, rows["starter"])
	}
}

func TestEvaluateSaysWhyAModelCannotBeJudged(t *testing.T) {
	archive, _ := simulated(t, simulate.Config{Product: "blk-chl", Height: 32, Width: 48, Days: 30, Seed: 3})
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--methods", "oi,model:v7"}, "--store DIR"},
		{[]string{"--methods", "oi,champion"}, "--store DIR"},
		{[]string{"--methods", "oi,model:v7", "--store", t.TempDir()}, "v7"},
		{[]string{"--methods", "oi,starter", "--transform", "identity"}, "no starter for"},
	} {
		_, err := runEvaluate(t, append([]string{"--data", archive, "-o", t.TempDir()}, tt.args...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// importStarter puts a starter of the program into a store, as any version.
func importStarter(t *testing.T, store, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "modelstore", "starters", "versions", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	v, err := modelstore.New(store, time.Now).Import(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return v.ID
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
		var usage cli.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%v: %v, want an error of usage", args, err)
		}
	}
}
