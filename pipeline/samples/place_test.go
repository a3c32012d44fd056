package samples_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// twoSeas returns series on two grids, the second with other values.
func twoSeas(t *testing.T) []samples.Series {
	t.Helper()
	var all []samples.Series
	for i, size := range []struct{ days, height, width int }{{120, 24, 20}, {80, 16, 30}} {
		fs, sea := fields(size.days, size.height, size.width)
		for _, f := range fs {
			for c := range f.Values {
				f.Values[c] = f.Values[c]*float32(1+9*i) + float32(1000*i)
			}
		}
		s, err := samples.New(fs, sea, field.Transform{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// alike compares two results for one patch, whose days may have different numbers.
func alike(t *testing.T, what string, got, want any) {
	t.Helper()
	ignored := cmpopts.IgnoreFields(samples.Patch{}, "Ref", "Place")
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), ignored); diff != "" {
		t.Fatalf("%s differs from that of the series alone (-want +got):\n%.600s", what, diff)
	}
}

func TestSeriesSideBySideAreEachAsItIsAlone(t *testing.T) {
	all, cfg := twoSeas(t), samples.DefaultSplit()
	train, held, err := samples.Split(all, cfg)
	if err != nil {
		t.Fatal(err)
	}
	oi := classical.DefaultOI(all[0].Grid)
	oi.Workers = 1
	around := samples.BackgroundConfig{PastDays: 5, FutureDays: 5, OI: oi}
	refs, overlays := map[int]int{}, 0
	for number, s := range all {
		aloneTrain, aloneHeld, err := s.Split(cfg)
		if err != nil {
			t.Fatal(err)
		}
		place := train.Places()[number]
		alike(t, "the scaling", place.Scaling, aloneTrain.Scaling())
		first, end := place.Days()
		if end-first != aloneTrain.Days() {
			t.Fatalf("series %d has %d training days, %d alone", number, end-first, aloneTrain.Days())
		}
		for i, r := range aloneTrain.Refs(8, 8, 20) {
			here := samples.Ref{Day: first + r.Day, Window: r.Window}
			refs[number]++
			if i%17 > 0 { // some of every window and season
				continue
			}
			p := train.Cut(here)
			if p.Place != number || train.Place(here.Day) != place {
				t.Fatalf("a patch of series %d is of place %d", number, p.Place)
			}
			alike(t, "a patch", p, aloneTrain.Cut(r))
			alike(t, "the last observation", train.Last(here, 30), aloneTrain.Last(r, 30))
			alike(t, "the next observation", train.Next(here, 10), aloneTrain.Next(r, 10))
			alike(t, "yesterday", train.Yesterday(here), aloneTrain.Yesterday(r))
			got, _, err := train.Analyse(here, p.Observed(), around)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := aloneTrain.Analyse(r, p.Observed(), around)
			if err != nil {
				t.Fatal(err)
			}
			alike(t, "the analysis", got, want)
		}
		alone, err := aloneHeld.Overlays(samples.DefaultOverlays(8))
		if err != nil {
			t.Fatal(err)
		}
		overlays += len(alone)
	}
	mixed := map[int]int{}
	for _, r := range train.Refs(8, 8, 20) {
		mixed[train.Cut(r).Place]++
	}
	if diff := cmp.Diff(refs, mixed); diff != "" || refs[0] == 0 || refs[1] == 0 {
		t.Errorf("patches of the two series (-alone +together):\n%s", diff)
	}
	checkOverlays(t, held, overlays)
}

// checkOverlays checks the overlays of held-out days of several places.
func checkOverlays(t *testing.T, held samples.HeldOut, want int) {
	t.Helper()
	together, err := held.Overlays(samples.DefaultOverlays(8))
	if err != nil {
		t.Fatal(err)
	}
	if len(together) != want {
		t.Errorf("%d overlays together, %d alone", len(together), want)
	}
	for _, o := range together {
		if held.Place(o.GapsOf) != held.Place(o.Day) {
			t.Fatal("a day has the gaps of another place laid over it")
		}
	}
}

func TestSeriesOfAnotherTransformAreNotLearnedTogether(t *testing.T) {
	all := twoSeas(t)
	all[1].Transform = field.Transform{Log10: true}
	if _, _, err := samples.Split(all, samples.DefaultSplit()); err == nil || !strings.Contains(err.Error(), "one variable") {
		t.Errorf("error %v", err)
	}
}

func TestAScalingIsLearnedFromTheDaysOfThePlaceItself(t *testing.T) {
	all := twoSeas(t)
	for number, s := range all {
		learned, err := samples.LearnScaling(s)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := s.Whole()
		if err != nil {
			t.Fatal(err)
		}
		alike(t, "the scaling of a training on all days", learned, whole.Scaling())
		// Anomalies have no level and the spread of the variable is their unit.
		sum, squares, n := 0.0, 0.0, 0
		for _, d := range s.Days {
			for _, a := range learned.Normalised(d.Values) {
				if a == a { // not NaN
					sum, squares, n = sum+float64(a), squares+float64(a)*float64(a), n+1
				}
			}
		}
		if mean, spread := sum/float64(n), math.Sqrt(squares/float64(n)); math.Abs(mean) > 0.05 || spread < 0.7 || spread > 1.1 {
			t.Errorf("series %d: anomalies have mean %.3f and spread %.3f", number, mean, spread)
		}
	}
	few := all[0]
	few.Days = few.Days[:samples.ScalingDays-1]
	if _, err := samples.LearnScaling(few); !errors.Is(err, samples.ErrFewDays) {
		t.Errorf("error %v with %d days", err, len(few.Days))
	}
}

func TestDaysOfOtherSeriesComeAfterAndChangeNothingElse(t *testing.T) {
	all, cfg := twoSeas(t), samples.DefaultSplit()
	all[1].Transform = field.Transform{Log10: true} // another quantity
	own, _, err := all[0].Split(cfg)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := all[1].Split(cfg)
	if err != nil {
		t.Fatal(err)
	}
	days := own.Days()
	both, assigned, err := own.Beside(all[1:], cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(assigned) != 1 || len(assigned[0].Learn) != other.Days() {
		t.Errorf("the days of the other are told as %+v", assigned)
	}
	if own.Days() != days || len(own.Places()) != 1 {
		t.Errorf("the series itself has %d days of %d places, and had %d of one", own.Days(), len(own.Places()), days)
	}
	if both.Transform() != all[0].Transform {
		t.Errorf("the space became %v, that of the other", both.Transform())
	}
	// Held-out days of the other are in neither.
	if both.Days() != days+other.Days() {
		t.Fatalf("%d days, want %d and %d", both.Days(), days, other.Days())
	}
	for i, r := range own.Refs(8, 8, 20) {
		if i%17 == 0 {
			alike(t, "a patch of its own", both.Cut(r), own.Cut(r))
		}
	}
	for i, r := range other.Refs(8, 8, 20) {
		if i%17 == 0 {
			here := samples.Ref{Day: days + r.Day, Window: r.Window}
			alike(t, "a patch of the other", both.Cut(here), other.Cut(r))
			alike(t, "the last observation there", both.Last(here, 30), other.Last(r, 30))
		}
	}
}
