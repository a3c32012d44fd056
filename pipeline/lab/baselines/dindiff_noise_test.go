package baselines

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// fourKinds is an example of a context cell, a query cell, a missing one and
// land, in a row.
func fourKinds(t float32) learn.Augmented {
	nan := field.NaN()
	values := []float32{1.5, -0.5, nan, nan}
	return learn.Augmented{
		Example: learn.Example{Context: []bool{true, false, false, false}, Query: []bool{false, true, false, false}},
		In: impute.Inputs{
			Height: 1, Width: 4, Values: values,
			Visible: []bool{true, false, false, false}, Sea: []bool{true, true, true, false},
		},
		Scene: &impute.Scene{Patch: samples.Patch{Values: values}},
		Level: impute.Level{T: t, Eps: []float32{10, 20, 30, 40}},
	}
}

func imageOf(planes, height, width int) impute.Image {
	return impute.Image{Data: make([]float32, planes*height*width), Height: height, Width: width}
}

// plainDesign is a network of the target day alone.
func plainDesign() impute.Design {
	d := DINDiffConfig(learn.DefaultConfig().AsPaper()).Design
	d.Extras = impute.Extras{}
	return d
}

// The network is to answer the noise, where cells were hidden and nowhere else,
// and is told 0, t or 1 of each cell.
func TestDINDiffLearnsTheNoiseOfHiddenCells(t *testing.T) {
	const at = 0.3
	d := plainDesign()
	x, y := imageOf(d.Planes(), 1, 4), imageOf(3, 1, 4)
	if err := noisedQuery(d)(x, y, fourKinds(at)); err != nil {
		t.Fatal(err)
	}
	alpha, sigma := impute.AlphaSigma(at)
	for _, plane := range []struct {
		name      string
		got, want []float32
	}{
		{"values", x.Plane(impute.ValuePlane), []float32{1.5, alpha*-0.5 + sigma*20, 30, 40}},
		{"levels", x.Plane(impute.MaskPlane), []float32{0, at, 1, 1}},
		{"target", y.Plane(learn.ValueOfTarget), []float32{0, 20, 0, 0}},
		{"weight", y.Plane(learn.WeightOfTarget), []float32{0, 1, 0, 0}},
	} {
		if !slices.Equal(plane.got, plane.want) {
			t.Errorf("%s are %v, want %v", plane.name, plane.got, plane.want)
		}
	}
	clean := fourKinds(0)
	clean.Level = impute.Level{}
	if err := noisedQuery(d)(x, y, clean); err == nil {
		t.Error("an example without noise was accepted")
	}
}

// A member on its way down looks to the network as an example of the same noise
// level did whose query was all missing sea; land too.
func TestDINDiffDrawsFromWhatItLearned(t *testing.T) {
	d := plainDesign()
	for _, at := range []float32{0.95, 0.5, 0.05} {
		e := fourKinds(at)
		e.Query = missing(&e.In)
		e.Scene.Patch.Values = []float32{1.5, -0.5, 0.7, field.NaN()} // the missing cell has a truth here
		learned, target := imageOf(d.Planes(), 1, 4), imageOf(3, 1, 4)
		if err := noisedQuery(d)(learned, target, e); err != nil {
			t.Fatal(err)
		}
		member := slices.Clone(e.Level.Eps)
		alpha, sigma := impute.AlphaSigma(at)
		for k, hidden := range e.Query {
			if hidden {
				member[k] = alpha*e.Scene.Patch.Values[k] + sigma*member[k]
			}
		}
		drawn := imageOf(d.Planes(), 1, 4)
		encodeNoised(d, drawn, &e.In, noisedCells{member, missing(&e.In), at})
		if !slices.Equal(drawn.Data, learned.Data) {
			t.Errorf("t = %g: drawn from %v, learned from %v", at, drawn.Data, learned.Data)
		}
	}
	// Padding is land.
	wide := imageOf(d.Planes(), 2, 8)
	e := fourKinds(0.5)
	encodeNoised(d, wide, &e.In, noisedCells{e.Level.Eps, missing(&e.In), 0.5})
	want := []float32{0, 0.5, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	if got := wide.Plane(impute.MaskPlane); !slices.Equal(got, want) {
		t.Errorf("levels of a padded window are %v, want %v", got, want)
	}
}

// Given the exact expectation of the noise, steps lead from noise to the
// distribution of the data: here a Gaussian.
func TestDINDiffStepsLeadToTheDistribution(t *testing.T) {
	const mu, s, members, steps = 0.6, 0.5, 20000, 100
	x := make([]float32, members)
	noise.New(1, "dindiff steps").Normals(x, 0)
	for n := steps; n > 0; n-- {
		at := timesOf(n, steps)
		alpha, sigma := impute.AlphaSigma(at.now)
		for k, v := range x {
			clean := mu + s*s*alpha*(v-alpha*mu)/(alpha*alpha*s*s+sigma*sigma)
			x[k] = at.step(v, (v-alpha*clean)/sigma)
		}
	}
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	mean := sum / members
	sd := math.Sqrt(squares/members - mean*mean)
	if math.Abs(mean-mu) > 0.02 || math.Abs(sd-s) > 0.02 {
		t.Errorf("members have mean %.3f and sd %.3f, want %g and %g", mean, sd, mu, s)
	}
}

// What stands on land must not matter to the sea, so it is the same noise from
// the first step to the last.
func TestDINDiffLeavesLandAlone(t *testing.T) {
	in := imputetest.SomeInputs(t, 16, 3)
	in.Sea = slices.Clone(in.Sea)
	in.Visible = slices.Clone(in.Visible)
	for k := range 16 {
		in.Sea[k], in.Visible[k] = false, false
	}
	runner := imputetest.NewRunner(t, 2)
	design := plainDesign()
	design.Size = imputetest.TinyDesign().Size
	network, err := nn.New(design.Network())
	if err != nil {
		t.Fatal(err)
	}
	weights := make([]float32, network.Layout().Size)
	noise.New(1, "weights").Normals(weights, 0) // none is zero: all of the network takes part
	d := &DINDiff{design: design, runner: runner}
	if d.network, err = impute.NewNetwork(runner, design.Network(), weights); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.Draw(t.Context(), []impute.Inputs{in}, []noise.Stream{noise.New(1)}, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	start := make([]float32, in.Cells())
	noise.New(1).Sub(0).Normals(start, 0)
	moved := false
	for k, v := range out[0][0] {
		if !in.Sea[k] && v != start[k] {
			t.Fatalf("land cell %d went from %v to %v", k, start[k], v)
		}
		moved = moved || in.Sea[k] && !in.Visible[k] && v != start[k]
	}
	if !moved {
		t.Error("no cell of the sea was drawn")
	}
}
