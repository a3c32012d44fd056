package impute_test

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
)

// openVINOVariable names a libonnxruntime with OpenVINO, which make openvino fetches.
const openVINOVariable = "LACUNA_TEST_OPENVINO"

// TestUnitsForMatricesAnswerAsFloat32Does runs in a process of its own, because a process
// loads one libonnxruntime.
func TestUnitsForMatricesAnswerAsFloat32Does(t *testing.T) {
	const inside = "LACUNA_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		answersAsFloat32(t)
		return
	}
	library := os.Getenv(openVINOVariable)
	if _, err := os.Stat(library); err != nil {
		t.Skipf("no libonnxruntime with OpenVINO is here, which make openvino fetches: $%s: %v", openVINOVariable, err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=yes", ort.LibraryVariable+"="+library)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if strings.Contains(string(said), "--- SKIP") {
		t.Skipf("%s", said)
	}
}

func answersAsFloat32(t *testing.T) {
	runner := imputetest.NewRunner(t, 1)
	in := tiled(imputetest.SomeInputs(t, 16, 3), 8)
	if engine.For(runner.Backend(), in.Cells()) == runner.Backend() {
		t.Skip("this processor does not multiply matrices of bfloat16")
	}
	float32s, err := impute.NewRunner(runner.Backend(), impute.RunnerConfig{Batch: 1, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer float32s.Close()
	want := imputetest.PredictOne(t, imputetest.BusyModel(t, float32s, imputetest.TinyDesign()), in)
	m := imputetest.BusyModel(t, runner, imputetest.TinyDesign())
	got := imputetest.PredictOne(t, m, in)
	if again := imputetest.PredictOne(t, m, in); !equalPredictions(got, again) {
		t.Error("the same window has another answer the second time")
	}
	var off, size float64
	hidden := 0
	for i, visible := range in.Visible {
		if visible {
			if math.Float32bits(got.Mean[i]) != math.Float32bits(in.Values[i]) {
				t.Fatalf("visible cell %d went in as %v and came out as %v", i, in.Values[i], got.Mean[i])
			}
			continue
		}
		hidden++
		off += math.Pow(float64(got.Mean[i]-want.Mean[i]), 2)
		size += math.Pow(float64(want.Mean[i]-in.Background[i]), 2)
		if r := got.Sigma[i] / want.Sigma[i]; !(r > 0.9 && r < 1.1) {
			t.Fatalf("cell %d has sigma %v, in float32 %v", i, got.Sigma[i], want.Sigma[i])
		}
	}
	// A bfloat16 has 8 bits: a hundredth of the departure each way in two dozen layers.
	if share := math.Sqrt(off / size); hidden == 0 || !(share < 0.05) || share == 0 {
		t.Errorf("of %d cells the departures from the background are off by %.2g of their size, want up to 0.05 and not none: bfloat16 was not used", hidden, share)
	}
	for i, visible := range in.Visible {
		if !visible {
			in.Values[i] = 1e6
		}
	}
	if !equalPredictions(imputetest.PredictOne(t, m, in), got) {
		t.Error("what lies under the mask changes the prediction")
	}
}

// tiled repeats a window n times in both directions.
func tiled(in impute.Inputs, n int) impute.Inputs {
	out := in
	out.Height, out.Width = n*in.Height, n*in.Width
	out.Values, out.Visible, out.Sea = repeated(in.Values, in.Width, n), repeated(in.Visible, in.Width, n), repeated(in.Sea, in.Width, n)
	out.Last.Value, out.Last.Freshness = repeated(in.Last.Value, in.Width, n), repeated(in.Last.Freshness, in.Width, n)
	out.Next.Value, out.Next.Freshness = repeated(in.Next.Value, in.Width, n), repeated(in.Next.Freshness, in.Width, n)
	out.Background, out.BackgroundSigma = repeated(in.Background, in.Width, n), repeated(in.BackgroundSigma, in.Width, n)
	out.Analysis, out.AnalysisSigma = repeated(in.Analysis, in.Width, n), repeated(in.AnalysisSigma, in.Width, n)
	return out
}

func repeated[T any](cells []T, width, n int) []T {
	if cells == nil {
		return nil
	}
	var rows []T
	for row := range slices.Chunk(cells, width) {
		rows = append(rows, slices.Repeat(row, n)...)
	}
	return slices.Repeat(rows, n)
}
