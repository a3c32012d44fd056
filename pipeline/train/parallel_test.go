package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

func TestTheMachineryOfSeveralDevicesChangesNothingOnOne(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	var weights [2][]float32
	for devices := range weights {
		cfg := DefaultConfig()
		cfg.Devices = devices
		step, err := NewStep(l.engine, l.network.Layout(), cfg, l.loss)
		if err != nil {
			t.Fatal(err)
		}
		defer step.Close()
		if err := step.Start(l.network.Layout().Init(1)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := step.Run(l.batch...); err != nil {
				t.Fatal(err)
			}
		}
		state, err := step.State()
		if err != nil {
			t.Fatal(err)
		}
		weights[devices] = state.Weights
	}
	if !slices.Equal(weights[0], weights[1]) {
		t.Error("one device gives other weights with the machinery than without")
	}
}

func TestMoreDevicesThanThereAreIsAnError(t *testing.T) {
	l := newProblem(t, nn.BackboneUNet)
	cfg := DefaultConfig()
	cfg.Devices = 2
	step, err := NewStep(l.engine, l.network.Layout(), cfg, l.loss)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	if err := step.Compile(l.batch...); err == nil || !strings.Contains(err.Error(), "2 devices") {
		t.Errorf("Compile gave %v, want an error that tells the number of devices", err)
	}
}

func TestEveryDeviceGetsItsOwnShareOfTheBatch(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Devices = 2
	weight := func(v float32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions([]float32{v}, 1) }
	s := &Step{cfg: cfg, done: 7, state: []*tensors.Tensor{weight(10), weight(20)}}
	batch := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3, 4}, 4)

	inputs, temporary, err := s.inputs([]*tensors.Tensor{batch})
	if err != nil {
		t.Fatal(err)
	}
	defer release(temporary)
	r := newRates(cfg, 7)
	rates := []float32{float32(r.learning), float32(r.epsilon), float32(r.ema)}
	want := [][]float32{rates, {10}, {1, 2}, rates, {20}, {3, 4}}
	if len(inputs) != len(want) {
		t.Fatalf("%d inputs, want %d", len(inputs), len(want))
	}
	for i, in := range inputs {
		if got := tensors.MustCopyFlatData[float32](in); !slices.Equal(got, want[i]) {
			t.Errorf("input %d is %v, want %v", i, got, want[i])
		}
	}
	metrics, state := s.outputs([]*tensors.Tensor{inputs[0], inputs[1], inputs[3], inputs[4]})
	if !slices.Equal(metrics, []*tensors.Tensor{inputs[0], inputs[3]}) || !slices.Equal(state, []*tensors.Tensor{inputs[1], inputs[4]}) {
		t.Error("outputs were not parted into what is told and the state")
	}
	if _, err := s.share([]*tensors.Tensor{weight(1)}); err == nil {
		t.Error("a batch of one was shared by two devices")
	}
}
