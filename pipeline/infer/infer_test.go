package infer

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

var (
	nan  = field.NaN()
	day0 = time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
)

// scene is a small square of sea with one column of land, seen on one day.
func scene() Scene {
	const side = 8
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = 43 + 0.1*float64(i)
	}
	grid := field.Grid{Lat: axis, Lon: axis}
	sea := make(field.Mask, grid.Len())
	values := make([]float32, grid.Len())
	for i := range values {
		sea[i] = i%side != 0
		values[i] = nan
		if sea[i] && i%3 == 0 {
			values[i] = float32(1 + 0.1*float64(i%side))
		}
	}
	return Scene{
		Frames: []field.Field{{Grid: grid, Time: day0, Values: values}}, Sea: sea,
		Transform: field.Transform{Log10: true, Floor: 0.001},
	}
}

func fill(t *testing.T, cfg Config, s Scene) []Analysis {
	t.Helper()
	f, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Fill(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryCellIsObservedLandFilledOrNotReconstructible(t *testing.T) {
	for _, method := range []string{"oi", "persistence", "climatology"} {
		t.Run(method, func(t *testing.T) {
			s := scene()
			cfg := DefaultConfig()
			cfg.Method = method
			a := fill(t, cfg, s)[0]
			for i, flags := range a.Flags {
				observed := s.Frames[0].Observed(i)
				switch {
				case observed && (flags != 0 || a.Value[i] != s.Frames[0].Values[i]):
					t.Fatalf("observed cell %d: flags %b, value %g, want 0 and %g", i, flags, a.Value[i], s.Frames[0].Values[i])
				case !s.Sea[i] && (flags != Land || finite(a.Value[i])):
					t.Fatalf("land cell %d: flags %b, value %g", i, flags, a.Value[i])
				case s.Sea[i] && !observed && flags == Interpolated:
					if !(a.Lower[i] < a.Value[i] && a.Value[i] < a.Upper[i]) || !(a.Sigma[i] > 0) {
						t.Fatalf("filled cell %d: %g in %g..%g, sigma %g", i, a.Value[i], a.Lower[i], a.Upper[i], a.Sigma[i])
					}
				case s.Sea[i] && !observed && flags != NotReconstructible:
					t.Fatalf("gap %d: flags %b", i, flags)
				}
			}
		})
	}
}

func TestQuantilesAreThoseOfTheLogNormal(t *testing.T) {
	a := fill(t, DefaultConfig(), scene())[0]
	for i, flags := range a.Flags {
		if flags != Interpolated {
			continue
		}
		got := math.Log10(float64(a.Upper[i])/float64(a.Lower[i])) / float64(a.Sigma[i])
		if math.Abs(got-2*1.64485) > 1e-3 { // z of 5 and 95 % of a standard normal
			t.Fatalf("cell %d: the 90 %% interval is %g sigma wide in log10, want 3.29", i, got)
		}
	}
}

func TestWhatTheMaskCallsLandKeepsAnObservation(t *testing.T) {
	s := scene()
	s.Frames[0].Values[0] = 2.5
	if a := fill(t, DefaultConfig(), s)[0]; a.Flags[0] != 0 || a.Value[0] != 2.5 {
		t.Errorf("flags %b, value %g, want the observation", a.Flags[0], a.Value[0])
	}
}

func TestRejectedPixelsAreFilledAndSaySo(t *testing.T) {
	s := scene()
	refused := make(field.Mask, len(s.Sea))
	refused[1] = true
	s.Rejected = []field.Mask{refused}
	if a := fill(t, DefaultConfig(), s)[0]; a.Flags[1] != Rejected|Interpolated || !finite(a.Value[1]) {
		t.Errorf("flags %b, value %g, want rejected and filled", a.Flags[1], a.Value[1])
	}
}

// Land is never observed either, but it is land; and a cell that was not seen
// today is another thing than one that nobody ever saw.
func TestACellThatNoKnownDayShowsIsFlagged(t *testing.T) {
	for _, method := range []string{"oi", "persistence", "climatology"} {
		cfg := DefaultConfig()
		cfg.Method = method
		s := scene() // cells with i%3 == 0 are observed, column 0 is land
		if a := fill(t, cfg, s)[0]; slices.ContainsFunc(a.Flags, func(f byte) bool { return f&NeverObserved != 0 }) {
			t.Errorf("%s: cells are flagged though nobody says what was seen", method)
		}
		other := slices.Repeat([]float32{nan}, len(s.Sea)) // a neighbouring day
		other[2] = 1.3
		s.History = []field.Field{{Grid: s.Frames[0].Grid, Time: day0.AddDate(0, 0, -1), Values: other}}
		s.Seen = make(field.Mask, len(s.Sea)) // an earlier one
		s.Seen[5] = true
		s.Rejected = []field.Mask{make(field.Mask, len(s.Sea))}
		s.Rejected[0][4] = true // refused is not observed
		a := fill(t, cfg, s)[0]
		for i, flags := range a.Flags {
			seen := s.Frames[0].Observed(i) || i == 2 || i == 5
			if want := s.Sea[i] && !seen; flags&NeverObserved != 0 != want {
				t.Errorf("%s: cell %d has the flags %b, want never observed %v", method, i, flags, want)
			}
			if flags&NeverObserved != 0 && flags&(Interpolated|NotReconstructible) == 0 {
				t.Errorf("%s: cell %d has the flags %b: it is neither filled nor left", method, i, flags)
			}
		}
		if a.Flags[4]&Rejected == 0 {
			t.Errorf("%s: the refused cell has the flags %b", method, a.Flags[4])
		}
		if s.Seen[2] {
			t.Errorf("%s: the mask of the caller was changed", method)
		}
	}
}

func TestWithoutAnyObservationEverythingIsNotReconstructible(t *testing.T) {
	s := scene()
	for i := range s.Frames[0].Values {
		s.Frames[0].Values[i] = nan
	}
	for _, method := range []string{"oi", "persistence", "climatology"} {
		cfg := DefaultConfig()
		cfg.Method = method
		a := fill(t, cfg, s)[0]
		for i, flags := range a.Flags {
			if s.Sea[i] && flags != NotReconstructible {
				t.Fatalf("%s: cell %d has flags %b, want not reconstructible", method, i, flags)
			}
		}
	}
}

// withNeighbour is a scene whose own day is empty but for one cell, with a day
// of the constant v at a distance of offset.
func withNeighbour(offset time.Duration, v float32) Scene {
	s := scene()
	neighbour := field.Field{Grid: s.Frames[0].Grid, Time: day0.Add(offset), Values: make([]float32, len(s.Sea))}
	for i := range neighbour.Values {
		neighbour.Values[i] = v
	}
	s.History = []field.Field{neighbour}
	return s
}

func TestTheWindowDecidesWhichDaysAreSeen(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PastDays = 3
	same := func(a, b Analysis) bool {
		for i := range a.Value {
			if math.Float32bits(a.Value[i]) != math.Float32bits(b.Value[i]) {
				return false
			}
		}
		return true
	}
	tests := []struct {
		name   string
		offset time.Duration
		future int
		seen   bool
	}{
		{"yesterday", -24 * time.Hour, 0, true},
		{"the last day of the window at another time of day", -3*24*time.Hour - 6*time.Hour, 0, true},
		{"a day too early", -4 * 24 * time.Hour, 0, false},
		{"tomorrow in near-real-time", 24 * time.Hour, 0, false},
		{"this evening in near-real-time", 6 * time.Hour, 0, false},
		{"tomorrow in delayed mode", 24 * time.Hour, 2, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cfg
			c.FutureDays = tt.future
			low := fill(t, c, withNeighbour(tt.offset, 0.2))[0]
			high := fill(t, c, withNeighbour(tt.offset, 5))[0]
			if got := !same(low, high); got != tt.seen {
				t.Errorf("seen = %v, want %v", got, tt.seen)
			}
		})
	}
}

func TestAnOlderVersionOfTheSameDayIsNotANeighbour(t *testing.T) {
	a := fill(t, DefaultConfig(), withNeighbour(0, 0.2))[0]
	b := fill(t, DefaultConfig(), withNeighbour(0, 5))[0]
	for i := range a.Value {
		if math.Float32bits(a.Value[i]) != math.Float32bits(b.Value[i]) {
			t.Fatal("a field of the same time in the history changes the analysis")
		}
	}
}

func TestFramesComeBackInTheOrderOfTheFile(t *testing.T) {
	s := scene()
	earlier := s.Frames[0]
	earlier.Time = day0.Add(-24 * time.Hour)
	earlier.Values = append([]float32(nil), earlier.Values...)
	earlier.Values[3] = 42
	s.Frames = append(s.Frames, earlier) // the later day first
	out := fill(t, DefaultConfig(), s)
	if out[1].Value[3] != 42 || out[0].Value[3] == 42 {
		t.Errorf("cell 3 is %g and %g, want 42 in the second analysis only", out[0].Value[3], out[1].Value[3])
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	f, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	last, end := 0, 0
	_, err = f.Fill(t.Context(), scene(), func(done, total int) {
		if done < last || done > total {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last, end = done, total
	})
	if err != nil || last != end || end == 0 {
		t.Errorf("progress ended at %d of %d, err %v", last, end, err)
	}
}

func TestConfigNamesWhatIsAllowed(t *testing.T) {
	cfg := Config{Method: "magic", PastDays: -1, OI: OI{Nugget: 2}}
	err := cfg.Validate()
	for _, want := range []string{`method is "magic"`, "oi, persistence, climatology", "past_days is -1", "oi.nugget is 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a message with %q", err, want)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// skipArithmetic leaves a test out where only races are looked for: it computes
// for long what shorter tests show the detector too.
func skipArithmetic(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("arithmetic, in which shorter tests would show a race too")
	}
}
