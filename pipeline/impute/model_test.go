package impute

import (
	"context"
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
)

// busyModel has weights that make every layer speak: the last layer of a fresh
// network is zero.
func busyModel(t testing.TB, shop *Workshop, d Design) *Model {
	t.Helper()
	network, err := nn.New(d.network())
	if err != nil {
		t.Fatal(err)
	}
	cfg := tinyConfig(16)
	cfg.Design = d
	weights := network.Layout().Init(7)
	for i := range weights {
		weights[i] += 0.05 * float32(math.Sin(float64(i)))
	}
	m, err := NewModel(shop, cfg, weights)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tinyDesign() Design { return tinyConfig(16).Design }

// someInputs returns the inputs of one day of a sea with everything around it.
func someInputs(t testing.TB, side, day int) Inputs {
	t.Helper()
	sea := newGaussianSea(t, seaConfig{side: side, days: 6, length: 3, memory: 0.9, seed: 3})
	data, err := sea.series.Whole()
	if err != nil {
		t.Fatal(err)
	}
	around := Surroundings{Days: data, Past: plainBackground{0.2, 0.5}, Delayed: plainBackground{0.3, 0.4}}
	r := samples.Ref{Day: day, Window: samples.Square(0, 0, side)}
	return around.Inputs(r, data.Cut(r).Observed(), Delayed)
}

func predictOne(t testing.TB, m *Model, in Inputs) Prediction {
	t.Helper()
	p, err := m.Predict(context.Background(), []Inputs{in})
	if err != nil {
		t.Fatal(err)
	}
	return p[0]
}

func equalPredictions(a, b Prediction) bool {
	return slices.Equal(a.Mean, b.Mean) && slices.Equal(a.Sigma, b.Sigma)
}

func TestNothingUnderTheMaskLeaks(t *testing.T) {
	shop := newShop(t, 1)
	m := busyModel(t, shop, tinyDesign())
	in := someInputs(t, 16, 3)
	want := predictOne(t, m, in)
	for _, junk := range []float32{1e6, float32(math.NaN()), float32(math.Inf(1))} {
		dirty := in
		dirty.Values = slices.Clone(in.Values)
		for i, visible := range in.Visible {
			if !visible {
				dirty.Values[i] = junk
			}
		}
		if !equalPredictions(predictOne(t, m, dirty), want) {
			t.Errorf("%v under the mask changes the prediction", junk)
		}
	}
	shown := in
	shown.Values = slices.Clone(in.Values)
	shown.Values[slices.Index(in.Visible, true)] += 1
	if equalPredictions(predictOne(t, m, shown), want) {
		t.Error("a visible value does not change the prediction: the network sees nothing")
	}
}

func TestVisibleCellsComeOutBitForBit(t *testing.T) {
	m := busyModel(t, newShop(t, 1), tinyDesign())
	in := someInputs(t, 16, 2)
	p := predictOne(t, m, in)
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
	m := busyModel(t, newShop(t, 4), tinyDesign())
	var all []Inputs
	for day := range 4 {
		all = append(all, someInputs(t, 16, day))
	}
	together, err := m.Predict(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range all {
		if !equalPredictions(predictOne(t, m, in), together[i]) {
			t.Errorf("item %d differs when it is alone", i)
		}
	}
}

func TestAWindowOfAnySizeIsFilled(t *testing.T) {
	m := busyModel(t, newShop(t, 1), tinyDesign())
	in := someInputs(t, 16, 3)
	small := in
	small.Height, small.Width = 13, 16
	cut := func(x []float32) []float32 { return x[:13*16] }
	small.Values, small.Visible, small.Sea = cut(in.Values), in.Visible[:13*16], in.Sea[:13*16]
	small.Last = samples.Composite{Value: cut(in.Last.Value), Freshness: cut(in.Last.Freshness)}
	small.Next = samples.Composite{Value: cut(in.Next.Value), Freshness: cut(in.Next.Freshness)}
	small.Background, small.BackgroundSigma = cut(in.Background), cut(in.BackgroundSigma)

	// What is beyond the window counts as land without anything on it.
	land := in
	land.Sea, land.Visible = slices.Clone(in.Sea), slices.Clone(in.Visible)
	land.Last.Freshness, land.Next.Freshness = slices.Clone(in.Last.Freshness), slices.Clone(in.Next.Freshness)
	for i := 13 * 16; i < 16*16; i++ {
		land.Sea[i], land.Visible[i], land.Last.Freshness[i], land.Next.Freshness[i] = false, false, 0, 0
	}
	got, want := predictOne(t, m, small), predictOne(t, m, land)
	if !slices.Equal(got.Mean, want.Mean[:13*16]) || !slices.Equal(got.Sigma, want.Sigma[:13*16]) {
		t.Error("a window of 13 rows is not filled as the upper 13 of 16")
	}
}

func TestAbsentNeighboursChangeNoShapes(t *testing.T) {
	m := busyModel(t, newShop(t, 1), tinyDesign())
	in := someInputs(t, 16, 3)
	full := predictOne(t, m, in)
	alone := in
	alone.Last, alone.Next, alone.Background, alone.BackgroundSigma = samples.Composite{}, samples.Composite{}, nil, nil
	p := predictOne(t, m, alone)
	if len(p.Mean) != len(full.Mean) || len(p.Sigma) != len(full.Sigma) {
		t.Errorf("%d cells without neighbours, %d with them", len(p.Mean), len(full.Mean))
	}
	if equalPredictions(p, full) {
		t.Error("the neighbours do not matter: the network does not see them")
	}
}

func TestAConstantFieldOnItsBackgroundIsFilledWithTheConstant(t *testing.T) {
	network, err := nn.New(tinyDesign().network())
	if err != nil {
		t.Fatal(err)
	}
	cfg := tinyConfig(16)
	m, err := NewModel(newShop(t, 1), cfg, network.Layout().Init(1)) // its last layer is zero: no departure
	if err != nil {
		t.Fatal(err)
	}
	in := someInputs(t, 16, 3)
	for i := range in.Values {
		in.Values[i], in.Background[i] = 0.7, 0.7
	}
	for i, v := range predictOne(t, m, in).Mean {
		if v != 0.7 {
			t.Fatalf("cell %d is %v, want the constant 0.7", i, v)
		}
	}
}

func TestASavedModelPredictsTheSame(t *testing.T) {
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		shop := newShop(t, 1)
		d := tinyDesign()
		d.Backbone, d.Extras.Season = backbone, true
		m := busyModel(t, shop, d)
		data, err := m.Save(16)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(data, shop)
		if err != nil {
			t.Fatal(err)
		}
		in := someInputs(t, 16, 3)
		if !equalPredictions(predictOne(t, again, in), predictOne(t, m, in)) {
			t.Errorf("%s: the file predicts something else", backbone)
		}
		if again.Fingerprint() != m.Fingerprint() || again.Design() != m.Design() {
			t.Errorf("%s: the file is %v %s, want %v %s", backbone, again.Design(), again.Fingerprint(), m.Design(), m.Fingerprint())
		}
	}
}

func TestSharedProgramsPredictTheSame(t *testing.T) {
	shop := newShop(t, 1)
	in := someInputs(t, 16, 3)
	want := predictOne(t, busyModel(t, shop, tinyDesign()), in)
	shop.cfg.Shared = true
	got := predictOne(t, busyModel(t, shop, tinyDesign()), in)
	for i := range got.Mean {
		if math.Abs(float64(got.Mean[i]-want.Mean[i])) > 1e-4 {
			t.Fatalf("cell %d is %v with weights as an input, %v as constants", i, got.Mean[i], want.Mean[i])
		}
	}
}

func TestBrokenInputsAreErrors(t *testing.T) {
	m := busyModel(t, newShop(t, 1), tinyDesign())
	for name, edit := range map[string]func(*Inputs){
		"no size":             func(in *Inputs) { in.Height = 0 },
		"short mask":          func(in *Inputs) { in.Visible = in.Visible[1:] },
		"short values":        func(in *Inputs) { in.Values = in.Values[1:] },
		"NaN that is visible": func(in *Inputs) { in.Values[slices.Index(in.Visible, true)] = float32(math.NaN()) },
		"half a composite":    func(in *Inputs) { in.Last.Freshness = nil },
		"half a background":   func(in *Inputs) { in.BackgroundSigma = nil },
	} {
		in := someInputs(t, 16, 3)
		in.Values = slices.Clone(in.Values)
		edit(&in)
		if _, err := m.Predict(context.Background(), []Inputs{in}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
