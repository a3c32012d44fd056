package impute_test

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
)

// A fine-tune that is given covariates begins with the answers of its parent, whatever
// they say, and whatever covariates the parent had.
func TestAWidenedNetworkAnswersAsBefore(t *testing.T) {
	in := imputetest.SomeInputs(t, 16, 3)
	ramp := make([]float32, in.Cells())
	for i := range ramp {
		ramp[i] = float32(math.Sin(float64(i)))
	}
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		runner := imputetest.NewRunner(t, 1)
		plain := imputetest.TinyDesign()
		plain.Backbone = backbone
		deep := plain.With(nil, []string{"depth"})
		for _, tt := range []struct {
			from, to      impute.Design
			before, after [][]float32
		}{
			{plain, plain.With([]string{"sst", "wind"}, nil), nil, [][]float32{ramp, nil}},
			// The planes of the depth move back, and keep their weights.
			{deep, deep.With([]string{"sst"}, nil), [][]float32{ramp}, [][]float32{ramp, ramp}},
		} {
			m := imputetest.BusyModel(t, runner, tt.from)
			data, err := m.Save(16)
			if err != nil {
				t.Fatal(err)
			}
			file, err := netfile.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			weights, err := impute.Widened(file.Weights, tt.from, tt.to)
			if err != nil {
				t.Fatal(err)
			}
			wide, err := impute.NewModel(runner, tt.to, imputetest.Training{Side: 16}, weights)
			if err != nil {
				t.Fatal(err)
			}
			one, two := in, in
			one.Covariates, two.Covariates = tt.before, tt.after
			want, got := imputetest.PredictOne(t, m, one), imputetest.PredictOne(t, wide, two)
			for i := range want.Mean {
				if math.Abs(float64(want.Mean[i]-got.Mean[i])) > 1e-5 || math.Abs(float64(want.Sigma[i]-got.Sigma[i])) > 1e-5 {
					t.Fatalf("%s from %q to %q: cell %d was %v ± %v and is %v ± %v", backbone, tt.from.Channels(), tt.to.Channels(), i, want.Mean[i], want.Sigma[i], got.Mean[i], got.Sigma[i])
				}
			}
			if _, err := impute.Widened(weights, tt.to, tt.from); err == nil {
				t.Error("a network lost a covariate without a word")
			}
		}
	}
}

// A covariate is a plane of values and one that says where they are known. It turns its
// sign with the anomalies; a map that stays does not.
func TestPlanesOfCovariates(t *testing.T) {
	in := imputetest.SomeInputs(t, 16, 3)
	d := imputetest.TinyDesign().With([]string{"sst"}, []string{"depth"})
	given := make([]float32, in.Cells())
	given[5] = float32(math.NaN())
	given[7], given[9] = 2, 3
	in.Sea = slices.Clone(in.Sea)
	in.Sea[9] = false
	in.Covariates = [][]float32{given, given}
	m := impute.Image{Data: make([]float32, d.Planes()*256), Height: 16, Width: 16}
	d.EncodeTimes(m, &in, impute.Level{}, -1)
	first := d.Without().Planes()
	for k, sign := range []float32{-1, 1} {
		values, known := m.Plane(first+2*k), m.Plane(first+2*k+1)
		if values[7] != sign*2 || known[7] != 1 || values[5] != 0 || known[5] != 0 || values[9] != 0 || known[9] != 0 || known[3] != 1 {
			t.Errorf("channel %d: values %v, known %v", k, values[:10], known[:10])
		}
	}
	// The order is the caller's, and so the number at least must be right.
	in.Covariates = in.Covariates[:1]
	if _, err := imputetest.BusyModel(t, imputetest.NewRunner(t, 1), d).Predict(t.Context(), []impute.Inputs{in}); err == nil {
		t.Error("a network of two covariates was given one, without a word")
	}
}
