package impute_test

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/samples"
)

func finite(v float32) bool { return v-v == 0 }

func equalPredictions(a, b impute.Prediction) bool {
	return slices.Equal(a.Mean, b.Mean) && slices.Equal(a.Sigma, b.Sigma)
}

func TestNothingUnderTheMaskLeaks(t *testing.T) {
	runner := imputetest.NewRunner(t, 1)
	m := imputetest.BusyModel(t, runner, imputetest.TinyDesign())
	in := imputetest.SomeInputs(t, 16, 3)
	want := imputetest.PredictOne(t, m, in)
	for _, junk := range []float32{1e6, float32(math.NaN()), float32(math.Inf(1))} {
		dirty := in
		dirty.Values = slices.Clone(in.Values)
		for i, visible := range in.Visible {
			if !visible {
				dirty.Values[i] = junk
			}
		}
		if !equalPredictions(imputetest.PredictOne(t, m, dirty), want) {
			t.Errorf("%v under the mask changes the prediction", junk)
		}
	}
	shown := in
	shown.Values = slices.Clone(in.Values)
	shown.Values[slices.Index(in.Visible, true)] += 1
	if equalPredictions(imputetest.PredictOne(t, m, shown), want) {
		t.Error("a visible value does not change the prediction: the network does not see it")
	}
}

func TestVisibleCellsComeOutBitForBit(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 1), imputetest.TinyDesign())
	in := imputetest.SomeInputs(t, 16, 2)
	p := imputetest.PredictOne(t, m, in)
	hidden := 0
	for i, visible := range in.Visible {
		switch {
		case visible && (math.Float32bits(p.Mean[i]) != math.Float32bits(in.Values[i]) || p.Sigma[i] != 0):
			t.Fatalf("visible cell %d went in as %v and came out as %v ± %v", i, in.Values[i], p.Mean[i], p.Sigma[i])
		case !visible:
			hidden++
			if !finite(p.Mean[i]) || !(p.Sigma[i] > 0) {
				t.Fatalf("gap %d is filled with %v ± %v", i, p.Mean[i], p.Sigma[i])
			}
		}
	}
	if hidden == 0 {
		t.Fatal("nothing was hidden")
	}
}

func TestBatchOfOneEqualsTheItemInABatchOfFour(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 4), imputetest.TinyDesign())
	var all []impute.Inputs
	for day := range 4 {
		all = append(all, imputetest.SomeInputs(t, 16, day))
	}
	together, err := m.Predict(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range all {
		if !equalPredictions(imputetest.PredictOne(t, m, in), together[i]) {
			t.Errorf("item %d differs when it is alone", i)
		}
	}
}

func TestAWindowOfAnySizeIsFilled(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 1), imputetest.TinyDesign())
	in := imputetest.SomeInputs(t, 16, 3)
	small := in
	small.Height, small.Width = 13, 16
	cut := func(x []float32) []float32 { return x[:13*16] }
	small.Values, small.Visible, small.Sea = cut(in.Values), in.Visible[:13*16], in.Sea[:13*16]
	small.Last = samples.Composite{Value: cut(in.Last.Value), Freshness: cut(in.Last.Freshness)}
	small.Next = samples.Composite{Value: cut(in.Next.Value), Freshness: cut(in.Next.Freshness)}
	small.Background, small.BackgroundSigma = cut(in.Background), cut(in.BackgroundSigma)

	// Cells beyond the window count as land without values.
	land := in
	land.Sea, land.Visible = slices.Clone(in.Sea), slices.Clone(in.Visible)
	land.Last.Freshness, land.Next.Freshness = slices.Clone(in.Last.Freshness), slices.Clone(in.Next.Freshness)
	for i := 13 * 16; i < 16*16; i++ {
		land.Sea[i], land.Visible[i], land.Last.Freshness[i], land.Next.Freshness[i] = false, false, 0, 0
	}
	got, want := imputetest.PredictOne(t, m, small), imputetest.PredictOne(t, m, land)
	if !slices.Equal(got.Mean, want.Mean[:13*16]) || !slices.Equal(got.Sigma, want.Sigma[:13*16]) {
		t.Error("a window of 13 rows is not filled as the upper 13 of 16")
	}
}

func TestAbsentNeighboursChangeNoShapes(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 1), imputetest.TinyDesign())
	in := imputetest.SomeInputs(t, 16, 3)
	full := imputetest.PredictOne(t, m, in)
	alone := in
	alone.Last, alone.Next, alone.Background, alone.BackgroundSigma = samples.Composite{}, samples.Composite{}, nil, nil
	p := imputetest.PredictOne(t, m, alone)
	if len(p.Mean) != len(full.Mean) || len(p.Sigma) != len(full.Sigma) {
		t.Errorf("%d cells without neighbours, %d with them", len(p.Mean), len(full.Mean))
	}
	if equalPredictions(p, full) {
		t.Error("neighbours do not change the prediction: the network does not see them")
	}
}

func TestAConstantFieldOnItsBackgroundIsFilledWithTheConstant(t *testing.T) {
	network, err := nn.New(imputetest.TinyDesign().Network())
	if err != nil {
		t.Fatal(err)
	}
	m, err := impute.NewModel(imputetest.NewRunner(t, 1), imputetest.TinyDesign(), imputetest.Training{Side: 16}, network.Layout().Init(1)) // its last layer is zero: no departure
	if err != nil {
		t.Fatal(err)
	}
	in := imputetest.SomeInputs(t, 16, 3)
	for i := range in.Values {
		in.Values[i], in.Background[i] = 0.7, 0.7
	}
	for i, v := range imputetest.PredictOne(t, m, in).Mean {
		if v != 0.7 {
			t.Fatalf("cell %d is %v, want the constant 0.7", i, v)
		}
	}
}

func TestASavedModelPredictsTheSame(t *testing.T) {
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		runner := imputetest.NewRunner(t, 1)
		d := imputetest.TinyDesign()
		d.Backbone, d.Extras.Season = backbone, true
		m := imputetest.BusyModel(t, runner, d)
		data, err := m.Save(16)
		if err != nil {
			t.Fatal(err)
		}
		again, err := impute.Load(data, runner)
		if err != nil {
			t.Fatal(err)
		}
		in := imputetest.SomeInputs(t, 16, 3)
		if !equalPredictions(imputetest.PredictOne(t, again, in), imputetest.PredictOne(t, m, in)) {
			t.Errorf("%s: the loaded file predicts other values", backbone)
		}
		if again.Fingerprint() != m.Fingerprint() || again.Design() != m.Design() {
			t.Errorf("%s: the file is %v %s, want %v %s", backbone, again.Design(), again.Fingerprint(), m.Design(), m.Fingerprint())
		}
	}
}

// The settings of a training belong to another package: they pass through unchanged.
func TestAModelKeepsTheSettingsOfItsTraining(t *testing.T) {
	runner, d := imputetest.NewRunner(t, 1), imputetest.TinyDesign()
	network, err := nn.New(d.Network())
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{"side": 24, "unknown here": []int{1, 2}}
	m, err := impute.NewModel(runner, d, settings, network.Layout().Init(1))
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Save(0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := impute.Load(first, runner)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.In(runner).Save(0)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) || again.Side() != 24 {
		t.Errorf("a file that was read and written is another one, or its patches have a side of %d, not 24", again.Side())
	}
	file, err := netfile.Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	file.Metadata["training"] = `{"side": "large"}`
	broken, err := netfile.Encode(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := impute.Load(broken, runner); err == nil {
		t.Error("a model was read whose patches have no size")
	}
}

func TestSharedProgramsPredictTheSame(t *testing.T) {
	runner := imputetest.NewRunner(t, 1)
	in := imputetest.SomeInputs(t, 16, 3)
	want := imputetest.PredictOne(t, imputetest.BusyModel(t, runner, imputetest.TinyDesign()), in)
	shared, err := impute.NewRunner(runner.Backend(), impute.RunnerConfig{Batch: 1, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	got := imputetest.PredictOne(t, imputetest.BusyModel(t, shared, imputetest.TinyDesign()), in)
	for i := range got.Mean {
		if math.Abs(float64(got.Mean[i]-want.Mean[i])) > 1e-4 {
			t.Fatalf("cell %d is %v with weights as an input, %v as constants", i, got.Mean[i], want.Mean[i])
		}
	}
}

func TestBrokenInputsAreErrors(t *testing.T) {
	m := imputetest.BusyModel(t, imputetest.NewRunner(t, 1), imputetest.TinyDesign())
	for name, edit := range map[string]func(*impute.Inputs){
		"no size":             func(in *impute.Inputs) { in.Height = 0 },
		"short mask":          func(in *impute.Inputs) { in.Visible = in.Visible[1:] },
		"short values":        func(in *impute.Inputs) { in.Values = in.Values[1:] },
		"NaN that is visible": func(in *impute.Inputs) { in.Values[slices.Index(in.Visible, true)] = float32(math.NaN()) },
		"half a composite":    func(in *impute.Inputs) { in.Last.Freshness = nil },
		"half a background":   func(in *impute.Inputs) { in.BackgroundSigma = nil },
	} {
		in := imputetest.SomeInputs(t, 16, 3)
		in.Values = slices.Clone(in.Values)
		edit(&in)
		if _, err := m.Predict(context.Background(), []impute.Inputs{in}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
