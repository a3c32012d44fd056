package infer

import (
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// A model sees the covariates that it was made for, by name, time and units. One that is
// not there, or is another, is missing, and the field is filled as without any.
func TestAModelSeesItsCovariatesAndNoOthers(t *testing.T) {
	s := basin(40, 48, false)
	at, n := s.Frames[0].Time, s.Frames[0].Grid.Len()
	v, err := Untrained(everything().With([]string{"sst", "wind"}, nil), 7)
	if err != nil {
		t.Fatal(err)
	}
	v.Scaling = scalingFor(s)
	// The constants of a version are in the order in which they were learned, and that of
	// the wind says that it does not pay.
	v.Covariates = []samples.Channel{
		{Covariate: samples.Covariate{Name: "wind"}, Std: 1, Off: true},
		{Covariate: samples.Covariate{Name: "sst", Units: "kelvin"}, Mean: slices.Repeat([]float32{288}, n), Std: 2},
	}
	m, err := Load(v, openDevice(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if got := m.Covariates(s.Frames[0].Grid); len(got) != 1 || got[0].Name != "sst" {
		t.Errorf("it wants %+v", got)
	}
	if other := basin(24, 32, false).Frames[0].Grid; m.Covariates(other) != nil || !slices.Equal(m.Elsewhere(other), []string{"sst"}) {
		t.Errorf("on another grid it wants %+v", m.Covariates(other))
	}
	warm := make([]float32, n)
	for i := range warm {
		warm[i] = 288 + float32(i%48)/8
	}
	hole := slices.Clone(warm)
	for i := range hole {
		if i%48 < 24 {
			hole[i] = field.NaN()
		}
	}
	fill := func(given ...Covariate) []float32 {
		scene := basin(40, 48, false)
		scene.Covariates = given
		return fillWith(t, m, modelConfig(Fast), scene).Value
	}
	without := fill()
	for _, tt := range []struct {
		name  string
		given Covariate
		same  bool
	}{
		{"its own", Covariate{at, "sst", "kelvin", warm}, false},
		{"its own with a hole", Covariate{at, "sst", "kelvin", hole}, false},
		{"of another day", Covariate{at.AddDate(0, 0, 1), "sst", "kelvin", warm}, true},
		{"in other units", Covariate{at, "sst", "degree_Celsius", warm}, true},
		{"another variable", Covariate{at, "depth", "kelvin", warm}, true},
		{"one that does not pay", Covariate{at, "wind", "", warm}, true},
		{"of another grid", Covariate{at, "sst", "kelvin", warm[:n/2]}, true},
	} {
		if got := slices.EqualFunc(fill(tt.given), without, same); got != tt.same {
			t.Errorf("%s: the same as without %v, want %v", tt.name, got, tt.same)
		}
	}
	// What all of the sea shares says nothing.
	if warmer := slices.Clone(warm); !slices.EqualFunc(fill(Covariate{at, "sst", "kelvin", shifted(warmer, 8)}), fill(Covariate{at, "sst", "kelvin", warm}), same) {
		t.Error("a warmer day is filled otherwise")
	}
}

func shifted(values []float32, by float32) []float32 {
	for i := range values {
		values[i] += by
	}
	return values
}
