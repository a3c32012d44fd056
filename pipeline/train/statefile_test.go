package train

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/nn"
)

func sampleState() *State {
	nan := math.Float32frombits(0x7fc00123) // every bit must survive, of a NaN too
	return &State{
		Step: 12, Weights: []float32{1, 2, 3, 4, 5}, EMA: []float32{nan, 0, 0, 0, 1e-45},
		Mean: make([]float32, 5), Variance: []float32{9, 8, 7, 6, 5},
	}
}

func encoded(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := sampleState().encode(&b, &parabola); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCheckpointComesBackBitForBit(t *testing.T) {
	got, err := decodeState(bytes.NewReader(encoded(t)), &parabola)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleState()
	if got.Step != want.Step {
		t.Errorf("step is %d, want %d", got.Step, want.Step)
	}
	g, w := got.vectors(), want.vectors()
	for k := range w {
		for i := range *w[k] {
			if a, b := math.Float32bits((*g[k])[i]), math.Float32bits((*w[k])[i]); a != b {
				t.Errorf("vector %d element %d is %x, want %x", k, i, a, b)
			}
		}
	}
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	whole := encoded(t)
	for n := range len(whole) {
		if _, err := decodeState(bytes.NewReader(whole[:n]), &parabola); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(whole))
		}
		turned := slices.Clone(whole)
		turned[n] ^= 0x10
		if _, err := decodeState(bytes.NewReader(turned), &parabola); err == nil {
			t.Fatalf("a bit of byte %d was turned unnoticed", n)
		}
	}
}

func TestCheckpointOfAnotherNetworkNamesTheFirstDifference(t *testing.T) {
	other := nn.Layout{Size: 5, Params: []nn.Param{{Name: "a", Dims: []int{3}}, {Name: "b", Dims: []int{2, 1}, Offset: 3}}}
	_, err := decodeState(bytes.NewReader(encoded(t)), &other)
	if want := "weight b has shape [1 2], want [2 1]"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	tests := []struct {
		edit func(*Config)
		want string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.LearningRate = 0 }, "learning_rate"},
		{func(c *Config) { c.Schedule = "linear" }, "schedule"},
		{func(c *Config) { c.Steps = 0 }, "steps"},
		{func(c *Config) { c.FinalRate = 2 }, "final_rate"},
		{func(c *Config) { c.WarmupSteps = -1 }, "warmup_steps"},
		{func(c *Config) { c.ClipNorm = -1 }, "clip_norm"},
		{func(c *Config) { c.EMADecay = 1 }, "ema_decay"},
	}
	for _, tt := range tests {
		cfg := DefaultConfig()
		tt.edit(&cfg)
		err := cfg.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Validate() = %v, want %q", err, tt.want)
		}
	}
}
