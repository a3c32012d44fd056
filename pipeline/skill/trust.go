package skill

import (
	"math"
	"slices"
	"time"
)

const (
	// trustDays is how many scored days, the latest ones, make a trust: a season,
	// as for a widening.
	trustDays = 60
	// TrustDays is the number of scored days from which on a model may be followed.
	TrustDays = 10
	// trustBlock is how many successive scored days count as one piece of evidence:
	// the errors of neighbouring days are alike.
	trustBlock = 3
)

// A Departure is the evidence of one scored day for a model that departs from
// optimal interpolation, over the cells that were hidden: with d the mean of the
// model less that of optimal interpolation, and e the truth less that of optimal
// interpolation, the sums of d·e and d·d. Both means must come from the same
// inputs, none of them a hidden cell or a later day.
type Departure struct {
	Day   time.Time `json:"day"`
	DE    float64   `json:"de"`
	DD    float64   `json:"dd"`
	Cells int       `json:"cells"`
}

// DepartureOf returns the evidence of the scored cells of a day. A cell where one
// of the three has no value has no part in it.
func DepartureOf(day time.Time, truth, interpolated, modelled []float32, scored []bool) Departure {
	out := Departure{Day: day}
	for c, use := range scored {
		d, e := float64(modelled[c])-float64(interpolated[c]), float64(truth[c])-float64(interpolated[c])
		if use && !math.IsNaN(d*e) && !math.IsInf(d*e, 0) && !math.IsInf(d*d, 0) {
			out.DE, out.DD, out.Cells = out.DE+d*e, out.DD+d*d, out.Cells+1
		}
	}
	return out
}

// A Trust says how far a model is followed on its way from optimal interpolation.
type Trust struct {
	Weight float64 // 0: not at all, to 1: all the way
	Days   int     // number of scored days behind it
}

// Trusted returns how far scored days before a time say that a model should be
// followed. What later days show is not used: it would not have been known.
//
// If a share w of the departure d is taken, the squared error falls by
// 2w Σde − w² Σdd, which is most at w = Σde / Σdd and is no loss for any smaller
// w above 0. The weight is the lower end of the one-sided 95 % interval of that
// ratio, by a jackknife over blocks of days (Efron and Stein, Annals of Statistics
// 9 (1981), 586-596) with the quantile of Student's t: 0 with fewer than TrustDays
// days, and wherever the evidence may be chance.
func Trusted(days []Departure, before time.Time) Trust {
	days = slices.DeleteFunc(slices.Clone(days), func(d Departure) bool { return !d.Day.Before(before) || d.Cells == 0 })
	slices.SortStableFunc(days, func(a, b Departure) int { return a.Day.Compare(b.Day) })
	days = days[max(len(days)-trustDays, 0):]
	t := Trust{Days: len(days)}
	if len(days) < TrustDays {
		return t
	}
	blocks := make([]Departure, len(days)/trustBlock)
	var all Departure
	for i, d := range days {
		b := &blocks[min(i/trustBlock, len(blocks)-1)] // the last one takes the rest
		b.DE, b.DD = b.DE+d.DE, b.DD+d.DD
		all.DE, all.DD = all.DE+d.DE, all.DD+d.DD
	}
	ratio, n := all.DE/all.DD, float64(len(blocks))
	without := make([]float64, len(blocks))
	mean, squares := 0.0, 0.0
	for i, b := range blocks {
		without[i] = (all.DE - b.DE) / (all.DD - b.DD)
		mean += without[i] / n
	}
	for _, r := range without {
		squares += (r - mean) * (r - mean)
	}
	bound := ratio - studentT95(len(blocks)-1)*math.Sqrt((n-1)/n*squares)
	if bound > 0 { // false for NaN too: a model that does not depart shows nothing
		t.Weight = min(bound, 1)
	}
	return t
}

// studentT95 returns the 95 % quantile of Student's t distribution, by the
// expansion about that of the Gaussian (Abramowitz and Stegun 26.7.5), which for
// two degrees of freedom, the fewest here, is off by 2 %.
func studentT95(freedom int) float64 {
	const x = 1.6448536
	const x3, x5, x7 = x * x * x, x * x * x * x * x, x * x * x * x * x * x * x
	v := float64(freedom)
	return x + (x3+x)/(4*v) + (5*x5+16*x3+3*x)/(96*v*v) + (3*x7+19*x5+17*x3-15*x)/(384*v*v*v)
}
