package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// packed writes days of a small sea with striped gaps that move.
func packed(t *testing.T) string {
	t.Helper()
	const side, days = 24, 60
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.05*float64(i), 10+0.05*float64(i)
	}
	sea := make(field.Mask, side*side)
	fields := make([]field.Field, days)
	for d := range fields {
		r := noise.New(1, "bench").Rand(uint64(d))
		values := make([]float32, side*side)
		from, wide := r.IntN(side), 4+r.IntN(side/2)
		for c := range values {
			sea[c] = c%side > 1
			values[c] = float32(math.Sin(float64(c)/20)) + float32(d)
			if !sea[c] || (c/side+side-from)%side < wide {
				values[c] = field.NaN()
			}
		}
		fields[d] = field.Field{Grid: grid, Time: time.Date(2021, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: values}
	}
	series, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sea.pack")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := pack.Write(f, series); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportHoldsWhatTheIssueAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("training and drawing take seconds")
	}
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	data := packed(t)
	onnx := filepath.Join(t.TempDir(), "prior.onnx")
	args := strings.Fields("-engine ort -threads 1 -size tiny -side 16 -stride 8 -batch 4 -steps 6 -evaluate 3 -evaluate-masks 8 " +
		"-sample-steps 3 -sample-batch 16 -masks 16 -queries 8")
	var out, errs bytes.Buffer
	if err := run(t.Context(), append(args, "-data", data, "-other", data, "-o", onnx), &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, name := range []string{"log-snr", "log-snr-10", "even", "guided coherent", "guided pixel"} {
		if _, ok := r.ByDraw[name]; !ok {
			t.Errorf("nothing is said about %s draws", name)
		}
	}
	if len(r.AUC) != 2 || len(r.LowestQry) != 5 || len(r.Strength) != 2 || len(r.Shares) < 10 || r.Training == nil {
		t.Errorf("the report is not complete: %s", out.String())
	}
	// The prior that was written serves a second measurement.
	out.Reset()
	args = append(args, "-sweep=false", "-data", data, "-prior", onnx)
	if err := run(t.Context(), args, &out, &errs); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutDataItSaysWhatIsMissing(t *testing.T) {
	var out, errs bytes.Buffer
	if err := run(t.Context(), nil, &out, &errs); err == nil || !strings.Contains(err.Error(), "-data") {
		t.Errorf("error is %v, want one that names -data", err)
	}
}
