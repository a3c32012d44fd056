package skill

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// edges are the upper ends, in cells from the nearest observation, of the classes
// that have a factor on sigma of their own, and centres the distances at which the
// factor of a class holds; between them it is interpolated.
var (
	edges   = [classes]float64{1.5, 3.5, 7.5, 15.5, math.Inf(1)}
	centres = [classes]float64{1, 2.5, 5.5, 11, 22}
)

const (
	classes = 5
	// ratiosOfADay is how many ratios of a class a scored day keeps: the errors of
	// a day are alike, and more would not tell more.
	ratiosOfADay = 16
	// fewestCells is how many scored cells a class of a day needs to be kept.
	fewestCells = 8
	// wideningDays is how many scored days make a widening: a season, because the
	// sea of another season errs otherwise.
	wideningDays = 60
	// shyDays is the weight, in scored days, of what is assumed without any.
	shyDays = 4
	// widest bounds the factor of a widening, and its inverse.
	widest = 4
)

// A ScoredDay keeps how far off the sigmas of a method were on a day: for each
// class of distance to the nearest observation, quantiles of |error| / sigma.
type ScoredDay struct {
	Day    time.Time          `json:"day"`
	Ratios [classes][]float32 `json:"ratios"`
}

// ScoreDay returns what the scored cells of a sample tell about its sigmas, which
// must be those of the method itself, before any widening.
func ScoreDay(s Sample) ScoredDay {
	day := ScoredDay{Day: s.Day}
	away := Distances(s.Visible, s.Height, s.Width)
	var all [classes][]float32
	for c, scored := range s.Scored {
		if sigma := s.Sigma[c]; scored && sigma > 0 {
			class := classOf(away[c])
			all[class] = append(all[class], float32(math.Abs(float64(s.Mean[c]-s.Truth[c])))/sigma)
		}
	}
	for class, ratios := range all {
		if len(ratios) < fewestCells {
			continue
		}
		slices.Sort(ratios)
		n := min(len(ratios), ratiosOfADay)
		for k := range n {
			day.Ratios[class] = append(day.Ratios[class], ratios[(2*k+1)*len(ratios)/(2*n)])
		}
	}
	return day
}

func classOf(cells float64) int {
	return slices.IndexFunc(edges[:], func(edge float64) bool { return cells <= edge })
}

// Factors are factors on sigma by the distance to the nearest observation, one
// for each class. Between the centres of the classes they are interpolated, so
// that a map of sigma has no steps.
type Factors [classes]float64

// At returns the factor at a distance in cells.
func (f Factors) At(cells float64) float64 {
	class, share := 0, 0.0
	switch last := classes - 1; {
	case cells >= centres[last]:
		class = last
	case cells > centres[0]:
		for cells >= centres[class+1] {
			class++
		}
		share = math.Log(cells/centres[class]) / math.Log(centres[class+1]/centres[class])
	}
	if share == 0 {
		return f[class]
	}
	return math.Pow(f[class], 1-share) * math.Pow(f[class+1], share)
}

// A Widening is what scored days tell about the sigmas of a method. The zero value
// comes from no day.
type Widening struct {
	Days    int // number of scored days behind it
	factors Factors
	trust   Factors // share of the scored days in what is applied
}

// Factors returns the factors on sigma: those of the scored days, drawn towards
// those that are assumed without any where few days were scored.
func (w Widening) Factors(assumed Factors) Factors {
	for class, trust := range w.trust {
		if trust > 0 {
			assumed[class] = math.Pow(assumed[class], 1-trust) * math.Pow(w.factors[class], trust)
		}
	}
	return assumed
}

// Unchanged are the factors that change nothing.
func Unchanged() Factors { return Factors{1, 1, 1, 1, 1} }

// Matching returns the factors with which sigmas are as large as others of the same
// cells, in the middle of each class of distance.
func Matching(sigma, other []float32, away []float64) Factors {
	var sums, counts Factors
	all, n := 0.0, 0.0
	for c := range sigma {
		if !(sigma[c] > 0 && other[c] > 0) || !finite(sigma[c]) || !finite(other[c]) || away[c] == 0 {
			continue
		}
		class, ratio := classOf(away[c]), math.Log(float64(other[c])/float64(sigma[c]))
		sums[class], counts[class] = sums[class]+ratio, counts[class]+1
		all, n = all+ratio, n+1
	}
	f := Unchanged()
	for class := range f {
		if n > 0 { // a class of few cells has the factor of all
			f[class] = bounded(math.Exp((sums[class] + fewestCells*all/n) / (counts[class] + fewestCells)))
		}
	}
	return f
}

func bounded(factor float64) float64 { return min(max(factor, 1/float64(widest)), widest) }

// Widen returns the widening under which 90 % of the errors of the scored days
// before a time lie in their 90 % interval. What later days show is not used:
// it would not have been known.
func Widen(days []ScoredDay, before time.Time) Widening {
	days = slices.DeleteFunc(slices.Clone(days), func(d ScoredDay) bool { return !d.Day.Before(before) })
	slices.SortStableFunc(days, func(a, b ScoredDay) int { return a.Day.Compare(b.Day) })
	days = days[max(len(days)-wideningDays, 0):]
	w := Widening{Days: len(days)}
	for class := range edges {
		var ratios []float32
		for _, d := range days {
			ratios = append(ratios, d.Ratios[class]...)
		}
		if len(ratios) == 0 {
			continue
		}
		slices.Sort(ratios)
		n := float64(len(ratios)) / ratiosOfADay
		w.factors[class] = bounded(float64(ratios[len(ratios)*9/10]) / ninety)
		w.trust[class] = n / (n + shyDays)
	}
	return w
}

// ninety is the half width of the 90 % interval of a Gaussian in sigmas.
const ninety = 1.6448536

// widening is a Widening as it is written down.
type widening struct {
	Days    int     `json:"days"`
	Factors Factors `json:"factors"`
	Trust   Factors `json:"trust"`
}

// MarshalJSON implements json.Marshaler: a fill job on another machine has it.
func (w Widening) MarshalJSON() ([]byte, error) {
	return json.Marshal(widening{Days: w.Days, Factors: w.factors, Trust: w.trust})
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Widening) UnmarshalJSON(text []byte) error {
	var told widening
	err := json.Unmarshal(text, &told)
	*w = Widening{Days: told.Days, factors: told.Factors, trust: told.Trust}
	return err
}
