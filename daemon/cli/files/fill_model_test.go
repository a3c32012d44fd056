package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/pipeline/engine/ort"
)

func TestFillWithAModelGivesTheSameBytesTwiceWithDetailsAndMembers(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive := t.TempDir()
	if _, _, err := clitest.Run(t, simulateCommand(), "-o", archive, "--days", "4", "--grid", "24x32", "--seed", "2"); err != nil {
		t.Fatal(err)
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 3 {
		t.Fatalf("%v, %v", days, err)
	}
	model := filepath.Join(clitest.ModelFolder(t), "imputer.onnx")
	t.Setenv("SOURCE_DATE_EPOCH", "1714000000")
	var files [2][2][]byte
	for i := range files {
		out := t.TempDir()
		stdout, _, err := clitest.Run(t, fillCommand(), days[2], "-o", out, "--history", archive, "--model", model, "--engine", "ort",
			"--tier", "standard", "--members", "2", "--seed", "5", "--details", "--members-file")
		product := strings.TrimSpace(stdout)
		if err != nil || !strings.HasSuffix(product, "_l4.nc") {
			t.Fatalf("%v, %s", err, stdout)
		}
		for k, path := range []string{product, strings.TrimSuffix(product, ".nc") + "_members.nc"} {
			if files[i][k], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"CHL", "CHL_distance_km", "CHL_distance_days"} {
			if _, _, err := clitest.Run(t, inspectCommand(), "--var", name, product); err != nil {
				t.Errorf("%s of the product cannot be read: %v", name, err)
			}
		}
	}
	if !bytes.Equal(files[0][0], files[1][0]) || !bytes.Equal(files[0][1], files[1][1]) {
		t.Error("the same input, model and seed give other bytes")
	}
}

func TestFillSaysWhatIsWrongWithTheModelThatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"--model", "v7"}, true, "there is no --store"},
		{[]string{"--model", "persistence", "--tier", "full"}, true, "are for models"},
		{[]string{"--model", "oi", "--store", dir, "--members", "3"}, true, "without --members-file"},
		{[]string{"--store", dir, "--tier", "best"}, true, "fast, standard, full"},
		{[]string{"--store", filepath.Join(dir, "none")}, false, "open model store"},
		{[]string{"--store", dir}, false, "champion"},
		{[]string{"--store", dir, "--model", "v7"}, false, "v7"},
	} {
		_, _, err := clitest.Run(t, fillCommand(), append([]string{"in.nc", "-o", dir}, tt.args...)...)
		if err == nil || errors.As(err, new(cli.UsageError)) != tt.usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v; want %q, and that this is an error of usage: %v", tt.args, err, tt.want, tt.usage)
		}
	}
}

// Optimal interpolation has members too, in a file that the product names.
func TestFillWritesMembersWithoutAModel(t *testing.T) {
	archive, out := t.TempDir(), t.TempDir()
	if _, _, err := clitest.Run(t, simulateCommand(), "-o", archive, "--days", "2", "--grid", "24x32", "--seed", "2"); err != nil {
		t.Fatal(err)
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 2 {
		t.Fatalf("%v, %v", days, err)
	}
	stdout, _, err := clitest.Run(t, fillCommand(), days[1], "-o", out, "--history", archive, "--model", "oi", "--members", "3", "--members-file")
	if err != nil {
		t.Fatal(err)
	}
	product := strings.TrimSpace(stdout)
	members := strings.TrimSuffix(product, ".nc") + "_members.nc"
	content, err := os.ReadFile(members)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(product)
	if want := fmt.Sprintf("%s sha256:%x 3", filepath.Base(members), sha256.Sum256(content)); err != nil || !bytes.Contains(written, []byte(want)) {
		t.Errorf("the product does not say %q, %v", want, err)
	}
}

// Without a word on the model the starter is weighed on the days at hand, and
// followed as far as they say; by its name it is followed all the way.
func TestFillFollowsTheStarterAsFarAsTheDaysSay(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive := t.TempDir()
	if _, _, err := clitest.Run(t, simulateCommand(), "-o", archive, "--days", "16", "--grid", "32x48", "--seed", "2"); err != nil {
		t.Fatal(err)
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 12 {
		t.Fatalf("%v, %v", days, err)
	}
	made := func(args ...string) (product, stderr string) {
		t.Helper()
		stdout, stderr, err := clitest.Run(t, fillCommand(), append([]string{days[len(days)-1], "-o", t.TempDir(), "--history", archive, "--engine", "ort"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(strings.TrimSpace(stdout))
		if err != nil {
			t.Fatal(err)
		}
		return string(content), stderr
	}
	if product, stderr := made(); !strings.Contains(stderr, "a starter model (starter-chl-") || !strings.Contains(stderr, "scored days") ||
		!strings.Contains(product, "lacuna_trust_weight") || !strings.Contains(product, "lacuna_trust_model") {
		t.Errorf("by itself it says %q, or the product does not say how far the starter was followed", stderr)
	}
	if product, stderr := made("--model", "starter"); strings.Contains(stderr, "followed") || strings.Contains(product, "lacuna_trust_weight") || !strings.Contains(product, "model starter-chl-") {
		t.Errorf("named, it says %q, or the product is not of the starter alone", stderr)
	}
	if product, _ := made("--model", "oi"); strings.Contains(product, "lacuna_trust_weight") {
		t.Error("a product of optimal interpolation speaks of a model")
	}
}
