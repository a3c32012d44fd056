package samples_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

var start = time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC)

// fields returns n days on a grid of height × width cells whose left column is
// land, with cloud-like gaps. The value of a cell tells its day.
func fields(n, height, width int) ([]field.Field, field.Mask) {
	r := rand.New(rand.NewPCG(1, 2))
	grid := field.Grid{Lat: make([]float64, height), Lon: make([]float64, width)}
	for i := range grid.Lat {
		grid.Lat[i] = 40 + 0.05*float64(i)
	}
	for j := range grid.Lon {
		grid.Lon[j] = 10 + 0.05*float64(j)
	}
	sea := make(field.Mask, height*width)
	for i := range sea {
		sea[i] = i%width > 0
	}
	out := make([]field.Field, n)
	for d := range out {
		values := make([]float32, height*width)
		edge := 1 + r.IntN(height-1) // never without a value
		for i := range values {
			values[i] = 1 + float32(d) + 0.01*float32(i%7)
			if (i/width < edge) == (d%2 == 0) {
				values[i] = field.NaN()
			}
		}
		out[d] = field.Field{Grid: grid, Time: start.AddDate(0, 0, d), Values: values}
	}
	return out, sea
}

func split(t *testing.T, days int, cfg samples.SplitConfig) (samples.Series, samples.Train, samples.HeldOut) {
	t.Helper()
	fs, sea := fields(days, 24, 20)
	s, err := samples.New(fs, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	train, held, err := s.Split(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, train, held
}

func TestNoTrainingDayIsWithinTheGapOfAHeldOutDay(t *testing.T) {
	cfg := samples.SplitConfig{HeldOut: 0.25, GapDays: 12, Blocks: 2}
	_, train, held := split(t, 200, cfg)
	targets := map[int]bool{}
	for _, r := range held.Refs(8, 8, 1) {
		targets[r.Day] = true
	}
	if len(targets) < 40 {
		t.Fatalf("%d held-out days of 200, want about a quarter", len(targets))
	}
	for day := range targets {
		for i := range train.Days() {
			if apart := held.Time(day).Sub(train.Time(i)).Abs(); apart <= 12*24*time.Hour {
				t.Fatalf("training day %v is %v from held-out day %v", train.Time(i), apart, held.Time(day))
			}
		}
	}
}

// A series coarser than daily is cut by its own step: two maps lie between the
// sides, and a missing one does not end a stretch.
func TestCoarseSeriesAreSplitByTheirStep(t *testing.T) {
	for _, tt := range []struct {
		name string
		step int // days
	}{{"8-day", 8}, {"monthly", 30}} {
		fs, sea := fields(80, 24, 20)
		for i := range fs {
			fs[i].Time = start.AddDate(0, 0, i*tt.step)
		}
		fs = append(fs[:37:37], fs[38:]...)
		s, err := samples.New(fs, sea, field.Transform{})
		if err != nil {
			t.Fatal(err)
		}
		train, held, err := s.Split(samples.DefaultSplit())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		targets := map[int]bool{}
		for _, r := range held.Refs(8, 8, 1) {
			targets[r.Day] = true
		}
		if n := len(targets); n < 15 || n > 25 || train.Days() < 35 {
			t.Errorf("%s: %d maps are held out and %d train, want about a quarter held out", tt.name, n, train.Days())
		}
		for day := range targets {
			for i := range train.Days() {
				if apart := held.Time(day).Sub(train.Time(i)).Abs(); apart <= time.Duration(2*tt.step)*24*time.Hour {
					t.Fatalf("%s: training map %v is %v from held-out map %v", tt.name, train.Time(i), apart, held.Time(day))
				}
			}
		}
	}
}

func TestScalingIgnoresTheHeldOutDays(t *testing.T) {
	fs, sea := fields(120, 24, 20)
	s, err := samples.New(fs, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	before, held, err := s.Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range held.Refs(8, 8, 1) { // spoil every held-out day
		for i, f := range fs {
			if f.Time.Equal(held.Time(r.Day)) {
				for c := range f.Values {
					fs[i].Values[c] *= 1000
				}
			}
		}
	}
	s, err = samples.New(fs, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := s.Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Scaling(), after.Scaling()); diff != "" {
		t.Errorf("held-out values changed the scaling:\n%s", diff)
	}
}

func TestCompositesTakeTheNearestDayAndNeverTheirOwn(t *testing.T) {
	_, train, _ := split(t, 60, samples.SplitConfig{HeldOut: 0.2, GapDays: 5, Blocks: 1})
	r := samples.Ref{Day: 20, Window: samples.Square(-2, -3, 16)}
	last, next := train.Last(r, 30), train.Next(r, 10)
	dayOf := func(a float32, cell int) float64 {
		return math.Floor(float64(train.Scaling().Inverse(a, cell)) - 1 + 1e-3)
	}
	found := 0
	for i, f := range last.Freshness {
		row, col := i/16-2, i%16-3
		if row < 0 || col <= 0 {
			if f != 0 || next.Freshness[i] != 0 {
				t.Fatalf("cell %d, %d is land or outside and has a composite", row, col)
			}
			continue
		}
		want, age := -1.0, 0
		for d := r.Day - 1; d >= 0 && want < 0; d-- {
			p := train.Cut(samples.Ref{Day: d, Window: r.Window})
			if v := p.Values[i]; v == v {
				want, age = float64(d), r.Day-d
			}
		}
		if got := dayOf(last.Value[i], row*20+col); got != want {
			t.Fatalf("last observation of cell %d is of day %g, want %g", i, got, want)
		}
		if wantF := 3 / (2 + float32(age)); f != wantF {
			t.Fatalf("freshness %g at age %d, want %g", f, age, wantF)
		}
		if d := dayOf(next.Value[i], row*20+col); next.Freshness[i] != 0 && d <= float64(r.Day) {
			t.Fatalf("next observation is of day %g, not after day %d", d, r.Day)
		}
		found++
	}
	if found < 100 {
		t.Errorf("only %d cells compared", found)
	}
}

func TestOverlaysHideWhatTheOtherDayMissed(t *testing.T) {
	_, _, held := split(t, 200, samples.DefaultSplit())
	cfg := samples.DefaultOverlays(16)
	overlays, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(overlays, again, cmpopts.EquateNaNs()); diff != "" {
		t.Error("the same config gave other overlays")
	}
	for _, o := range overlays {
		other := held.Cut(samples.Ref{Day: o.GapsOf, Window: o.Window})
		seen, hidden := 0, 0
		for i, v := range o.Values {
			observed, there := v == v, other.Values[i] == other.Values[i]
			if o.Visible[i] != (observed && there) || o.Scored[i] != (observed && !there) {
				t.Fatalf("cell %d: observed %v, on the other day %v, visible %v, scored %v", i, observed, there, o.Visible[i], o.Scored[i])
			}
			if o.Visible[i] {
				seen++
			}
			if o.Scored[i] {
				hidden++
			}
		}
		if seen < cfg.MinPixels || hidden < cfg.MinPixels {
			t.Fatalf("%d visible and %d scored, want at least %d of both", seen, hidden, cfg.MinPixels)
		}
		series, target := held.Around(o.Ref, o.Visible, 10, 0)
		for i, v := range series.Frames[target].Values {
			if (v == v) != o.Visible[i] {
				t.Fatal("a classical method sees other cells than the visible ones")
			}
		}
		value, sigma, err := held.Analyse(o.Ref, o.Visible, samples.BackgroundConfig{PastDays: 10, OI: classical.DefaultOI(held.Grid())})
		if err != nil {
			t.Fatal(err)
		}
		for i := range value {
			if o.Visible[i] && value[i] != o.Values[i] || o.Scored[i] && !(sigma[i] > 0) {
				t.Fatalf("cell %d is analysed as %g ± %g, visible %v with %g", i, value[i], sigma[i], o.Visible[i], o.Values[i])
			}
		}
		if last := series.Frames[len(series.Frames)-1].Time; last.After(o.Time) {
			t.Fatalf("a past-only window reaches %v, after %v", last, o.Time)
		}
	}
}

func TestBackgroundsDoNotLookAtTheirOwnDay(t *testing.T) {
	fs, sea := fields(60, 24, 20)
	r := samples.Ref{Day: 15, Window: samples.Square(4, 2, 16)}
	cut := func() ([]float32, []float32) {
		s, err := samples.New(fs, sea, field.Transform{})
		if err != nil {
			t.Fatal(err)
		}
		train, err := s.Whole()
		if err != nil {
			t.Fatal(err)
		}
		b, err := train.Backgrounds(t.Context(), []int{r.Day}, samples.BackgroundConfig{PastDays: 10, OI: classical.DefaultOI(s.Grid)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		value, sigma, ok := b.Cut(r)
		if !ok {
			t.Fatal("no background")
		}
		for i := range value { // compared without the scaling, which the day itself is part of
			cell := (4+i/16)*20 + 2 + i%16
			value[i] = train.Scaling().Inverse(value[i], cell)
		}
		return value, sigma
	}
	before, sigma := cut()
	for i := range fs[r.Day].Values {
		fs[r.Day].Values[i] += 0.5 // small, so that the scaling barely moves
	}
	after, _ := cut()
	for i := range before {
		if d := math.Abs(float64(before[i] - after[i])); d > 0.05 {
			t.Fatalf("cell %d of the background moved by %g with its own day", i, d)
		}
		if !(sigma[i] > 0) {
			t.Fatalf("sigma %g over sea", sigma[i])
		}
	}
}

func TestBadSeriesSayWhatToDo(t *testing.T) {
	fs, sea := fields(40, 12, 10)
	full := field.Field{Grid: fs[0].Grid, Time: start, Values: make([]float32, 120)}
	other := fields2(t)
	for _, tt := range []struct {
		name   string
		fields []field.Field
		sea    field.Mask
		want   error
	}{
		{name: "no fields", sea: sea},
		{name: "no sea", fields: fs, sea: make(field.Mask, 120)},
		{name: "nothing missing", fields: []field.Field{full}, sea: sea, want: samples.ErrNothingMissing},
		{name: "two grids", fields: append([]field.Field{other}, fs...), sea: sea},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := samples.New(tt.fields, tt.sea, field.Transform{})
			if err == nil || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Errorf("New gave %v", err)
			}
		})
	}
	s, err := samples.New(fs[:10], sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Split(samples.DefaultSplit()); err == nil {
		t.Error("ten days were split with a gap of twelve")
	}
}

func fields2(t *testing.T) field.Field {
	t.Helper()
	fs, _ := fields(1, 10, 12)
	return fs[0]
}

func TestAPackGivesTheSameSeriesBack(t *testing.T) {
	s, _, _ := split(t, 60, samples.SplitConfig{HeldOut: 0.2, GapDays: 5, Blocks: 1})
	var buf bytes.Buffer
	if err := pack.Write(&buf, s); err != nil {
		t.Fatal(err)
	}
	got, err := pack.Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the series changed:\n%s", diff)
	}
}
