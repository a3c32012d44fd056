package infer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/samples"
)

// A sea whose chlorophyll is ten times as high everywhere is the same sea to a
// network, if its mean map says so.
func TestAScenesScalingTakesTheModelElsewhere(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	home := fillWith(t, m, modelConfig(Fast), s)

	rich := basin(40, 48, false)
	for _, f := range slices.Concat(rich.Frames, rich.History) {
		for i := range f.Values {
			f.Values[i] *= 10
		}
	}
	scaling := samples.Scaling{Mean: slices.Repeat([]float32{1}, len(s.Sea)), Std: 0.5}
	rich.Scaling = &scaling
	// With a scaling of its own the scene may be on another grid than the training.
	m.version.Scaling.Grid.Lat = []float64{1, 2}
	got := fillWith(t, m, modelConfig(Fast), rich)
	wantTimes(t, "scaled", home, got.Value, got.Own, 10)
}

// wantTimes compares cells that were filled: the values must be a number of times those of
// home, and the sigmas the same.
func wantTimes(t *testing.T, name string, home Analysis, value, sigma []float32, times float64) {
	t.Helper()
	filled := 0
	for i, flags := range home.Flags {
		if flags != Interpolated {
			continue
		}
		filled++
		if math.Abs(float64(value[i]/home.Value[i])/times-1) > 1e-3 || math.Abs(float64(sigma[i]/home.Sigma[i])-1) > 1e-3 {
			t.Fatalf("%s: cell %d: %g ± %g became %g ± %g, want %g times the value and the same sigma",
				name, i, home.Value[i], home.Sigma[i], value[i], sigma[i], times)
		}
	}
	if filled == 0 {
		t.Errorf("%s: nothing was filled", name)
	}
}

// A version whose mean map is of after a change of sensor fills days from before it, and
// days that have some of before among their neighbours, as it fills those since.
func TestDaysFromBeforeAChangeOfLevelAreFilledAtTheirOwn(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	home := fillWith(t, m, modelConfig(Fast), s)
	today := samples.DateOf(s.Frames[0].Time)
	for name, c := range map[string]struct {
		since  samples.Date
		factor float64 // of the result
	}{"all days": {today + 1, 0.1}, "the days before": {today, 1}} {
		early := basin(40, 48, false)
		for _, f := range slices.Concat(early.Frames, early.History) {
			for i := range f.Values {
				if samples.DateOf(f.Time) < c.since {
					f.Values[i] /= 10
				}
			}
		}
		m.version.Scaling.Levels = []samples.Level{{After: c.since - 1, Since: c.since, By: 1}}
		got := fillWith(t, m, modelConfig(Fast), early)
		wantTimes(t, name+" are of before", home, got.Value, got.Sigma, c.factor)
	}
}

func TestAScalingOfAnotherGridIsRefused(t *testing.T) {
	s := basin(24, 32, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	s.Scaling = &samples.Scaling{Mean: make([]float32, 7), Std: 1}
	f, err := New(modelConfig(Fast), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fill(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "7 cells") {
		t.Errorf("Fill = %v, want an error that tells the cells", err)
	}
}

func TestAutoIsNoMethodOfAFiller(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Method = MethodAuto
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(cfg, nil); err == nil {
		t.Error("a filler was made of the method auto")
	}
}

// A network departs from an analysis that suits the place where it fills: its own
// constants at home, those of the dataset elsewhere.
func TestTheAnalysisHasTheConstantsOfThePlace(t *testing.T) {
	s := basin(40, 48, false)
	m := untrained(t, everything(), s, openDevice(t, 1))
	fill := func(tuned *Constants, elsewhere bool, own *Constants) []float32 {
		scene := basin(40, 48, false)
		m.version.Scaling.Constants, scene.Constants = own, tuned
		if elsewhere {
			scene.Scaling = &m.version.Scaling.Scaling
		}
		return fillWith(t, m, modelConfig(Fast), scene).Value
	}
	long := &Constants{LengthKM: 2000, Days: 60, Nugget: 0.01}
	plain, away := fill(nil, false, nil), fill(nil, true, nil)
	for _, tt := range []struct {
		name string
		got  []float32
		same bool // as with the defaults
		as   []float32
	}{
		{"at home, tuned for the dataset since", fill(long, false, nil), true, plain},
		{"at home, learned with others", fill(nil, false, long), false, plain},
		{"elsewhere, tuned there", fill(long, true, nil), false, away},
		{"elsewhere, learned with others", fill(nil, true, long), true, away},
		{"elsewhere, too few days to tune", fill(&Constants{Note: "too few"}, true, nil), true, away},
	} {
		if same := slices.EqualFunc(tt.got, tt.as, func(a, b float32) bool { return a == b || a != a && b != b }); same != tt.same {
			t.Errorf("%s: as with the default constants %v, want %v", tt.name, same, tt.same)
		}
	}
}
