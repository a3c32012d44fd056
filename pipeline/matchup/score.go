package matchup

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Pair is what a platform and a map say of one day, as medians in the space of the
// product.
type Pair struct {
	Platform        string
	Time            time.Time // of the map
	Cells           string    // Observed, Filled or NotTold
	InSitu, Product float64
	Sigma           float64 // NaN: not told
	Lower, Upper    float64 // NaN: not told
	Readings        int     // measurements that it stands for
}

// Kinds of cells, as tables name them.
const (
	All      = "all"
	Observed = "observed"
	Filled   = "filled"
	NotTold  = "not told" // by the product
)

// Pairs returns a pair for each platform, map and kind of cell, in order; and how
// many measurements have none, by why.
func (m *Matcher) Pairs() (pairs []Pair, passed map[string]int) {
	type group struct {
		platform string
		day      time.Time
		cells    string
	}
	members := map[group][]int{}
	passed = map[string]int{}
	for i, o := range m.obs {
		one := m.matches[i]
		if why := m.without(i); why != "" {
			passed[why]++
			continue
		}
		g := group{cmp.Or(o.Platform, fmt.Sprintf("cell %d", one.cell)), one.day, kindOf(one)}
		members[g] = append(members[g], i)
	}
	for g, all := range members {
		middle := func(of func(i int) float64) float64 {
			x := make([]float64, len(all))
			for k, i := range all {
				x[k] = of(i)
			}
			return median(x)
		}
		pairs = append(pairs, Pair{
			Platform: g.platform, Time: g.day, Cells: g.cells, Readings: len(all),
			InSitu:  middle(func(i int) float64 { return m.forward(m.obs[i].Value) }),
			Product: middle(func(i int) float64 { return m.matches[i].value }),
			Sigma:   middle(func(i int) float64 { return m.matches[i].sigma }),
			Lower:   middle(func(i int) float64 { return m.matches[i].lower }),
			Upper:   middle(func(i int) float64 { return m.matches[i].upper }),
		})
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Cells, b.Cells))
	})
	return pairs, passed
}

// without returns why a measurement has no match; empty: it has one.
func (m *Matcher) without(i int) string {
	switch {
	case m.transform.Log10 && !(m.obs[i].Value > 0):
		return "not positive"
	case !m.inTime[i]:
		return "no product in time"
	case !m.inGrid[i]:
		return "outside of the grid"
	case !m.matches[i].known:
		return "no value near"
	}
	return ""
}

func kindOf(one match) string {
	switch {
	case !one.told:
		return NotTold
	case one.filled:
		return Filled
	}
	return Observed
}

// Scores are the figures of some pairs. One that cannot be had is nil.
type Scores struct {
	Cells     string `json:"cells"`
	N         int    `json:"n"`         // pairs: platforms and days
	Platforms int    `json:"platforms"` // different ones
	Readings  int    `json:"readings"`  // measurements behind them
	// Bias is the mean of product less measurement, RMSE the root of the mean
	// square, Spread 1.4826 times the median distance from their median, which is
	// the standard deviation where errors are normal and does not mind a few that
	// are not.
	Bias        *float64 `json:"bias"`
	RMSE        *float64 `json:"rmse"`
	Spread      *float64 `json:"robust_spread"`
	Correlation *float64 `json:"correlation"`
	Coverage90  *float64 `json:"coverage_90"` // share of measurements in the product's 90 % interval, 0..1
	Sigma       *float64 `json:"mean_sigma"`  // mean uncertainty of the product at them
}

// Score returns the scores of all pairs, and of those of each kind of cell that
// there is.
func Score(pairs []Pair) []Scores {
	all := []Scores{scoresOf(All, pairs)}
	for _, kind := range []string{Observed, Filled} {
		some := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return p.Cells != kind })
		if len(some) > 0 {
			all = append(all, scoresOf(kind, some))
		}
	}
	return all
}

func scoresOf(cells string, pairs []Pair) Scores {
	s := Scores{Cells: cells, N: len(pairs)}
	platforms := map[string]bool{}
	var x, y, d, inside, sigma []float64
	for _, p := range pairs {
		platforms[p.Platform] = true
		s.Readings += p.Readings
		x, y, d = append(x, p.InSitu), append(y, p.Product), append(d, p.Product-p.InSitu)
		if p.Lower <= p.Upper { // false for NaN
			in := 0.0
			if p.InSitu >= p.Lower && p.InSitu <= p.Upper {
				in = 1
			}
			inside = append(inside, in)
		}
		if p.Sigma == p.Sigma {
			sigma = append(sigma, p.Sigma)
		}
	}
	s.Platforms = len(platforms)
	middle := median(d)
	squares, away := make([]float64, len(d)), make([]float64, len(d))
	for i, e := range d {
		squares[i], away[i] = e*e, math.Abs(e-middle)
	}
	const normal = 1.4826 // of the standard deviation to the median distance
	s.Bias, s.RMSE, s.Spread = told(mean(d)), told(math.Sqrt(mean(squares))), told(normal*median(away))
	s.Correlation, s.Coverage90, s.Sigma = told(correlation(x, y)), told(mean(inside)), told(mean(sigma))
	return s
}

// told returns a number that is one; nil for NaN.
func told(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x)) // NaN of none
}

// median returns the middle of x, which it sorts; NaN of none, or where one is NaN.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	if n == 0 || math.IsNaN(x[0]) { // NaN sorts first
		return math.NaN()
	}
	return (x[(n-1)/2] + x[n/2]) / 2
}

// correlation is that of Pearson; NaN of fewer than three.
func correlation(x, y []float64) float64 {
	if len(x) < 3 {
		return math.NaN()
	}
	mx, my := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		xx, yy, xy = xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my), xy+(x[i]-mx)*(y[i]-my)
	}
	return xy / math.Sqrt(xx*yy)
}
