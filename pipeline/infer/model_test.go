package infer

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// everything is a design with all inputs and outputs of a served network.
func everything() impute.Design {
	return impute.Design{
		Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true,
		Extras: impute.Extras{Last: true, Next: true, Analysis: true, Season: true},
	}
}

func openDevice(t testing.TB, threads int) Device {
	t.Helper()
	return Device{Backend: enginetest.OpenThreads(t, threads)}
}

// untrained is a model of random weights for the grid of a scene.
func untrained(t testing.TB, d impute.Design, s Scene, device Device) *Model {
	t.Helper()
	v, err := Untrained(d, 7)
	if err != nil {
		t.Fatal(err)
	}
	v.Scaling = scalingFor(s)
	m, err := Load(v, device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func scalingFor(s Scene) *Scaling {
	grid := s.Frames[0].Grid
	return &Scaling{Grid: grid, Transform: s.Transform, Scaling: samples.Scaling{Mean: make([]float32, grid.Len()), Std: 0.5}}
}

// basin is a sea with an island over three days, observed where the clouds
// leave it free.
func basin(height, width int, periodic bool) Scene {
	grid := field.Grid{Lat: make([]float64, height), Lon: make([]float64, width)}
	for i := range grid.Lat {
		grid.Lat[i] = 40 + 0.05*float64(i)
	}
	step := 0.06
	if periodic {
		step = 360 / float64(width)
	}
	for j := range grid.Lon {
		grid.Lon[j] = -180 + step*float64(j)
	}
	s := Scene{Sea: make(field.Mask, grid.Len()), Transform: field.Transform{Log10: true, Floor: 1e-4}}
	for i := range s.Sea {
		row, col := i/width, i%width
		island := row > height/3 && row < height/2 && col > width/4 && col < width/3
		s.Sea[i] = !island
	}
	day := func(n int) field.Field {
		f := field.Field{Grid: grid, Time: day0.AddDate(0, 0, n), Values: make([]float32, grid.Len())}
		for i := range f.Values {
			y, x := float64(i/width), float64(i%width)/float64(width)*2*math.Pi
			cloud := math.Sin(y/9+float64(n)) + math.Sin(3*x+2*float64(n)) + math.Sin(y/4-5*x)
			f.Values[i] = float32(math.Pow(10, 0.4*math.Sin(y/7)+0.4*math.Cos(2*x+0.1*float64(n))-0.5))
			if cloud > -0.2 || !s.Sea[i] {
				f.Values[i] = field.NaN()
			}
		}
		return f
	}
	s.Frames, s.History = []field.Field{day(0)}, []field.Field{day(-1), day(-3)}
	return s
}

func modelConfig(tier Tier) Config {
	cfg := DefaultConfig()
	cfg.Method, cfg.PastDays = MethodModel, samples.LastDays
	cfg.Network = Network{Tier: tier, Seed: 3}
	return cfg
}

func fillWith(t testing.TB, m *Model, cfg Config, s Scene) Analysis {
	t.Helper()
	f, err := New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Fill(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func sameAnalysis(a, b Analysis) bool {
	return sameBits(a.Value, b.Value) && sameBits(a.Sigma, b.Sigma) && sameBits(a.Lower, b.Lower) && slices.Equal(a.Flags, b.Flags)
}

func TestANetworkThatPredictsNoDepartureIsOptimalInterpolation(t *testing.T) {
	s := basin(70, 90, false)
	v, err := Untrained(everything(), 7)
	if err != nil {
		t.Fatal(err)
	}
	file, err := netfile.Decode(v.Imputer)
	if err != nil {
		t.Fatal(err)
	}
	clear(file.Weights) // a departure of zero everywhere
	if v.Imputer, err = netfile.Encode(file); err != nil {
		t.Fatal(err)
	}
	v.Members, v.Scaling = nil, scalingFor(s)
	m, err := Load(v, openDevice(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := fillWith(t, m, modelConfig(Fast), s)
	cfg, scales := modelConfig(Fast), classical.DefaultOI(s.Frames[0].Grid)
	cfg.Method, cfg.Network = "oi", Network{}
	cfg.OI = OI{LengthKM: scales.LengthKM, Days: scales.Days, Nugget: scales.Nugget}
	want := fillWith(t, nil, cfg, s)
	for i, v := range want.Value {
		if finite(v) && math.Abs(math.Log10(float64(got.Value[i]/v))) > 1e-4 {
			t.Fatalf("cell %d is %g, and %g without a network", i, got.Value[i], v)
		}
	}
}

func TestModelKeepsObservationsAndLeavesLandAlone(t *testing.T) {
	s := basin(70, 90, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	for _, tier := range Tiers() {
		cfg := modelConfig(tier)
		cfg.Network.Members = 2
		a := fillWith(t, m, cfg, s)
		if a.Sampling.Tier != tier {
			t.Errorf("tier is %q, want %q", a.Sampling.Tier, tier)
		}
		for i, v := range s.Frames[0].Values {
			switch {
			case v == v: // observed
				if math.Float32bits(a.Value[i]) != math.Float32bits(v) || a.Flags[i] != 0 {
					t.Fatalf("%s: observed cell %d is %g with flags %b, want %g", tier, i, a.Value[i], a.Flags[i], v)
				}
			case !s.Sea[i]:
				if a.Flags[i] != Land || finite(a.Value[i]) {
					t.Fatalf("%s: land cell %d is %g with flags %b", tier, i, a.Value[i], a.Flags[i])
				}
			case a.Flags[i] != Interpolated || !finite(a.Value[i]) || !(a.Sigma[i] > 0) || !(a.Lower[i] < a.Value[i] && a.Value[i] < a.Upper[i]):
				t.Fatalf("%s: gap %d is %g in %g..%g, sigma %g, flags %b", tier, i, a.Value[i], a.Lower[i], a.Upper[i], a.Sigma[i], a.Flags[i])
			}
		}
	}
}

// Neither values under the mask nor values on land may change the product.
func TestNothingUnderTheMaskLeaksIntoTheProduct(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	want := fillWith(t, m, modelConfig(Fast), s)
	for _, poison := range []float32{1e6, float32(math.Inf(1))} {
		p := s
		p.Frames, p.History = slices.Clone(s.Frames), slices.Clone(s.History)
		for n, f := range p.History {
			p.History[n].Values = slices.Clone(f.Values)
			for i, sea := range s.Sea {
				if !sea {
					p.History[n].Values[i] = poison
				}
			}
		}
		later := s.History[0]
		later.Time, later.Values = day0.AddDate(0, 0, 1), slices.Repeat([]float32{poison}, len(s.Sea))
		p.History = append(p.History, later) // tomorrow, which near-real-time must not use
		if got := fillWith(t, m, modelConfig(Fast), p); !sameAnalysis(got, want) {
			t.Errorf("%g on land or tomorrow changes the analysis", poison)
		}
	}
}

func TestBatchAndThreadsDoNotChangeABit(t *testing.T) {
	s := basin(72, 100, false)
	cfg := modelConfig(Standard)
	cfg.Network.WindowCells, cfg.Network.OverlapCells, cfg.Network.Members = 64, 16, 3
	one := untrained(t, everything(), s, openDevice(t, 1))
	two := untrained(t, everything(), s, openDevice(t, 2))
	cfg.Details = true
	want := fillWith(t, one, cfg, s)
	for _, tt := range []struct {
		name  string
		model *Model
		batch int
	}{{"again", one, 1}, {"batch of two", one, 2}, {"batch of four on two threads", two, 4}} {
		cfg.Network.Batch = tt.batch
		got := fillWith(t, tt.model, cfg, s)
		if !sameAnalysis(got, want) {
			t.Errorf("%s: the analysis differs", tt.name)
		}
		for k, member := range got.Members {
			if !sameBits(member, want.Members[k]) {
				t.Errorf("%s: member %d differs", tt.name, k)
			}
		}
	}
	cfg.Network.Seed++
	if other := fillWith(t, one, cfg, s); sameBits(other.Members[0], want.Members[0]) {
		t.Error("another seed gives the same member")
	}
}

// The sampler on the whole grid must draw the same members as impute.Members,
// with which they were judged.
func TestOneWindowDrawsWhatMembersDraw(t *testing.T) {
	device := openDevice(t, 1)
	for name, edit := range map[string]func(*impute.Design){
		"all extras":    func(*impute.Design) {},
		"no extras":     func(d *impute.Design) { d.Extras, d.Departure = impute.Extras{}, false },
		"a background":  func(d *impute.Design) { d.Extras = impute.Extras{Background: true} },
		"no departures": func(d *impute.Design) { d.Departure = false },
	} {
		t.Run(name, func(t *testing.T) {
			d := everything()
			edit(&d)
			s := basin(29, 43, false) // no multiple of the network's block size
			ode := impute.ODE{Steps: 4, Jumps: 1, SecondOrder: true}
			if name == "all extras" { // impute.Members draws the noise of jumps in another order in a padded window
				s, ode.Jumps = basin(32, 48, false), 2
			}
			m := untrained(t, d, s, device)
			series, targets := assemble(s)
			sub, err := m.prepare(t.Context(), series, targets[0], fillOptions{progress: func(int, int) {}})
			if err != nil {
				t.Fatal(err)
			}
			m.busy = &busyTime{now: time.Now}
			l := newLayout(sub, size{window: 512, batch: 2}, 0)
			predicted, err := m.predict(t.Context(), sub, l, func(int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			stream := noise.New(1, "test")
			how := drawOptions{recipe: Recipe{Members: 2, ODE: ode}, predicted: predicted, noise: stream, progress: func(int, int) {}}
			got, err := m.draw(t.Context(), sub, l, how)
			if err != nil {
				t.Fatal(err)
			}
			m.networks.(*deviceNetworks).device.GPU = true // from here on a flow stays on the device
			stayed, err := m.draw(t.Context(), sub, l, how)
			if err != nil {
				t.Fatal(err)
			}
			runner, err := impute.NewRunner(device.Backend, impute.RunnerConfig{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer runner.Close()
			imputer, err := impute.Load(m.version.Imputer, runner)
			if err != nil {
				t.Fatal(err)
			}
			members, err := impute.LoadMembers(m.version.Members, imputer)
			if err != nil {
				t.Fatal(err)
			}
			want, err := members.Draw(t.Context(), []impute.Target{{Inputs: sub.inputs, Prediction: predicted, Stream: stream}}, 2, ode)
			if err != nil {
				t.Fatal(err)
			}
			const tolerance = 1e-4 // in standard deviations: rounding in another order
			for k := range got {
				for i, hidden := range sub.hidden {
					if hidden && !(math.Abs(float64(got[k][i]-want[0][k][i])) <= tolerance) {
						t.Fatalf("member %d, cell %d: %g, impute.Members draws %g", k, i, got[k][i], want[0][k][i])
					}
					if hidden && !(math.Abs(float64(stayed[k][i]-want[0][k][i])) <= tolerance) {
						t.Fatalf("member %d, cell %d: %g on the device, impute.Members draws %g", k, i, stayed[k][i], want[0][k][i])
					}
				}
			}
		})
	}
}

func TestAnotherGridOrSpaceIsRefusedWithASentence(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	f, err := New(modelConfig(Fast), m)
	if err != nil {
		t.Fatal(err)
	}
	other := basin(40, 56, false)
	linear := s
	linear.Transform = field.Transform{}
	for want, scene := range map[string]Scene{"was trained on 40": other, "was trained in the space log10": linear} {
		_, err := f.Fill(t.Context(), scene, nil)
		if !errors.Is(err, ErrOtherGrid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want ErrOtherGrid and %q", err, want)
		}
	}
}

func TestAFieldWithoutNeighboursIsFilled(t *testing.T) {
	s := basin(40, 48, false)
	s.History = nil
	m := untrained(t, everything(), s, openDevice(t, 1))
	a := fillWith(t, m, modelConfig(Fast), s)
	for i, flags := range a.Flags {
		if s.Sea[i] && flags&NotReconstructible != 0 {
			t.Fatalf("cell %d is not reconstructed", i)
		}
	}
	for i := range s.Frames[0].Values {
		s.Frames[0].Values[i] = nan
	}
	a = fillWith(t, m, modelConfig(Fast), s)
	for i, flags := range a.Flags {
		if s.Sea[i] && flags != NotReconstructible {
			t.Fatalf("cell %d has flags %b though nothing at all is known", i, flags)
		}
	}
}

func TestCellsThatWereNeverQueryAreNotReconstructed(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	m.version.Query = slices.Repeat([]float32{0.3}, len(s.Sea))
	var gaps []int
	for i, sea := range s.Sea {
		if sea && !s.Frames[0].Observed(i) {
			gaps = append(gaps, i)
		}
	}
	gap, other := gaps[0], gaps[1]
	m.version.Query[gap] = 0
	m.version.Query[other] = nan // unknown, which is not the same as never
	a := fillWith(t, m, modelConfig(Fast), s)
	if a.Flags[gap] != NotReconstructible || a.Flags[other]&NotReconstructible != 0 {
		t.Errorf("flags %b and %b, want not reconstructible at the first only", a.Flags[gap], a.Flags[other])
	}

	// What the training saw was observed; what is only unknown to it was not.
	s.History, s.Seen = nil, make(field.Mask, len(s.Sea))
	a = fillWith(t, m, modelConfig(Fast), s)
	if a.Flags[gap] != NotReconstructible || a.Flags[other] != Interpolated|NeverObserved {
		t.Errorf("flags %b and %b, want never observed at the second only", a.Flags[gap], a.Flags[other])
	}
}

func TestCalibrationScalesSigmaByDistance(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	plain := fillWith(t, m, modelConfig(Fast), s)
	m.version.Calibration = impute.Calibration{EdgesCells: []float32{1.5}, Factors: [][]float32{{1, 3}}}
	got := fillWith(t, m, modelConfig(Fast), s)
	visible := make([]bool, len(s.Sea))
	for i, v := range s.Frames[0].Values {
		visible[i] = v == v
	}
	near, far := 0, 0
	for i, d := range distances(visible, s.Frames[0].Grid) {
		if got.Flags[i] != Interpolated {
			continue
		}
		want := m.version.Calibration.Apply(1, d, 0)
		switch want {
		case 1:
			near++
		case 3:
			far++
		}
		if ratio := got.Sigma[i] / plain.Sigma[i]; math.Abs(float64(ratio-want)) > 1e-5 {
			t.Fatalf("cell %d at %g cells: sigma is %g times the plain one, want %g", i, d, ratio, want)
		}
	}
	if near == 0 || far == 0 {
		t.Errorf("%d cells near and %d far, want both", near, far)
	}
}
