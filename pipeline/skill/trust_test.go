package skill

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var trustBegin = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

// departures returns scored days on which the truth is so much of the way of a
// model, with errors of its own beside it.
func departures(n int, share, noise float64, seed uint64) []Departure {
	r := rand.New(rand.NewPCG(seed, 1))
	const cells = 200
	days := make([]Departure, n)
	for i := range days {
		truth, oi, model := make([]float32, cells), make([]float32, cells), make([]float32, cells)
		scored := slices.Repeat([]bool{true}, cells)
		weather := noise * r.NormFloat64() // all cells of a day err alike
		for c := range truth {
			d := r.NormFloat64()
			oi[c] = float32(3 * r.NormFloat64())
			model[c] = oi[c] + float32(d)
			truth[c] = oi[c] + float32((share+weather)*d+noise*r.NormFloat64())
		}
		days[i] = DepartureOf(trustBegin.AddDate(0, 0, i), truth, oi, model, scored)
	}
	return days
}

func later(days []Departure) time.Time { return trustBegin.AddDate(0, 0, len(days)) }

func TestWithoutEvidenceNoModelIsFollowed(t *testing.T) {
	for n := range TrustDays {
		days := departures(n, 1, 0.01, 1)
		if got := Trusted(days, later(days), nil); got.Weight != 0 || got.Days != n {
			t.Errorf("%d perfect days: %+v, want the weight 0", n, got)
		}
	}
	same := departures(30, 1, 0.1, 1)
	for i := range same { // a model that says what optimal interpolation says
		same[i].DE, same[i].DD = 0, 0
	}
	if got := Trusted(same, later(same), nil); got.Weight != 0 {
		t.Errorf("a model that does not depart: %+v", got)
	}
}

func TestAGoodModelIsFollowedAndAHarmfulOneNot(t *testing.T) {
	for _, tt := range []struct {
		name         string
		share, noise float64
		least, most  float64
	}{
		{"it knows the truth", 1, 0.02, 0.95, 1},
		{"it undershoots", 1.5, 0.02, 1, 1}, // further than its own way is not gone
		{"half of its way is right", 0.5, 0.1, 0.35, 0.5},
		{"it knows nothing", 0, 1, 0, 0.1},
		{"it goes the wrong way", -0.5, 0.1, 0, 0},
	} {
		days := departures(60, tt.share, tt.noise, 7)
		if got := Trusted(days, later(days), nil).Weight; got < tt.least || got > tt.most {
			t.Errorf("%s: followed to %.3f, want %g to %g", tt.name, got, tt.least, tt.most)
		}
	}
}

// The weight is a lower bound: where a model is of no use it is followed by
// chance only, one time in twenty.
func TestAUselessModelIsRarelyFollowed(t *testing.T) {
	const runs = 400
	for _, n := range []int{TrustDays, 20, 60} {
		followed := 0
		for seed := range uint64(runs) {
			days := departures(n, 0, 1, 100+seed)
			if Trusted(days, later(days), nil).Weight > 0 {
				followed++
			}
		}
		if share := float64(followed) / runs; share > 0.1 || share == 0 {
			t.Errorf("%d days: a useless model is followed in %.3f of the cases, want about 0.05", n, share)
		}
	}
}

// On the days that it was found from, the weight never makes the error larger.
func TestTheWeightDoesNoHarmOnItsOwnDays(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		days := departures(10+r.IntN(60), r.NormFloat64(), 2*r.Float64(), seed)
		w := Trusted(days, later(days), nil).Weight
		if w < 0 || w > 1 || w != w {
			t.Fatalf("weight %v", w)
		}
		change := 0.0
		for _, d := range days[max(len(days)-trustDays, 0):] {
			change += w*w*d.DD - 2*w*d.DE
		}
		if change > 0 {
			t.Fatalf("seed %d: with the weight %.3f the squared error grows by %g", seed, w, change)
		}
	}
}

func TestMoreDaysOfTheSameKindAreMoreEvidence(t *testing.T) {
	pattern := departures(6, 0.6, 0.3, 5)
	last := 0.0
	for copies := 2; copies <= 10; copies++ {
		var days []Departure
		for k := range copies {
			for _, d := range pattern {
				d.Day = d.Day.AddDate(0, 0, k*len(pattern))
				days = append(days, d)
			}
		}
		w := Trusted(days, later(days), nil).Weight
		if w < last {
			t.Errorf("%d days: the weight fell from %.3f to %.3f", len(days), last, w)
		}
		last = w
	}
	if last < 0.3 {
		t.Errorf("sixty days make a weight of %.3f", last)
	}
}

func TestOnlyEarlierDaysAndTheLatestOfThemCount(t *testing.T) {
	days := departures(40, 0.5, 0.1, 9)
	at := trustBegin.AddDate(0, 0, 20)
	want := Trusted(days[:20], at, nil)
	changed := slices.Clone(days)
	for i := 20; i < len(changed); i++ {
		changed[i].DE *= -5
	}
	slices.Reverse(changed) // as a backfill may have scored them
	if got := Trusted(changed, at, nil); got != want || got.Days != 20 {
		t.Errorf("later days change %+v to %+v", want, got)
	}
	old := departures(200, -1, 0.1, 3)
	for i := len(old) - trustDays; i < len(old); i++ {
		old[i].DE = old[i].DD
	}
	if got := Trusted(old, later(old), nil); got.Weight < 0.99 || got.Days != trustDays {
		t.Errorf("a season of good days after bad ones: %+v", got)
	}
}

func TestCellsWithoutAValueAreNoEvidence(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	got := DepartureOf(trustBegin, []float32{2, nan, 2, 2, inf, 2}, []float32{1, 1, nan, 1, 1, 1}, []float32{3, 3, 3, nan, 3, 3},
		[]bool{true, true, true, true, true, false})
	if got.Cells != 1 || got.DE != 2 || got.DD != 4 {
		t.Errorf("%+v, want d = 2 and e = 1 of one cell", got)
	}
}

func TestStudentsQuantileIsThatOfTables(t *testing.T) {
	for freedom, want := range map[int]float64{2: 2.920, 3: 2.353, 6: 1.943, 19: 1.729} {
		if got := studentT95(freedom); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%d degrees of freedom: %.3f, want %.3f", freedom, got, want)
		}
	}
}

// seven seas, on each of which so much of the way was best.
var sevenSeas = []float64{0.87, 1.2, 0.36, 0.75, 0.95, 0.5, 1.15}

func TestOtherSeasAreAPriorAndFewDaysSuffice(t *testing.T) {
	known, ok := ElsewhereOf(sevenSeas)
	if !ok || known.Seas != 7 || math.Abs(known.Share-0.826) > 0.001 || known.Spread < 0.3 || known.Spread > 0.42 {
		t.Fatalf("%+v, %v: the mean is 0.826, and the deviation 0.31 before it is widened for seven", known, ok)
	}
	if _, ok := ElsewhereOf(sevenSeas[:2]); ok {
		t.Error("two seas say something of a third")
	}
	for n := range 60 {
		days := departures(n, 0.8, 0.3, uint64(n))
		got, alone := Trusted(days, later(days), &known), Trusted(days, later(days), nil)
		switch {
		case n < fewTrustDays && got.Weight != 0:
			t.Errorf("%d days: followed to %.2f, want not at all", n, got.Weight)
		case n >= fewTrustDays && (got.Weight < 0.15 || got.Weight > 0.9):
			t.Errorf("%d days: followed to %.2f, of 0.8 that are right", n, got.Weight)
		case n >= fewTrustDays && got.Weight < alone.Weight-0.05:
			t.Errorf("%d days: followed to %.2f, without other seas to %.2f", n, got.Weight, alone.Weight)
		}
	}
}

// Other seas do not outvote the dataset's own days.
func TestAModelThatHarmsHereIsGivenUpWhateverItDidElsewhere(t *testing.T) {
	known, _ := ElsewhereOf(sevenSeas)
	for seed := range uint64(100) {
		days := departures(TrustDays, -0.5, 0.2, seed)
		if got := Trusted(days, later(days), &known); got.Weight > 0 {
			t.Fatalf("seed %d: followed to %.2f after %d days that say the opposite", seed, got.Weight, TrustDays)
		}
	}
	useless := 0.0
	const runs = 200
	for seed := range uint64(runs) {
		days := departures(60, 0, 1, 500+seed)
		useless += Trusted(days, later(days), &known).Weight / runs
	}
	if useless > 0.1 {
		t.Errorf("a model of no use is followed to %.2f on the mean after a season", useless)
	}
}
