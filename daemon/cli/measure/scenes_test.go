package measure

import (
	"encoding/json"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/lab/scenes"
	"lacuna/pipeline/simulate"
)

func TestScenesScoresAndDrawsWholeDays(t *testing.T) {
	archive, _ := simulated(t, simulate.Config{Product: "blk-chl", Days: 70, Height: 56, Width: 80, Seed: 2})
	args := []string{"--data", archive, "--var", "CHL", "--model", "oi"}
	stdout, _, err := clitest.Run(t, scenesCommand(), append(args, "--scenes", "3", "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var report scenes.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if report.Scenes == 0 || !(report.Overall.MSE > 0) || len(report.Classes) == 0 {
		t.Errorf("report is %+v", report)
	}
	picture := filepath.Join(t.TempDir(), "day.png")
	if _, _, err := clitest.Run(t, scenesCommand(), append(args, "--picture", picture)...); err != nil {
		t.Fatal(err)
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

func TestScenesJudgesTheStarterBesideInterpolation(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive, _ := simulated(t, simulate.Config{Product: "blk-chl", Days: 70, Height: 56, Width: 80, Seed: 2})
	judge := func(args ...string) scenes.Report {
		t.Helper()
		stdout, _, err := clitest.Run(t, scenesCommand(), append([]string{"--data", archive, "--scenes", "2", "--json"}, args...)...)
		var report scenes.Report
		if err == nil {
			err = json.Unmarshal([]byte(stdout), &report)
		}
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return report
	}
	starter, oi := judge("--model", "starter", "--engine", "ort"), judge("--model", "oi")
	if starter.Scenes == 0 || starter.Overall.MSE == oi.Overall.MSE || !(starter.Overall.MSE > 0) {
		t.Errorf("the starter has the MSE %g on %d scenes, interpolation %g: it was not asked", starter.Overall.MSE, starter.Scenes, oi.Overall.MSE)
	}
	if _, _, err := clitest.Run(t, scenesCommand(), "--data", archive, "--model", "starter", "--transform", "identity"); err == nil || !strings.Contains(err.Error(), "no starter for") {
		t.Errorf("chlorophyll that is not in log10: %v", err)
	}
}

// A calibration that was written is one that the model is loaded with.
func TestScenesCalibratesAModelOnce(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	archive, _ := simulated(t, simulate.Config{Product: "blk-chl", Days: 60, Height: 48, Width: 64, Seed: 2})
	model := clitest.ModelFolder(t)
	args := []string{
		"--data", archive, "--var", "CHL", "--model", filepath.Join(model, "imputer.onnx"), "--engine", "ort", "--tier", "fast",
		"--scenes", "1", "--calibration", filepath.Join(model, "calibration.json"),
	}
	if _, _, err := clitest.Run(t, scenesCommand(), args...); err != nil {
		t.Fatal(err)
	}
	_, _, err := clitest.Run(t, scenesCommand(), args...)
	if err == nil || errors.As(err, new(cli.UsageError)) || !strings.Contains(err.Error(), "model without one") {
		t.Errorf("the second time: %v", err)
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
		_, _, err := clitest.Run(t, scenesCommand(), tt.args...)
		if !errors.As(err, new(cli.UsageError)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v; want an error of usage with %q", tt.args, err, tt.want)
		}
	}
}
