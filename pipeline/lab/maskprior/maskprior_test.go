package maskprior

import (
	"bytes"
	"encoding/json"
	"io"
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

func TestReportHoldsEveryMeasurement(t *testing.T) {
	if testing.Short() {
		t.Skip("training and drawing take seconds")
	}
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	data := packed(t)
	onnx := filepath.Join(t.TempDir(), "prior.onnx")
	args := strings.Fields("-engine ort -threads 1 -size tiny -side 16 -stride 8 -batch 4 -steps 6 -evaluate 3 -evaluate-masks 8 " +
		"-sample-steps 3 -sample-batch 4 -masks 4 -least-query 0.7")
	var out, errs bytes.Buffer
	if err := Run(t.Context(), append(args, "-data", data, "-other", data, "-o", onnx), &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, name := range []string{"log-snr", "log-snr-10", "even", "guided coherent", "guided pixel", "empirical"} {
		drawn, ok := r.ByDraw[name]
		if !ok {
			t.Errorf("nothing is said about %s draws", name)
		}
		whole := 0.0
		for _, share := range drawn.ContextShares {
			whole += share
		}
		if math.Abs(whole-1) > 1e-6 || drawn.Degenerate < 0 || drawn.Degenerate > 1 {
			t.Errorf("%s: context shares %v and %g degenerate draws", name, drawn.ContextShares, drawn.Degenerate)
		}
	}
	if len(r.AUC) != 2 || len(r.LowestQry) != 6 || len(r.Strength) != 2 || len(r.Shares) < 10 || r.Training == nil {
		t.Errorf("the report is not complete: %s", out.String())
	}
	// The prior that was written serves a second measurement.
	out.Reset()
	args = append(args, strings.Fields("-parts likelihood,rho,until,pool -patches 2 -draws 2 -pool-steps 100 -pool-batch 16 -pool-prime 16")...)
	args = append(args, "-data", data, "-prior", onnx)
	if err := Run(t.Context(), args, &out, &errs); err != nil {
		t.Fatal(err)
	}
	r = report{}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	checkStudies(t, r)
}

// checkStudies checks for impossible values only: the network has hardly
// learned anything, so likely values cannot be expected.
func checkStudies(t *testing.T, r report) {
	t.Helper()
	if len(r.Rho) != 6 || len(r.Until) != 4*len(untilSteps()) || len(r.Pools) != 4 {
		t.Fatalf("%d values of rho, %d last steps, %d pools", len(r.Rho), len(r.Until), len(r.Pools))
	}
	for _, s := range r.Rho {
		if (s.MoreShare == nil) != (s.Rho == 0.6) || !(s.ContextShare.Mean > 0) || s.ContextShare.Mean > 1 || !(s.ContextShare.Within > 0) {
			t.Errorf("rho %g: %+v", s.Rho, s)
		}
	}
	for _, s := range r.Until {
		if s.Steps != 10 || s.GuidedSteps < 2 || !(s.ContextEdges.Mean > 0) {
			t.Errorf("until step %d: %+v", s.GuidedSteps, s)
		}
	}
	for _, s := range r.Pools {
		if !(s.StepsPerSecond > 0) || (s.Use == nil) != (s.Strategy == "none") {
			t.Errorf("pool %s: %+v", s.Strategy, s)
		}
		if s.Use != nil && (s.Use.Items != 100*4 || s.Use.WaitSeconds != 0) {
			t.Errorf("pool %s: %+v", s.Strategy, *s.Use)
		}
	}
}

func TestEdgesInsideAnObservation(t *testing.T) {
	p := samples.Patch{Ref: samples.Ref{Window: samples.Square(0, 0, 4)}, Values: make([]float32, 16)}
	half, salt := make([]bool, 16), make([]bool, 16)
	for c := range 16 {
		half[c], salt[c] = c%4 < 2, (c/4+c%4)%2 == 0
	}
	if got := innerEdges(p, half); got != 4.0/24 {
		t.Errorf("two halves have edges at %g of the pairs, want 4 of 24", got)
	}
	if got := innerEdges(p, salt); got != 1 {
		t.Errorf("a chessboard has edges at %g of the pairs, want all", got)
	}
	for c := range 16 {
		if c%4 == 1 {
			p.Values[c] = field.NaN() // between the halves lies a gap now
		}
	}
	if got := innerEdges(p, half); got != 0 {
		t.Errorf("halves apart have edges at %g of the pairs, want none", got)
	}
}

func TestMissingDataIsNamed(t *testing.T) {
	var out, errs bytes.Buffer
	if err := Run(t.Context(), nil, &out, &errs); err == nil || !strings.Contains(err.Error(), "-data") {
		t.Errorf("error is %v, want one that names -data", err)
	}
}

// Of fewer steps there is no rate to report.
func TestTooFewStepsBesideAPoolAreRefused(t *testing.T) {
	err := Run(t.Context(), strings.Fields("-data series.pack -parts pool -pool-steps 99"), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "must be 100 or more") {
		t.Errorf("the error is %v", err)
	}
}
