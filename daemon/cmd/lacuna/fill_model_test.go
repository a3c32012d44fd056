package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
)

// lacuna runs the command in this process.
func lacuna(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

// modelFolder holds the files of a model of random weights.
func modelFolder(t *testing.T) string {
	t.Helper()
	v, err := infer.Untrained(impute.Design{
		Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true, Extras: impute.Extras{Last: true, Analysis: true},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"imputer.onnx": v.Imputer, "members.onnx": v.Members} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFillWithAModelGivesTheSameBytesTwiceWithDetailsAndMembers(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive := t.TempDir()
	if status, _, stderr := lacuna("simulate", "-o", archive, "--days", "4", "--grid", "24x32", "--seed", "2"); status != 0 {
		t.Fatal(stderr)
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 3 {
		t.Fatalf("%v, %v", days, err)
	}
	model := filepath.Join(modelFolder(t), "imputer.onnx")
	var files [2][2][]byte
	for i := range files {
		out := t.TempDir()
		status, stdout, stderr := lacuna("fill", days[2], "-o", out, "--history", archive, "--model", model, "--engine", "ort",
			"--tier", "standard", "--members", "2", "--seed", "5", "--details", "--members-file")
		product := strings.TrimSpace(stdout)
		if status != 0 || !strings.HasSuffix(product, "_l4.nc") {
			t.Fatalf("status %d, %s%s", status, stdout, stderr)
		}
		for k, path := range []string{product, strings.TrimSuffix(product, ".nc") + "_members.nc"} {
			if files[i][k], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"CHL", "CHL_distance_km", "CHL_distance_days"} {
			if status, _, stderr := lacuna("inspect", "--var", name, product); status != 0 {
				t.Errorf("%s of the product cannot be read: %s", name, stderr)
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
		args   []string
		status int
		want   string
	}{
		{[]string{"--model", "v7"}, exitUsage, "there is no --store"},
		{[]string{"--model", "persistence", "--tier", "full"}, exitUsage, "are for models"},
		{[]string{"--model", "oi", "--store", dir, "--members-file"}, exitUsage, "are for models"},
		{[]string{"--store", dir, "--tier", "best"}, exitUsage, "fast, standard, full"},
		{[]string{"--store", filepath.Join(dir, "none")}, exitFailed, "open model store"},
		{[]string{"--store", dir}, exitFailed, "champion"},
		{[]string{"--store", dir, "--model", "v7"}, exitFailed, "v7"},
	} {
		status, _, stderr := lacuna(append([]string{"fill", "in.nc", "-o", dir}, tt.args...)...)
		if status != tt.status || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: status %d, %q; want %d and %q", tt.args, status, stderr, tt.status, tt.want)
		}
	}
}
