package classical

import "math"

const (
	// smoothCells is the usual width of the mean map, as the standard
	// deviation of its Gaussian in cells of the grid. On real chlorophyll 10 to
	// 30 do equally well as the background of optimal interpolation.
	smoothCells = 20
	// shyObservations is the number of observations that the overall mean
	// counts for against the local ones: it decides only where hardly anything
	// was seen within reach.
	shyObservations = 1
	// shySpread is the same for the variance, which takes more values to know.
	shySpread = 30
)

// Climatology estimates the target by the smooth mean map of the whole series:
// at each cell the mean of all observations, weighted by a Gaussian of their
// distance with a standard deviation of 20 cells, whatever their time. Sigma
// is the spread of single observations about that map, smoothed alike. The
// target's own observations count like any other. Without any observation
// the estimate is NaN everywhere.
func Climatology(s Series, target int) Estimate {
	s.check(target)
	e := gaps(s.Grid.Len())
	b := newBackground(s, smoothCells*stepKM(s.Grid))
	if b.n == 0 {
		return e
	}
	for i := range e.Mean {
		if s.sea(i) {
			e.Mean[i], e.Sigma[i] = b.mean[i], b.sd[i]
		}
	}
	return e
}

// A background is the smooth mean map of a series and the spread of single
// observations about it, both defined at every cell of the grid.
type background struct {
	mean, sd []float32
	n        int // observations behind it
}

// newBackground smooths the frames of s with a Gaussian of the given standard
// deviation, every observation counting alike. Far from all observations the
// mean and the variance go to those of the whole series.
func newBackground(s Series, sigmaKM float64) background {
	m := newSmoother(s.Grid, sigmaKM)
	n := s.Grid.Len()
	sum, count := make([]float64, n), make([]float64, n)
	total, seen := 0.0, 0
	for f := range s.Frames {
		for i, v := range s.Frames[f].Values {
			if s.observed(f, i) {
				sum[i] += float64(v)
				count[i]++
				total += float64(v)
				seen++
			}
		}
	}
	b := background{mean: make([]float32, n), sd: make([]float32, n), n: seen}
	if seen == 0 {
		return b
	}
	overall := total / float64(seen)
	// Sums of deviations instead of values: nothing is lost to rounding where
	// the field is far from zero, as kelvin are.
	coarseSum, coarseCount := m.gather(), m.gather()
	for i := range sum {
		if count[i] > 0 {
			coarseSum[m.coarse(i)] += sum[i] - count[i]*overall
			coarseCount[m.coarse(i)] += count[i]
		}
	}
	near := m.smooth(coarseCount)
	b.spreadMean(m, m.smooth(coarseSum), near, overall)
	b.measureSpread(s, m, near)
	return b
}

// spreadMean stores the smooth mean at every cell.
func (b background) spreadMean(m smoother, sum, near []float64, overall float64) {
	for i := range b.mean {
		row, col := i/m.width, i%m.width
		b.mean[i] = float32(overall + m.at(sum, row, col)/(m.at(near, row, col)+shyObservations))
	}
}

// measureSpread stores the standard deviation of the observations about the
// mean map.
func (b background) measureSpread(s Series, m smoother, near []float64) {
	squares := m.gather()
	total := 0.0
	for f := range s.Frames {
		for i, v := range s.Frames[f].Values {
			if s.observed(f, i) {
				d := float64(v) - float64(b.mean[i])
				squares[m.coarse(i)] += d * d
				total += d * d
			}
		}
	}
	overall := total / float64(b.n)
	squares = m.smooth(squares)
	for i := range b.sd {
		row, col := i/m.width, i%m.width
		b.sd[i] = float32(math.Sqrt((m.at(squares, row, col) + shySpread*overall) / (m.at(near, row, col) + shySpread)))
	}
}
