package classical

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// small returns a tuning that takes a moment.
func small() Tuning {
	t := DefaultTuning()
	t.Overlays, t.Pixels = 6, 25
	return t
}

func TestTuneLowersTheErrorAndCalibrates(t *testing.T) {
	s := cloudy(32, 32, 20, 20)
	tuning := small()
	tuning.Start = DefaultOI(s.Grid)
	tuning.Start.Neighbours = 16
	tuning.Start.LengthKM, tuning.Start.Nugget = 2, 0.4 // far off: the field is smooth over 10 km
	trial := newTrial(s, tuning, tuning.Start)
	misses, err := trial.misses(t.Context(), []OI{tuning.Start})
	if err != nil {
		t.Fatal(err)
	}
	before := score(misses[0], 0)
	tuned, after, err := Tune(t.Context(), s, tuning)
	if err != nil {
		t.Fatal(err)
	}
	if after.MSE > 0.8*before.MSE {
		t.Errorf("MSE fell from %v to %v only", before.MSE, after.MSE)
	}
	if math.Abs(after.Coverage90-0.9) > 0.01 {
		t.Errorf("90 %% intervals cover %v of the values they were fitted to", after.Coverage90)
	}
	if tuned.LengthKM <= tuning.Start.LengthKM || tuned.Neighbours != tuning.Start.Neighbours {
		t.Errorf("tuned to %+v", tuned)
	}
	if after.Overlays == 0 || after.Pixels < after.Overlays {
		t.Errorf("score counts %d overlays and %d pixels", after.Overlays, after.Pixels)
	}
}

func TestTuneIsRepeatableOnAnyNumberOfWorkers(t *testing.T) {
	s := cloudy(20, 20, 16, 21)
	tuning := small()
	tuning.Start = DefaultOI(s.Grid)
	tuning.Start.Workers = 1
	a, scoreA, err := Tune(t.Context(), s, tuning)
	if err != nil {
		t.Fatal(err)
	}
	tuning.Start.Workers = 3
	b, scoreB, err := Tune(t.Context(), s, tuning)
	if err != nil {
		t.Fatal(err)
	}
	b.Workers = 1
	if a != b || scoreA != scoreB {
		t.Errorf("1 worker tunes to %+v, 3 to %+v", a, b)
	}
}

func TestOverlaysAreRealGapsOfDaysFarApart(t *testing.T) {
	s := cloudy(24, 24, 30, 22)
	tuning := small()
	overlays := layOver(s, tuning, nil)
	if len(overlays) != tuning.Overlays {
		t.Fatalf("%d overlays, want %d", len(overlays), tuning.Overlays)
	}
	for _, l := range overlays {
		if d := s.Frames[l.target].Time.Sub(s.Frames[l.gaps].Time).Abs(); d < tuning.Apart {
			t.Errorf("gaps come from %v away", d)
		}
		if len(l.hidden) < leastCells || len(l.hidden) > tuning.Pixels {
			t.Errorf("%d cells are scored", len(l.hidden))
		}
		for _, c := range l.hidden {
			if !s.observed(l.target, int(c)) || s.observed(l.gaps, int(c)) {
				t.Fatalf("cell %d is scored, observed %v, hidden %v", c, s.observed(l.target, int(c)), !s.observed(l.gaps, int(c)))
			}
		}
	}
}

func TestTuneNamesTheReasonOfItsFailure(t *testing.T) {
	s := cloudy(24, 24, 5, 23) // five days: none is twelve days from another
	if _, _, err := Tune(t.Context(), s, small()); err == nil || !strings.Contains(err.Error(), "288h") {
		t.Errorf("tuning on five days = %v, want the distance that is missing", err)
	}
	if _, _, err := Tune(t.Context(), Series{Grid: s.Grid}, small()); !errors.Is(err, ErrNoObservations) {
		t.Errorf("tuning on nothing = %v", err)
	}
	bad := small()
	bad.Start = DefaultOI(s.Grid)
	bad.Start.Days = -1
	if _, _, err := Tune(t.Context(), s, bad); err == nil || !strings.Contains(err.Error(), "time scale is -1") {
		t.Errorf("tuning from a bad start = %v", err)
	}
}

func TestMisusePanics(t *testing.T) {
	s := cloudy(8, 8, 3, 24)
	short := clone(s)
	short.Frames[1].Values = short.Frames[1].Values[1:]
	unordered := clone(s)
	unordered.Frames[0].Time = unordered.Frames[2].Time.Add(time.Hour)
	for name, call := range map[string]func(){
		"target beyond the series": func() { Climatology(s, 3) },
		"negative target":          func() { s.Window(-1, 0, 0) },
		"frame of another grid":    func() { Climatology(short, 0) },
		"frames out of order":      func() { Persistence(unordered, 0, 0) },
		"mask of another grid":     func() { Climatology(Series{Grid: s.Grid, Sea: make([]bool, 3), Frames: s.Frames}, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			call()
		}()
	}
}

func TestTwoFramesOfOneTimeNeedNoNugget(t *testing.T) {
	s := cloudy(30, 30, 2, 25)
	twice := clone(Series{Grid: s.Grid, Frames: []Frame{s.Frames[0], s.Frames[0], s.Frames[1]}})
	for _, lengthKM := range []float64{5, 1e9} {
		o := DefaultOI(s.Grid)
		o.Nugget, o.LengthKM = 0, lengthKM
		e := fill(t, o, twice, 2)
		for c, m := range e.Mean {
			if math.Abs(float64(m)) > 10 || !(e.Sigma[c] >= 0) {
				t.Fatalf("length %g km: cell %d of a field of unit variance is %v ± %v", lengthKM, c, m, e.Sigma[c])
			}
		}
	}
}

func TestTuningEndsSoonAfterItIsCancelled(t *testing.T) {
	s := cloudy(60, 60, 40, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if _, _, err := Tune(ctx, s, small()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	whole := time.Now()
	if _, _, err := Tune(t.Context(), s, small()); err != nil {
		t.Fatal(err)
	}
	if short, long := whole.Sub(began), time.Since(whole); short > long/2 {
		t.Errorf("cancelled it took %v, whole %v", short, long)
	}
}

// Days that the caller hid tune to the same scales as the overlays of a series.
func TestDaysThatTheCallerHidTuneAsOverlaysDo(t *testing.T) {
	s := cloudy(32, 32, 20, 20)
	start := DefaultOI(s.Grid)
	start.Neighbours = 16
	start.LengthKM, start.Nugget = 2, 0.4
	trial := newTrial(s, small(), start)
	var days []Hidden
	for _, l := range trial.overlays {
		h := Hidden{Cells: l.hidden, Truth: s.Frames[l.target].Values}
		h.Series, h.Target = trial.covered(l)
		days = append(days, h)
	}
	tuned, after, err := TuneOn(t.Context(), days, start)
	if err != nil {
		t.Fatal(err)
	}
	whole := small()
	whole.Start = start
	want, before, err := Tune(t.Context(), s, whole)
	if err != nil {
		t.Fatal(err)
	}
	if tuned != want || after != before {
		t.Errorf("the same overlays tune to %+v with %+v, and to %+v with %+v in whole maps", tuned, after, want, before)
	}
	// The truth is for scores: the estimates do not see it.
	for i := range days {
		days[i].Truth = make([]float32, len(days[i].Truth))
	}
	zero, err := missesOf(t.Context(), len(days), func(i int) [][]miss {
		sphere := newSphere(s.Grid)
		return days[i].misses([]OI{want}, sphere, want.buildTrees(days[i].Series, sphere), false)
	}, []OI{want})
	if err != nil {
		t.Fatal(err)
	}
	honest, err := trial.misses(t.Context(), []OI{want})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, l := range trial.overlays {
		for _, c := range l.hidden {
			got, want := zero[0][at].by, honest[0][at].by+float64(s.Frames[l.target].Values[c])
			if math.Abs(got-want) > 1e-6 {
				t.Fatalf("cell %d is %v with another truth, %v with its own", c, got, want)
			}
			at++
		}
	}
	if _, _, err := TuneOn(t.Context(), []Hidden{{Series: s}}, start); !errors.Is(err, ErrNoOverlays) {
		t.Errorf("without a hidden cell: %v", err)
	}
}
