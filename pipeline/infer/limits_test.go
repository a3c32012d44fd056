package infer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
)

// fakeNetworks are networks made of functions.
type fakeNetworks struct {
	predicts func(batch int, in impute.Inputs) (impute.Prediction, error)
	cleaned  func(t float32, s conditioning, x []float32) []float32
}

func (f fakeNetworks) predict(_ context.Context, batch int, windows []impute.Inputs) ([]impute.Prediction, error) {
	out := make([]impute.Prediction, len(windows))
	for i, in := range windows {
		var err error
		if out[i], err = f.predicts(batch, in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f fakeNetworks) scene(in impute.Inputs, _ impute.Prediction) (conditioning, error) {
	return conditioning{window: in}, nil
}

func (f fakeNetworks) clean(_ context.Context, _ int, s conditioning, t float32, x [][]float32) ([][]float32, error) {
	out := make([][]float32, len(x))
	for i := range x {
		out[i] = f.cleaned(t, s, x[i])
	}
	return out, nil
}

func fakeModel(n fakeNetworks, s Scene) *Model {
	return &Model{version: Version{Name: "fake", Scaling: scalingFor(s)}, networks: n, members: n.cleaned != nil}
}

func constant(v float32, n int) []float32 { return slices.Repeat([]float32{v}, n) }

func TestOutOfMemoryHalvesBatchThenWindowAndIsRemembered(t *testing.T) {
	s := basin(300, 300, false)
	type call struct{ batch, cells int }
	var mu sync.Mutex // batches run concurrently
	var calls []call
	m := fakeModel(fakeNetworks{predicts: func(batch int, in impute.Inputs) (impute.Prediction, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(calls) == 0 || calls[len(calls)-1] != (call{batch, in.Width}) {
			calls = append(calls, call{batch, in.Width})
		}
		if batch*in.Cells() > 100*100 {
			return impute.Prediction{}, engine.ErrOutOfMemory
		}
		return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
	}}, s)
	cfg := modelConfig(Fast)
	cfg.Network.WindowCells, cfg.Network.Batch = 160, 4
	for range 2 {
		a := fillWith(t, m, cfg, s)
		for i, flags := range a.Flags {
			if s.Sea[i] && flags&NotReconstructible != 0 {
				t.Fatalf("cell %d was not filled", i)
			}
		}
	}
	want := []call{{4, 136}, {2, 136}, {1, 136}, {1, 80}}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v and no more than that the second time", calls, want)
	}
	m.networks = fakeNetworks{predicts: func(int, impute.Inputs) (impute.Prediction, error) {
		return impute.Prediction{}, engine.ErrOutOfMemory
	}}
	f, err := New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fill(t.Context(), s, nil); !errors.Is(err, engine.ErrOutOfMemory) {
		t.Errorf("error is %v, want out of memory where nothing fits", err)
	}
}

func TestTheDeadlinePicksTheTier(t *testing.T) {
	s := Speed{Analysis: time.Second, Look: time.Second, Step: time.Second}
	const cells = 1_000_000
	for _, tt := range []struct {
		deadline time.Duration
		want     Tier
	}{
		{time.Second, Fast},      // too short for any tier: the least work
		{41 * time.Second, Fast}, // standard takes 2 s and 4 x 10 steps
		{42 * time.Second, Standard},
		{600 * time.Second, Standard},
		{time.Duration(2+16*Full.Recipe(0).ODE.Calls()) * time.Second, Full},
	} {
		if got := PickTier(tt.deadline, s, cells, 0); got != tt.want {
			t.Errorf("%v: tier %s, want %s", tt.deadline, got, tt.want)
		}
	}
	if got := PickTier(600*time.Second, s, cells/10, 0); got != Full {
		t.Errorf("a tenth of the cells: tier %s, want full", got)
	}
}

func TestADeadlineIsMeasuredOnTheFieldItself(t *testing.T) {
	s := basin(40, 48, false)
	clock := day0
	m := fakeModel(fakeNetworks{
		predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
			clock = clock.Add(time.Second)
			return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
		},
		cleaned: func(_ float32, _ conditioning, x []float32) []float32 { return x },
	}, s)
	for deadline, want := range map[time.Duration]Tier{2 * time.Second: Fast, time.Minute: Standard, time.Hour: Full} {
		m.speed = Speed{}
		cfg := modelConfig("")
		cfg.Network.Deadline = deadline
		f, err := New(cfg, m)
		if err != nil {
			t.Fatal(err)
		}
		f.now = func() time.Time { return clock }
		out, err := f.Fill(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Tier != want {
			t.Errorf("deadline %v: tier %s, want %s", deadline, out[0].Tier, want)
		}
	}
}

func TestAFieldWithoutGapsRunsNoNetwork(t *testing.T) {
	s := basin(40, 48, false)
	for i := range s.Frames[0].Values {
		s.Frames[0].Values[i] = nan
		if s.Sea[i] {
			s.Frames[0].Values[i] = 1
		}
	}
	m := fakeModel(fakeNetworks{
		predicts: func(int, impute.Inputs) (impute.Prediction, error) { return impute.Prediction{}, errors.New("asked") },
		cleaned:  func(float32, conditioning, []float32) []float32 { return nil },
	}, s)
	a := fillWith(t, m, modelConfig(Full), s)
	if a.Took.Windows != 0 {
		t.Errorf("%d windows went through the network", a.Took.Windows)
	}
	for i, flags := range a.Flags {
		if s.Sea[i] && flags != 0 || !s.Sea[i] && flags != Land {
			t.Fatalf("cell %d has flags %b", i, flags)
		}
	}
}

func TestACancelledFillEndsWithoutAnAnswer(t *testing.T) {
	s := basin(40, 48, false)
	ctx, cancel := context.WithCancel(t.Context())
	m := fakeModel(fakeNetworks{
		predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
			return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
		},
		cleaned: func(_ float32, _ conditioning, x []float32) []float32 {
			cancel()
			return x
		},
	}, s)
	f, err := New(modelConfig(Full), m)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := f.Fill(ctx, s, nil); !errors.Is(err, context.Canceled) || out != nil {
		t.Errorf("Fill returned %d analyses and %v, want none and context.Canceled", len(out), err)
	}
}
