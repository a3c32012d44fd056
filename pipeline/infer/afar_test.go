package infer

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
)

// strait is a channel that was observed at its two ends only; west multiplies
// the chlorophyll of the western end.
func strait(height, width, seen int, west float32) Scene {
	s := basin(height, width, false)
	s.History = nil
	for i := range s.Sea {
		s.Sea[i] = true
		value := field.NaN()
		switch col := i % width; {
		case col < seen:
			value = west
		case col >= width-seen:
			value = 1
		}
		s.Frames[0].Values[i] = value
	}
	return s
}

// In a gap that is larger than a window most windows hold no observation at
// all. The analysis of the whole basin, which is made without windows, is the
// coarse pass that brings them the observations beyond.
func TestAGapLargerThanAWindowIsFilledFromAfar(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	const height, width, seen, window = 64, 448, 24, 64
	device := openDevice(t, 1)
	blind := everything()
	blind.Extras.Analysis, blind.Departure = false, false
	for name, tt := range map[string]struct {
		design  impute.Design
		reaches bool
	}{"with the analysis": {everything(), true}, "without it": {blind, false}} {
		low, high := strait(height, width, seen, 1), strait(height, width, seen, 10)
		m := untrained(t, tt.design, low, device)
		cfg := modelConfig(Standard)
		cfg.Network.WindowCells, cfg.Network.OverlapCells, cfg.Network.Members, cfg.Details = window, 16, 1, true
		a, b := fillWith(t, m, cfg, low), fillWith(t, m, cfg, high)
		if a.Took.Windows < 6 {
			t.Fatalf("%s: %d windows, the gap is not larger than one", name, a.Took.Windows)
		}
		at := height/2*width + width/2 // 200 cells from either end
		for what, pick := range map[string]func(Analysis) float32{
			"mean":   func(a Analysis) float32 { return a.Value[at] },
			"member": func(a Analysis) float32 { return a.Members[0][at] },
		} {
			moved := math.Log10(float64(pick(b))) - math.Log10(float64(pick(a)))
			if tt.reaches != (math.Abs(moved) > 0.05) {
				t.Errorf("%s: tenfold values 200 cells away move the %s by %.3f decades", name, what, moved)
			}
		}
	}
}

func TestWindowsOfLandAreSkipped(t *testing.T) {
	s := basin(128, 512, false)
	for i := range s.Sea {
		if s.Sea[i] = i%512 < 100; !s.Sea[i] {
			s.Frames[0].Values[i] = field.NaN()
		}
	}
	m := fakeModel(fakeNetworks{predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
		sea := 0
		for _, is := range in.Sea {
			if is {
				sea++
			}
		}
		if sea == 0 {
			t.Error("a window of land went through the network")
		}
		return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
	}}, s)
	cfg := modelConfig(Fast)
	cfg.Network.WindowCells = 64
	all := newTiling(s.Frames[0].Grid, 64, 16)
	if a := fillWith(t, m, cfg, s); a.Took.Windows == 0 || a.Took.Windows > len(all.rows)*len(all.cols)/2 {
		t.Errorf("%d of %d windows went through the network, and four fifths of the grid is land", a.Took.Windows, len(all.rows)*len(all.cols))
	}
}

func TestWithoutAClassifierTheMapOfTheVersionIsTheReliability(t *testing.T) {
	s := basin(40, 48, false)
	m := fakeModel(fakeNetworks{predicts: smoother(2)}, s)
	m.version.Query = constant(0.5, len(s.Sea))
	m.version.Query[3] = nan
	cfg := modelConfig(Fast)
	cfg.Details = true
	if a := fillWith(t, m, cfg, s); !sameBits(a.Details.Reliability, m.version.Query) {
		t.Errorf("reliability is %v...", a.Details.Reliability[:5])
	}
}

// The cells of one batch on a GPU are bounded, whatever the size of the windows.
func TestBatchesOfLargeWindowsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	m := &Model{gpu: true}
	for _, tt := range []struct{ height, width, want int }{{64, 64, 16}, {256, 512, 8}, {790, 1101, 1}, {1147, 1185, 2}} {
		s := basin(tt.height, tt.width, false)
		sub := &preparedField{grid: s.Frames[0].Grid, hidden: make([]bool, len(s.Sea))}
		if got := newLayout(sub, m.size(Network{}), 0).size.batch; got != tt.want {
			t.Errorf("%d x %d: batches of %d, want %d", tt.height, tt.width, got, tt.want)
		}
		if got := newLayout(sub, m.size(Network{Batch: 5}), 0).size.batch; got != 5 {
			t.Errorf("batches of %d though 5 were asked for", got)
		}
	}
}

// Every method reports the distances to its observations.
func TestDetailsMeasureTheNearestObservationInSpaceAndTime(t *testing.T) {
	s := strait(8, 32, 1, 1)
	yesterday, later := s.Frames[0], s.Frames[0]
	yesterday.Time, later.Time = day0.AddDate(0, 0, -3), day0.AddDate(0, 0, 2)
	yesterday.Values, later.Values = constant(nan, 8*32), constant(nan, 8*32)
	yesterday.Values[10], yesterday.Values[11], later.Values[10] = 1, 1, 1
	s.History = []field.Field{yesterday, later}
	cfg := DefaultConfig()
	cfg.FutureDays, cfg.Details = 10, true
	a := fillWith(t, nil, cfg, s)
	step := float32(s.Frames[0].Grid.StepKM())
	for cell, want := range map[int]struct{ km, days float32 }{
		0: {0, 0}, 10: {10 * step, 2}, 11: {11 * step, 3}, 12: {12 * step, nan},
	} {
		d := a.Details
		if km, days := d.DistanceKM[cell], d.DistanceDays[cell]; km != want.km || days != want.days && (days == days || want.days == want.days) {
			t.Errorf("cell %d is %g km and %g days from an observation, want %g and %g", cell, km, days, want.km, want.days)
		}
	}
}

// Members are moved to the published mean and given the spread of the
// calibration, which grows with the distance here.
func TestMembersStandAboutThePublishedMeanAsFarAsCalibrated(t *testing.T) {
	s := basin(60, 60, false)
	m := fakeModel(fakeNetworks{predicts: smoother(4), cleaned: smoothResidual}, s)
	m.version.MembersCalibration = impute.MembersCalibration{
		Calibration: impute.Calibration{EdgesCells: []float32{3}, Factors: [][]float32{{1, 2}}}, Share: 1, Ratio: 1,
	}
	cfg := modelConfig(Full)
	cfg.Network.Members, cfg.Details = spreadMembers, true
	a := fillWith(t, m, cfg, s)
	step := float32(s.Frames[0].Grid.StepKM())
	for i, flags := range a.Flags {
		if flags != Interpolated {
			continue
		}
		sum, squares, mean := 0.0, 0.0, math.Log10(float64(a.Value[i]))
		for _, member := range a.Members {
			d := math.Log10(float64(member[i])) - mean
			sum, squares = sum+d, squares+d*d
		}
		// The smoother's sigma of 0.5 in units of the scaling's 0.5.
		want := float64(m.version.MembersCalibration.Apply(0.25, a.Details.DistanceKM[i]/step, 0))
		spread := math.Sqrt(squares / spreadMembers)
		if math.Abs(sum/spreadMembers) > 1e-4 || math.Abs(spread-want) > 1e-3 || math.Abs(float64(a.Sigma[i])-want) > 1e-3 {
			t.Fatalf("cell %d: members are off by %.4f and spread by %.4f, sigma is %.4f; want 0 and twice %.4f", i, sum/spreadMembers, spread, a.Sigma[i], want)
		}
	}
}
