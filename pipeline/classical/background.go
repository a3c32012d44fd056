package classical

import (
	"math"
	"slices"
)

const (
	// smoothCells is the usual width of the mean map, as the standard
	// deviation of its Gaussian in cells of the grid. On real chlorophyll 10 to
	// 30 do equally well as the background of optimal interpolation.
	smoothCells = 20
	// shyObservations is the weight of the overall mean, in observations: it
	// matters only where hardly anything was observed within reach.
	shyObservations = 1
	// shySpread is the same for the variance, which takes more values to estimate.
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
	mean, sd []float32 // without sd it is computed where it is asked for
	n        int       // number of observations
	weight   float64   // sum of their weights
	beyond   distant
	spread   func(row, col int) float32
}

// distant is what is known of places that no frame observed.
type distant struct {
	smoother smoother
	awayKM   []float64 // coarse distances to the nearest observation
	apartKM  float64   // mean distance of two observations
	variance float64   // of all observations about their level
}

// newBackground smooths the frames of s with a Gaussian of the given standard
// deviation, every observation counting alike but for those that come with more error than
// the better ones do. Far from all observations the
// mean and the variance go to those of the whole series.
func newBackground(s Series, sigmaKM float64) background {
	b := backgroundOf(s, sigmaKM)
	b.sd = make([]float32, s.Grid.Len())
	if b.n > 0 {
		b.beyond.smoother.eachCell(len(b.sd), func(i, row, col int) { b.sd[i] = b.spread(row, col) })
	}
	return b
}

// backgroundOf is newBackground without a map of the spread, for who looks at few cells.
func backgroundOf(s Series, sigmaKM float64) background {
	m := newSmoother(s.Grid, sigmaKM)
	b := background{mean: make([]float32, s.Grid.Len())}
	level, seen := s.level()
	if b.n = seen; seen == 0 {
		return b
	}
	// Sums of deviations instead of values: nothing is lost to rounding where
	// the field is far from zero, as kelvin are.
	sum, count := m.gather(), m.gather()
	erring := s.Erring()
	squares := m.eachObservation(s, erring, func(coarse, _ int, v, w float64) float64 {
		sum[coarse] += w * (v - level)
		count[coarse] += w
		return w * (v - level) * (v - level)
	})
	for _, w := range count {
		b.weight += w
	}
	near := m.smooth(count)
	b.spreadMean(m, m.smooth(sum), near, level)
	b.spread = b.measureSpread(s, m, erring, near)
	b.beyond = distant{m, m.awayKM(count), m.apartKM(count), squares / b.weight}
	return b
}

// level returns the mean of all observations and how many there are.
func (s Series) level() (mean float64, n int) {
	sums, counts := make([]float64, len(s.Frames)), make([]int, len(s.Frames))
	workers(s.Grid.Len()).each(len(s.Frames), func(f int) {
		for i, v := range s.Frames[f].Values {
			if s.observed(f, i) {
				sums[f] += float64(v)
				counts[f]++
			}
		}
	})
	for f := range sums {
		mean, n = mean+sums[f], n+counts[f]
	}
	return mean / max(float64(n), 1), n
}

// workers returns the number of workers that a grid of this size is worth: a
// patch takes no longer than starting a worker, and a caller with many patches
// has workers of its own.
func workers(cells int) OI {
	if cells < 1<<16 {
		return OI{Workers: 1}
	}
	return OI{}
}

// eachObservation calls f for all observations: the index of the coarse cell,
// that of the cell, the value, and its weight: 1, and less where its error is above
// that of the better ones, whose square is erring. Coarse rows are distributed among the
// workers, so f may change data of its coarse cell only. The returned sum of
// the results of f is the same on any number of workers.
func (m smoother) eachObservation(s Series, erring float64, f func(coarse, cell int, v, w float64) float64) float64 {
	rows, cols := len(m.rows.centre), len(m.cols.centre)
	sums := make([]float64, rows)
	workers(s.Grid.Len()).each(rows, func(r int) {
		first, _ := slices.BinarySearch(m.rows.of, r)
		last, _ := slices.BinarySearch(m.rows.of, r+1)
		for frame := range s.Frames {
			values, errors := s.Frames[frame].Values, s.Frames[frame].Errors
			for row := first * m.width; row < last*m.width; row += m.width {
				for j, v := range values[row : row+m.width] {
					if v-v == 0 && s.sea(row+j) { // an observation
						w := 1.0
						if errors != nil && known(errors[row+j]) {
							w = min(erring/float64(errors[row+j])/float64(errors[row+j]), 1)
						}
						sums[r] += f(r*cols+m.cols.of[j], row+j, float64(v), w)
					}
				}
			}
		}
	})
	total := 0.0
	for _, v := range sums {
		total += v
	}
	return total
}

// spreadMean stores the smooth mean at every cell.
func (b background) spreadMean(m smoother, sum, near []float64, level float64) {
	m.eachCell(len(b.mean), func(i, row, col int) {
		b.mean[i] = float32(level + m.at(sum, row, col)/(m.at(near, row, col)+shyObservations))
	})
}

// eachCell calls f for every cell of the grid, rows distributed among the workers.
func (m smoother) eachCell(cells int, f func(i, row, col int)) {
	workers(cells).each(cells/m.width, func(row int) {
		for col := range m.width {
			f(row*m.width+col, row, col)
		}
	})
}

// measureSpread returns the standard deviation of the observations about the mean map.
func (b background) measureSpread(s Series, m smoother, erring float64, near []float64) func(row, col int) float32 {
	squares := m.gather()
	total := m.eachObservation(s, erring, func(coarse, cell int, v, w float64) float64 {
		d := v - float64(b.mean[cell])
		squares[coarse] += w * d * d
		return w * d * d
	})
	overall := total / b.weight
	squares = m.smooth(squares)
	return func(row, col int) float32 {
		return float32(math.Sqrt((m.at(squares, row, col) + shySpread*overall) / (m.at(near, row, col) + shySpread)))
	}
}

// deviation returns the spread of observations at a cell.
func (b background) deviation(cell int) float64 {
	switch {
	case b.sd != nil:
		return float64(b.sd[cell])
	case b.n == 0:
		return 0
	}
	return float64(b.spread(cell/b.beyond.smoother.width, cell%b.beyond.smoother.width))
}

// far returns what the mean map does not know of a cell where nothing was observed:
// the variance of its error in units of sd².
// Two observations differ by the more the farther they are apart: the mean square
// of their differences is twice the variance of all, at their mean distance apart.
// It grows with the distance, as in a field whose spectrum falls with the square of
// the wave number, which those of temperature and chlorophyll do at these scales,
// and a value that is carried that far errs by as much. A corner of a sea does not
// bound it.
func (b background) far(cell int) float32 {
	sd := b.deviation(cell)
	if b.n == 0 || !(sd > 0) {
		return 0
	}
	m := b.beyond.smoother
	// Coarse distances say nothing of the nearest coarse cell.
	km := max(m.at(b.beyond.awayKM, cell/m.width, cell%m.width)-m.coarseKM, 0)
	return float32(2 * b.beyond.variance / (sd * sd) * km / max(b.beyond.apartKM, m.sigmaKM))
}
