package infer

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// waves returns n fields of a sea in which anomalies travel slowly, a step apart,
// each under clouds of its own.
func waves(n int, step time.Duration) []field.Field {
	const side = 10
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = 43 + 0.1*float64(i)
	}
	grid := field.Grid{Lat: axis, Lon: axis}
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]field.Field, n)
	for k := range all {
		f := field.Field{Grid: grid, Time: day0.Add(time.Duration(k-n) * step), Values: make([]float32, grid.Len())}
		row, col := rng.IntN(side), rng.IntN(side)
		for i := range f.Values {
			y, x := i/side, i%side
			f.Values[i] = float32(15 + math.Sin(float64(x)/3+float64(k)/6) + math.Cos(float64(y)/4-float64(k)/9))
			if (y-row+side)%side < side/2 && (x-col+side)%side < side*3/5 {
				f.Values[i] = nan
			}
		}
		all[k] = f
	}
	return all
}

// Every rhythm is tuned, and filled better by its neighbours than without them:
// a window that holds none would not do that.
func TestEveryRhythmIsTunedAndFilledFromItsNeighbours(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	skipArithmetic(t)
	for _, r := range rhythms {
		fields := waves(30, r.step)
		target := fields[len(fields)-1]
		for i := range target.Values { // all but a corner lies under clouds
			if i > 3 {
				target.Values[i] = nan
			}
		}
		hidden := truthOf(target, len(fields)-1)
		cfg := DefaultConfig()
		cfg.Step = StepOf(field.Times(fields))
		if cfg.Step != r.step {
			t.Fatalf("%s: step %v", r.name, cfg.Step)
		}
		c, err := Tune(t.Context(), fields[:len(fields)-1], nil, field.Transform{}, cfg, nil)
		if err != nil || !c.Tuned() || c.Note != "" || c.Evidence.Overlays < 10 || c.Evidence.MSE <= 0 || c.Evidence.Fields != 29 {
			t.Errorf("%s: constants %+v, %v", r.name, c, err)
		}
		if !c.Evidence.To.Before(target.Time) || !c.Evidence.From.Equal(fields[0].Time) || c.Evidence.To.Before(fields[28].Time) {
			t.Errorf("%s: the evidence is of %v to %v", r.name, c.Evidence.From, c.Evidence.To)
		}
		alone := fill(t, cfg, Scene{Frames: []field.Field{target}, Constants: &c})[0]
		with := fill(t, cfg, Scene{Frames: []field.Field{target}, History: fields[:len(fields)-1], Constants: &c})[0]
		if a, b := mse(alone, hidden), mse(with, hidden); b > a/4 {
			t.Errorf("%s: the MSE is %.4f with the fields before it and %.4f without", r.name, b, a)
		}
	}
}

// truthOf returns the values that clouds hide in field k of waves, NaN elsewhere.
func truthOf(f field.Field, k int) []float32 {
	side := f.Grid.Width()
	truth := make([]float32, len(f.Values))
	for i := range truth {
		truth[i] = nan
		if !f.Observed(i) {
			truth[i] = float32(15 + math.Sin(float64(i%side)/3+float64(k)/6) + math.Cos(float64(i/side)/4-float64(k)/9))
		}
	}
	return truth
}

func mse(a Analysis, truth []float32) float64 {
	sum, n := 0.0, 0
	for i, v := range truth {
		if v == v {
			d := float64(a.Value[i] - v)
			sum, n = sum+d*d, n+1
		}
	}
	return sum / float64(n)
}

func TestConstantsOfTheDatasetFillAndTheConfigWins(t *testing.T) {
	fields := waves(12, day)
	s := Scene{Frames: fields[11:], History: fields[:11]}
	plain := fill(t, DefaultConfig(), s)[0]
	s.Constants = &Constants{LengthKM: 400, Days: 20, Nugget: 0.02, SigmaScale: 3}
	tuned := fill(t, DefaultConfig(), s)[0]
	if slices.EqualFunc(plain.Sigma, tuned.Sigma, same) {
		t.Error("constants change nothing")
	}
	s.Constants = &Constants{Note: "why the defaults serve"}
	noted := fill(t, DefaultConfig(), s)[0]
	if !slices.EqualFunc(plain.Value, noted.Value, same) || noted.Note != "why the defaults serve" {
		t.Errorf("without scales the constants are not the defaults, or the note is %q", noted.Note)
	}
	cfg := DefaultConfig()
	cfg.OI.LengthKM, cfg.OI.Days, cfg.OI.Nugget = 50, 5, 0.2
	s.Constants = nil
	own := fill(t, cfg, s)[0]
	s.Constants = &Constants{LengthKM: 400, Days: 20, Nugget: 0.02, SigmaScale: 3}
	if won := fill(t, cfg, s)[0]; !slices.EqualFunc(own.Sigma, won.Sigma, same) {
		t.Error("constants win over the scales of the configuration")
	}
	if c, err := Tune(t.Context(), waves(36, day), nil, field.Transform{}, cfg, nil); err != nil || c.Tuned() || c.Note != "" {
		t.Errorf("with scales of the configuration there is nothing to tune: %+v, %v", c, err)
	}
}

func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

func TestWhereNothingCanBeTunedTheDefaultsServeAndSaySo(t *testing.T) {
	cfg := DefaultConfig()
	few, err := Tune(t.Context(), waves(TuneFields-1, day), nil, field.Transform{}, cfg, nil)
	if err != nil || few.Tuned() || !strings.Contains(few.Note, "default scales: fewer than 15 fields") {
		t.Errorf("few fields: %+v, %v", few, err)
	}
	clear := waves(30, day)
	for _, f := range clear { // nothing is missing, so no gaps can be laid over another day
		for i := range f.Values {
			f.Values[i] = float32(i)
		}
	}
	none, err := Tune(t.Context(), clear, nil, field.Transform{}, cfg, nil)
	if err != nil || none.Tuned() || !strings.Contains(none.Note, "no gaps to tune by") || none.Evidence.Fields != 30 {
		t.Errorf("clear fields: %+v, %v", none, err)
	}
}

// Distances in time are exact where there is no field a day.
func TestDistancesInTimeAreNotRoundedToDays(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		want float32
	}{{6 * time.Hour, 0.25}, {day, 1}, {8 * day, 8}} {
		fields := waves(6, tt.step)
		for k := range fields { // all clear but the last, which has one gap
			for i := range fields[k].Values {
				fields[k].Values[i] = 1
			}
		}
		fields[5].Values[7] = nan
		cfg := DefaultConfig()
		cfg.Method, cfg.Details, cfg.Step = "persistence", true, tt.step
		got := fill(t, cfg, Scene{Frames: fields[5:], History: fields[:5]})[0].Details.DistanceDays
		if got[7] != tt.want || got[8] != 0 {
			t.Errorf("a step of %v: the gap is %g days from an observation, want %g; an observed cell %g", tt.step, got[7], tt.want, got[8])
		}
	}
}
