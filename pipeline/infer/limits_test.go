package infer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

func (f fakeNetworks) flow(int, conditioning, func()) (impute.Flow, bool) {
	return impute.Flow{}, false
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

// paced returns a model whose networks take a second a call, and what fills by it.
func paced(t *testing.T, s Scene) (*Model, func(cfg Config) Sampling) {
	t.Helper()
	m, fill, _ := pacedAndTimed(t, s)
	return m, fill
}

// pacedAndTimed returns the number of calls, too.
func pacedAndTimed(t *testing.T, s Scene) (m *Model, fill func(cfg Config) Sampling, took func() int) {
	t.Helper()
	var calls atomic.Int64
	m = fakeModel(fakeNetworks{
		predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
			calls.Add(1)
			return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
		},
		cleaned: func(_ float32, _ conditioning, x []float32) []float32 {
			calls.Add(1)
			return x
		},
	}, s)
	return m, func(cfg Config) Sampling {
		t.Helper()
		f, err := New(cfg, m)
		if err != nil {
			t.Fatal(err)
		}
		f.now = func() time.Time { return day0.Add(time.Duration(calls.Load()) * time.Second) }
		out, err := f.Fill(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Sampling
	}, func() int { return int(calls.Load()) }
}

// On a field of a size that was never seen a few steps are drawn first, in place
// of a guess: standard takes 40 s here and full 16 x 39.
func TestADeadlineIsMeasuredOnTheFieldItself(t *testing.T) {
	s := basin(40, 48, false)
	for deadline, want := range map[time.Duration]Tier{2 * time.Second: Fast, time.Minute: Standard, 10 * time.Minute: Standard, time.Hour: Full} {
		m, fill := paced(t, s)
		cfg := modelConfig("")
		cfg.Network.Deadline = deadline
		if got := fill(cfg).Tier; got != want {
			t.Errorf("deadline %v: tier %s, want %s", deadline, got, want)
		}
		cells := len(s.Sea)
		perCall := time.Duration(float64(m.Speed(cells).Step) * float64(cells) / 1e6)
		if perCall < 990*time.Millisecond || perCall > 1010*time.Millisecond {
			t.Errorf("deadline %v: a step was measured to take %v, and takes 1s", deadline, perCall)
		}
	}
}

// What was measured before, with fields of that size, counts, and that of other
// sizes says nothing. A machine that was busy then is found out with the first field.
func TestSpeedsAreRememberedByTheSizeOfTheField(t *testing.T) {
	s := basin(40, 48, false)
	cells := len(s.Sea)
	cfg := modelConfig("")
	cfg.Network.Deadline = time.Hour
	slow, quick := Speed{Step: perMillion(time.Hour, cells)}, Speed{Step: perMillion(time.Second, cells)}
	const calls = 1 + 16*39 // of the tier full, without a trial
	for _, tt := range []struct {
		known map[int]Speed
		trial bool
	}{{map[int]Speed{cells: quick}, false}, {map[int]Speed{cells + 1: quick}, true}, {map[int]Speed{cells: slow}, true}} {
		m, fill, took := pacedAndTimed(t, s)
		kept := map[int]Speed{}
		m.Remember(tt.known, func(cells int, s Speed) { kept[cells] = s })
		if got := fill(cfg).Tier; got != Full {
			t.Errorf("with the speeds %v: tier %s", tt.known, got)
		}
		if got := took(); (got > calls) != tt.trial {
			t.Errorf("with the speeds %v: %d calls, and %d are those of the tier", tt.known, got, calls)
		}
		if kept[cells].Look == 0 || kept[cells] != m.Speed(cells) {
			t.Errorf("kept %+v, the speed is %+v", kept[cells], m.Speed(cells))
		}
	}
}

// A trial takes as long as the field: while it changes nothing it is made ever less
// often, and when the machine is faster than it was the next one finds out.
func TestASpeedIsTriedLessOftenWhileItChangesNothing(t *testing.T) {
	s := basin(40, 48, false)
	m, fill, took := pacedAndTimed(t, s)
	cfg := modelConfig("")
	cfg.Network.Deadline = 30 * time.Second // standard takes 41 s
	var tries []int
	field := func(i int) Tier {
		before := took()
		got := fill(cfg).Tier
		if took()-before > 1 {
			tries = append(tries, i)
		}
		return got
	}
	const fields = 40
	for i := range fields {
		if got := field(i); got != Fast {
			t.Fatalf("field %d: tier %s", i, got)
		}
	}
	if want := []int{0, 2, 5, 10, 19, 36}; !slices.Equal(tries, want) {
		t.Errorf("the speed was tried with the fields %v, want %v", tries, want)
	}
	cells := len(s.Sea)
	m.speeds[cells] = Speed{Step: perMillion(time.Hour, cells)}
	cfg.Network.Deadline = time.Hour
	first := -1
	for i := range 2 * seldom {
		if field(fields+i) == Full && first < 0 {
			first = i
		}
	}
	if first < 0 || first > seldom {
		t.Errorf("a machine that is no longer busy is found out with field %d", first)
	}
}

func TestWhatTakesLongerThanAFieldMayWaitFollows(t *testing.T) {
	s := basin(40, 48, false)
	_, fill := paced(t, s)
	cfg := modelConfig("")
	cfg.Network.Deadline = time.Hour
	for prompt, want := range map[time.Duration]Sampling{
		time.Minute:      {Tier: Fast, Follows: Full},
		20 * time.Minute: {Tier: Full, Members: 16, Sampler: "recursive jump, 3 stages, 39 steps", Centre: impute.OneStep},
	} {
		cfg.Network.Prompt = prompt
		if got := fill(cfg); got != want {
			t.Errorf("a wait of %v: %+v, want %+v", prompt, got, want)
		}
	}
	cfg.Network.Prompt, cfg.Network.Tier = time.Minute, Full
	if got := fill(cfg); got.Tier != Full || got.Follows != "" {
		t.Errorf("a tier that was set: %+v", got)
	}
}

func TestTheDeadlineIsAShareOfTheRhythm(t *testing.T) {
	for _, tt := range []struct {
		given Network
		step  time.Duration
		want  time.Duration
	}{
		{Network{}, 24 * time.Hour, time.Hour},
		{Network{}, time.Hour, 150 * time.Second},
		{Network{Deadline: time.Second}, 24 * time.Hour, time.Second},
		{Network{Tier: Fast}, 24 * time.Hour, 0},
	} {
		if got := tt.given.Rhythm(tt.step).Deadline; got != tt.want {
			t.Errorf("%+v, a step of %v: deadline %v, want %v", tt.given, tt.step, got, tt.want)
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
