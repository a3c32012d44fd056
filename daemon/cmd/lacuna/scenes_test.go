package main

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/lab/scenes"
)

func TestScenesScoresAndDrawsWholeDays(t *testing.T) {
	archive := t.TempDir()
	if status, _, stderr := lacuna("simulate", "-o", archive, "--days", "70", "--grid", "56x80", "--seed", "2"); status != 0 {
		t.Fatal(stderr)
	}
	args := []string{"scenes", "--data", archive, "--var", "CHL", "--model", "oi"}
	status, stdout, stderr := lacuna(append(args, "--scenes", "3", "--json")...)
	if status != 0 {
		t.Fatal(stderr)
	}
	var report scenes.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if report.Scenes == 0 || !(report.Overall.MSE > 0) || len(report.Classes) == 0 {
		t.Errorf("report is %+v", report)
	}
	picture := filepath.Join(t.TempDir(), "day.png")
	if status, _, stderr = lacuna(append(args, "--picture", picture)...); status != 0 {
		t.Fatal(stderr)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

// A calibration that was written is one that the model is loaded with.
func TestScenesCalibratesAModelOnce(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive, model := t.TempDir(), modelFolder(t)
	if status, _, stderr := lacuna("simulate", "-o", archive, "--days", "60", "--grid", "48x64", "--seed", "2"); status != 0 {
		t.Fatal(stderr)
	}
	args := []string{
		"scenes", "--data", archive, "--var", "CHL", "--model", filepath.Join(model, "imputer.onnx"), "--engine", "ort", "--tier", "fast",
		"--scenes", "1", "--calibration", filepath.Join(model, "calibration.json"),
	}
	if status, _, stderr := lacuna(args...); status != 0 {
		t.Fatal(stderr)
	}
	if status, _, stderr := lacuna(args...); status != exitFailed || !strings.Contains(stderr, "model without one") {
		t.Errorf("the second time: status %d, %q", status, stderr)
	}
}

func TestScenesSaysWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--data", "x.nc"}, "must be named"},
		{[]string{"--data", "x.nc", "--model", "oi", "--seams", "3"}, "must be A,B"},
		{[]string{"--data", "x.nc", "--model", "oi", "--scenes", "-1"}, "must not be negative"},
		{[]string{"--model", "oi"}, "--data FILE is required"},
	} {
		if status, _, stderr := lacuna(append([]string{"scenes"}, tt.args...)...); status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: status %d, %q; want %q", tt.args, status, stderr, tt.want)
		}
	}
}
