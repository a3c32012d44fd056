package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// checkFolds checks by hand that no case is calibrated by one that is near it, and
// that blocks are of consecutive days.
func checkFolds(t *testing.T, days []int64, apart int64, f Folds) {
	t.Helper()
	if len(f.Of) != len(days) {
		t.Fatalf("%d folds for %d cases", len(f.Of), len(days))
	}
	for h, by := range f.By {
		if len(by) == 0 {
			t.Fatalf("nothing calibrates fold %d of %v", h, days)
		}
		for _, j := range by {
			for i, fold := range f.Of {
				if away := max(days[i]-days[j], days[j]-days[i]); fold == h && away <= apart && !f.Self {
					t.Fatalf("day %d is calibrated by day %d, %d days away; at least %d must lie between", days[i], days[j], away, apart)
				}
			}
		}
	}
}

func TestNoCaseIsCalibratedByItsNeighbours(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		apart := int64(r.IntN(13))
		var days []int64
		day := int64(18000)
		for range 1 + r.IntN(5) { // stretches
			for range 1 + r.IntN(90) {
				for range r.IntN(4) { // overlays of the day
					days = append(days, day)
				}
				day++
			}
			day += int64(r.IntN(200))
		}
		if len(days) == 0 {
			continue
		}
		r.Shuffle(len(days), func(i, j int) { days[i], days[j] = days[j], days[i] })
		f := foldsOf(days, apart)
		checkFolds(t, days, apart, f)
		sorted := slices.Compact(slices.Sorted(slices.Values(days)))
		for i := 1; i < len(sorted) && f.Self; i++ {
			if before, after := sorted[i-1], sorted[i]; after-sorted[0] > apart && sorted[len(sorted)-1]-before > apart {
				t.Errorf("%v were not cut in two, %d days apart; a cut before %d would do", sorted, apart, after)
			}
		}
	}
}

// The months of the days do not matter: those of January alone, or of odd months
// alone, have two folds or more.
func TestDaysOfOneMonthHaveTwoFolds(t *testing.T) {
	daysOf := func(months ...time.Month) (days []int64) {
		for _, m := range months {
			for d := time.Date(2021, m, 1, 0, 0, 0, 0, time.UTC); d.Month() == m; d = d.AddDate(0, 0, 1) {
				days = append(days, d.Unix()/(24*3600))
			}
		}
		return days
	}
	for _, tt := range []struct {
		name  string
		days  []int64
		fewer int // days that calibrate every fold, at least
	}{
		{"January", daysOf(time.January), 3},
		{"odd months", daysOf(time.January, time.March, time.May), 31},
		{"even months", daysOf(time.February, time.June), 28},
		{"half a year", daysOf(time.January, time.February, time.March, time.April, time.May, time.June), 40},
	} {
		f := foldsOf(tt.days, 12)
		checkFolds(t, tt.days, 12, f)
		if f.Self || f.fewest() < tt.fewer {
			t.Errorf("%s: %d days calibrate (on themselves: %v), want %d", tt.name, f.fewest(), f.Self, tt.fewer)
		}
	}
	few := foldsOf(daysOf(time.January)[:12], 12)
	if !few.Self || len(few.By[0]) != 12 {
		t.Errorf("twelve days are too few to lie 12 days apart: %+v", few)
	}
}

// In the second of two stretches sigma is four times too small, in the first it is
// right. Calibrated on the first, the second must come out as badly as it is; if a
// stretch calibrated itself, both would look right.
func TestACalibrationOnItselfIsSeen(t *testing.T) {
	e := exam(t, impute.Past)
	answers := make([]Answer, e.Cases())
	r := rand.New(rand.NewPCG(5, 6))
	late := func(o samples.Overlay) bool { return o.Time.Month() > time.March }
	for i := range answers {
		o := e.Overlay(i)
		answers[i] = Answer{Mean: make([]float32, len(o.Values)), Sigma: make([]float32, len(o.Values))}
		for k, v := range o.Values {
			by := 1.0
			if late(o) {
				by = 4
			}
			answers[i].Mean[k], answers[i].Sigma[k] = v+float32(by*r.NormFloat64()), 1
		}
	}
	calibrated, err := e.Calibrated(answers)
	if err != nil {
		t.Fatal(err)
	}
	covered, all := 0.0, 0.0
	for i, a := range calibrated {
		o := e.Overlay(i)
		for k, scored := range o.Scored {
			if scored && late(o) {
				all++
				if math.Abs(float64(a.Mean[k]-o.Values[k])) <= 1.645*float64(a.Sigma[k]) {
					covered++
				}
			}
		}
	}
	if all == 0 || covered/all > 0.6 {
		t.Errorf("90 %% intervals cover %.2f of %.0f cells whose sigma other days say is right: it is a quarter of that", covered/all, all)
	}
}

// A score that was calibrated on itself says so, from the verdict to the table.
func TestATableMarksACalibrationOnItself(t *testing.T) {
	e := exam(t, impute.Past)
	e.Apart(1000)
	answers := make([]Answer, e.Cases())
	if _, err := e.Judge(t.Context(), Climatology(), func(i int, a Answer) { answers[i] = a }, nil); err != nil {
		t.Fatal(err)
	}
	table := func() string {
		m, err := e.Calibrated(answers)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Judge(t.Context(), Given(m), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewResults("methods", e, "given", []Verdict{v})
		if err != nil {
			t.Fatal(err)
		}
		return r.Markdown()
	}
	if text := table(); !strings.Contains(text, "given (calibrated on itself)") {
		t.Errorf("days that lie too close together are not marked:\n%s", text)
	}
	e.Apart(12)
	if text := table(); strings.Contains(text, "calibrated on itself") {
		t.Errorf("two stretches of days are marked as calibrated on themselves:\n%s", text)
	}
}
