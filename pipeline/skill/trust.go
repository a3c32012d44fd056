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
	// TrustDays is the number of scored days from which on a model may be followed
	// of which nothing is known elsewhere, and fewTrustDays of another one.
	TrustDays    = 10
	fewTrustDays = 3
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

// An Elsewhere is what is known of a model from seas that it never saw: over
// these, the share of its way from optimal interpolation that would have been
// best.
type Elsewhere struct {
	Share  float64 `json:"share"`  // mean over the seas
	Spread float64 `json:"spread"` // standard deviation of that of one more sea
	Seas   int     `json:"seas"`
}

// fewestSeas are the fewest that say something of another one.
const fewestSeas = 3

// ElsewhereOf returns what the best shares on several seas say of another one;
// false: they are too few.
func ElsewhereOf(best []float64) (Elsewhere, bool) {
	n := float64(len(best))
	if len(best) < fewestSeas {
		return Elsewhere{}, false
	}
	mean, squares := 0.0, 0.0
	for _, b := range best {
		mean += b / n
	}
	for _, b := range best {
		squares += (b - mean) * (b - mean)
	}
	// The mean is not known exactly, and the deviation of few is known worse still.
	wider := studentT95(len(best)-1) / gauss95
	return Elsewhere{Share: mean, Spread: wider * math.Sqrt(squares/(n-1)*(1+1/n)), Seas: len(best)}, true
}

// Days returns the number of scored days from which on a model may be followed;
// nil: nothing is known of it elsewhere.
func (e *Elsewhere) Days() int {
	if e == nil {
		return TrustDays
	}
	return fewTrustDays
}

// A Trust says how far a model is followed on its way from optimal interpolation.
type Trust struct {
	Weight float64 // 0: not at all, to 1: all the way
	Days   int     // number of scored days behind it
	Wanted int     // number of scored days without which it is not followed at all
}

// Trusted returns how far scored days before a time say that a model should be
// followed. What later days show is not used: it would not have been known.
//
// If a share w of the departure d is taken, the squared error falls by
// 2w Σde − w² Σdd, which is most at w = Σde / Σdd and is no loss for any smaller
// w above 0. The weight is the lower end of the one-sided 95 % interval of that
// ratio, by a jackknife over blocks of days (Efron and Stein, Annals of Statistics
// 9 (1981), 586-596) with the quantile of Student's t. Where the model is known
// elsewhere, other seas are a prior of the ratio, and the interval is that of the
// posterior, so that a few days suffice. It is 0 with fewer days than
// Elsewhere.Days, and wherever the evidence may be chance.
func Trusted(days []Departure, before time.Time, known *Elsewhere) Trust {
	days = slices.DeleteFunc(slices.Clone(days), func(d Departure) bool { return !d.Day.Before(before) || d.Cells == 0 })
	slices.SortStableFunc(days, func(a, b Departure) int { return a.Day.Compare(b.Day) })
	days = days[max(len(days)-trustDays, 0):]
	t := Trust{Days: len(days), Wanted: known.Days()}
	if len(days) < t.Wanted {
		return t
	}
	share, deviation := bestShare(days)
	if known != nil && known.Spread > 0 {
		own, others := 1/(deviation*deviation), 1/(known.Spread*known.Spread)
		if math.IsInf(own, 0) { // days without any difference: they are too few to tell
			own = math.MaxFloat32
		}
		share, deviation = (share*own+known.Share*others)/(own+others), math.Sqrt(1/(own+others))
	}
	if bound := share - gauss95*deviation; bound > 0 { // false for NaN too: a model that does not depart shows nothing
		t.Weight = min(bound, 1)
	}
	return t
}

// bestShare returns the share of a model's departure that would have been best on
// days, and its standard deviation, so wide that Gaussian intervals hold.
func bestShare(days []Departure) (share, deviation float64) {
	size := trustBlock
	if len(days) < TrustDays {
		size = 1 // too few for blocks; Student's t makes up for some of it
	}
	blocks := make([]Departure, len(days)/size)
	var all Departure
	for i, d := range days {
		b := &blocks[min(i/size, len(blocks)-1)] // the last one takes the rest
		b.DE, b.DD = b.DE+d.DE, b.DD+d.DD
		all.DE, all.DD = all.DE+d.DE, all.DD+d.DD
	}
	n := float64(len(blocks))
	without := make([]float64, len(blocks))
	mean, squares := 0.0, 0.0
	for i, b := range blocks {
		without[i] = (all.DE - b.DE) / (all.DD - b.DD)
		mean += without[i] / n
	}
	for _, r := range without {
		squares += (r - mean) * (r - mean)
	}
	return all.DE / all.DD, studentT95(len(blocks)-1) / gauss95 * math.Sqrt((n-1)/n*squares)
}

// gauss95 is the 95 % quantile of the Gaussian distribution.
const gauss95 = 1.6448536

// studentT95 returns the 95 % quantile of Student's t distribution, by the
// expansion about that of the Gaussian (Abramowitz and Stegun 26.7.5), which for
// two degrees of freedom, the fewest here, is off by 2 %.
func studentT95(freedom int) float64 {
	const x = gauss95
	const x3, x5, x7 = x * x * x, x * x * x * x * x, x * x * x * x * x * x * x
	v := float64(freedom)
	return x + (x3+x)/(4*v) + (5*x5+16*x3+3*x)/(96*v*v) + (3*x7+19*x5+17*x3-15*x)/(384*v*v*v)
}
