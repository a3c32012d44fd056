package covariate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/skill"
)

// ridges are the penalties that are tried, in units of the mean square of the terms.
var ridges = []float64{1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1, 3, 10}

// sums are the normal equations of a day.
type sums struct {
	xx [][]float64 // of the terms
	xy []float64   // of the terms with the variable
	yy float64
	n  float64 // number of hidden cells
}

func newSums(n int) sums {
	s := sums{xx: make([][]float64, n), xy: make([]float64, n)}
	for i := range s.xx {
		s.xx[i] = make([]float64, n)
	}
	return s
}

// add adds a share of other sums.
func (s *sums) add(o sums, share float64) {
	for i := range s.xx {
		for j := range s.xx {
			s.xx[i][j] += share * o.xx[i][j]
		}
		s.xy[i] += share * o.xy[i]
	}
	s.yy += share * o.yy
	s.n += share * o.n
}

// of returns the sums of some of the terms.
func (s sums) of(terms []int) sums {
	out := newSums(len(terms))
	for a, i := range terms {
		for b, j := range terms {
			out.xx[a][b] = s.xx[i][j]
		}
		out.xy[a] = s.xy[i]
	}
	out.yy, out.n = s.yy, s.n
	return out
}

// solve returns the coefficients with a penalty.
func (s sums) solve(ridge float64) []float64 {
	n := len(s.xy)
	if n == 0 {
		return nil
	}
	trace := 0.0
	for i := range n {
		trace += s.xx[i][i] / float64(n)
	}
	m := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			m.SetSym(i, j, s.xx[i][j])
		}
		m.SetSym(i, i, s.xx[i][i]+ridge*trace+1e-12)
	}
	var c mat.Cholesky
	if !c.Factorize(m) {
		return make([]float64, n)
	}
	var out mat.VecDense
	if err := c.SolveVecTo(&out, mat.NewVecDense(n, s.xy)); err != nil {
		return make([]float64, n)
	}
	return slices.Clone(out.RawVector().Data)
}

// miss returns the squared error of coefficients.
func (s sums) miss(c []float64) float64 {
	e := s.yy
	for i := range c {
		e -= 2 * c[i] * s.xy[i]
		for j := range c {
			e += c[i] * c[j] * s.xx[i][j]
		}
	}
	return e
}

// fit returns the coefficients of the penalty that errs least on each day when it is
// left out, and that penalty; without any gain there they are zero.
func fit(days []sums, terms []int) (coefficients []float64, ridge float64) {
	total := newSums(len(terms))
	own := make([]sums, len(days))
	for i, d := range days {
		own[i] = d.of(terms)
		total.add(own[i], 1)
	}
	coefficients = make([]float64, len(terms))
	least := total.yy
	for _, r := range ridges {
		e := 0.0
		for _, d := range own {
			rest := newSums(len(terms))
			rest.add(total, 1)
			rest.add(d, -1)
			e += d.miss(rest.solve(r))
		}
		if e < least {
			least, ridge, coefficients = e, r, total.solve(r)
		}
	}
	return coefficients, ridge
}

// daysOf returns the normal equations of errors, day by day: of the variable itself on
// those of the terms.
func daysOf(misses []classical.Missed, scale []float64) []sums {
	byDay := map[int64]int{}
	var days []sums
	for _, m := range misses {
		at, known := byDay[m.Time.Unix()]
		if !known {
			at = len(days)
			byDay[m.Time.Unix()], days = at, append(days, newSums(len(scale)))
		}
		d := &days[at]
		for c, y := range m.By[0] {
			d.yy, d.n = d.yy+y*y, d.n+1
			for i := range scale {
				x := ratio(m.By[1+i][c], scale[i])
				d.xy[i] += x * y
				for j := range scale {
					d.xx[i][j] += x * ratio(m.By[1+j][c], scale[j])
				}
			}
		}
	}
	return days
}

// scales returns the spread of the errors of each term; 0: it has none.
func scales(misses []classical.Missed, terms int) []float64 {
	out := make([]float64, terms)
	for k := range out {
		sum, n := 0.0, 0.0
		for _, m := range misses {
			for _, x := range m.By[1+k] {
				sum, n = sum+x*x, n+1
			}
		}
		out[k] = math.Sqrt(sum / max(n, 1))
	}
	return out
}

// ratio is 0 where a term never varies.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// losses returns the squared errors of the variable less what some terms explain of it,
// an overlay each.
func losses(misses []classical.Missed, terms []int, slopes []float64) []skill.Loss {
	out := make([]skill.Loss, len(misses))
	for i, m := range misses {
		out[i] = skill.Loss{Day: m.Time, Pixels: float64(len(m.By[0]))}
		for c, e := range m.By[0] {
			for k, t := range terms {
				e -= slopes[k] * m.By[1+t][c]
			}
			out[i].Sum += e * e
		}
	}
	return out
}
