package classical

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	// residualCells is the standard deviation, in cells, of the Gaussian that
	// averages the residual variance in space: a single cell has too few
	// observations to estimate it.
	residualCells = 5
	// cellsPerError is how many neighbouring cells share one error, so that
	// together they constrain the amplitudes of a frame as much as one.
	cellsPerError = 100
)

// An expansion is a series with its modes.
type expansion struct {
	series      Series
	bg          background
	factors     *factors
	uncertainty *uncertainty
	scale       float64 // factor on sigma from cross-validation
	most        float64 // the largest sigma, in units of the spread about the mean map
	errors      []float64
	iterations  int
}

// estimate returns the estimate of one frame.
func (e *expansion) estimate(frame int) Estimate {
	out := gaps(e.series.Grid.Len())
	for c := range out.Mean {
		if e.series.sea(c) {
			out.Mean[c], out.Sigma[c] = e.bg.mean[c], e.bg.sd[c]
		}
	}
	root := e.uncertainty.amplitudes(frame)
	for row, cell := range e.factors.rec.cells {
		c := int(cell)
		local := e.uncertainty.residual[row]
		out.Mean[c] = float32(float64(e.bg.mean[c]) + e.factors.at(row, frame))
		// Modes that fit every observation leave a residual of nothing, and a factor
		// on it of thousands, which says nothing of the amplitudes. An expansion that
		// was chosen before the mean map errs no more than that.
		most := e.most * float64(e.bg.sd[c])
		out.Sigma[c] = float32(min(e.scale*math.Sqrt(local+e.uncertainty.variance(root, row)), most))
		if e.series.observed(frame, c) {
			out.Mean[c], out.Sigma[c] = e.series.Frames[frame].Values[c], float32(math.Sqrt(local))
		}
	}
	return out
}

// An uncertainty is the error of the map in two parts: the residual variance
// that the modes do not explain, and the error of the amplitudes of a frame
// with few observations. The latter is the error of an optimal interpolation
// with the covariance that the modes span.
//
// See Beckers, Barth and Alvera-Azcárate, Ocean Science 2 (2006), 183-199.
type uncertainty struct {
	factors  *factors
	residual []float64   // residual variance of each row
	byFrame  [][]float64 // k × k per frame: Σ a aᵀ / variance over its observations
}

func newUncertainty(s Series, f *factors, d DINEOF) *uncertainty {
	u := &uncertainty{factors: f, residual: leftOver(s, f)}
	u.byFrame = make([][]float64, f.rec.frames)
	for t := range u.byFrame {
		u.byFrame[t] = make([]float64, f.k*f.k)
	}
	observers := make([][]int32, f.rec.frames)
	for row := range f.rec.cells {
		for e := f.rec.start[row]; e < f.rec.start[row+1]; e++ {
			observers[f.rec.frame[e]] = append(observers[f.rec.frame[e]], int32(row))
		}
	}
	d.each(f.rec.frames, func(t int) {
		for _, row := range observers[t] {
			amp := f.amp[int(row)*f.k : (int(row)+1)*f.k]
			weight := 1 / (u.residual[row] * cellsPerError)
			for a, v := range amp {
				for b := a; b < f.k; b++ {
					u.byFrame[t][a*f.k+b] += weight * v * amp[b]
				}
			}
		}
	})
	return u
}

// leftOver returns the smooth variance of the observations about the map, per
// row. It is never zero.
func leftOver(s Series, f *factors) []float64 {
	m := newSmoother(s.Grid, residualCells*stepKM(s.Grid))
	squares, counts := m.gather(), m.gather()
	total := 0.0
	for row, c := range f.rec.cells {
		for e := f.rec.start[row]; e < f.rec.start[row+1]; e++ {
			miss := float64(f.rec.value[e]) - f.at(row, int(f.rec.frame[e]))
			squares[m.coarse(int(c))] += miss * miss
			counts[m.coarse(int(c))]++
			total += miss * miss
		}
	}
	overall := total / float64(max(len(f.rec.value), 1))
	squares, counts = m.smooth(squares), m.smooth(counts)
	out := make([]float64, len(f.rec.cells))
	for row, c := range f.rec.cells {
		i, j := int(c)/m.width, int(c)%m.width
		out[row] = (m.at(squares, i, j) + shySpread*overall) / (m.at(counts, i, j) + shySpread)
		out[row] = max(out[row], math.SmallestNonzeroFloat32)
	}
	return out
}

// amplitudes returns a root of the error covariance of the amplitudes of a
// frame: the inverse of frames·I + Σ a aᵀ/(variance · cellsPerError) is root ·
// rootᵀ. Before any observation an amplitude has the variance 1/frames,
// because the squares of each sum to one.
func (u *uncertainty) amplitudes(frame int) *mat.TriDense {
	k := u.factors.k
	if k == 0 {
		return nil
	}
	precision := mat.NewSymDense(k, nil)
	for a := range k {
		for b := a; b < k; b++ {
			precision.SetSym(a, b, u.byFrame[frame][a*k+b])
		}
		precision.SetSym(a, a, precision.At(a, a)+float64(u.factors.rec.frames))
	}
	var chol mat.Cholesky
	if !chol.Factorize(precision) {
		panic("classical: precision of the amplitudes is not positive")
	}
	var upper, root mat.TriDense
	chol.UTo(&upper) // precision = upperᵀ · upper
	if err := root.InverseTri(&upper); err != nil {
		// Badly conditioned, not wrong: the inverse is still the best estimate.
		return &root
	}
	return &root
}

// variance returns the variance that the amplitudes give to a row.
func (u *uncertainty) variance(root *mat.TriDense, row int) float64 {
	k := u.factors.k
	if root == nil {
		return 0
	}
	amp := u.factors.amp[row*k : (row+1)*k]
	raw := root.RawTriangular()
	sum := 0.0
	for c := range k {
		dot := 0.0
		for a := 0; a <= c; a++ { // upper triangle
			dot += amp[a] * raw.Data[a*raw.Stride+c]
		}
		sum += dot * dot
	}
	return sum
}

// misses returns the errors of the mean map on held-out observations of a record
// beside the spread about it.
func (b background) misses(r *record, held []heldOut) []miss {
	out := make([]miss, len(held))
	for i, h := range held {
		out[i] = miss{by: float64(h.value), sigma: float64(b.sd[r.cells[h.row]])}
	}
	return out
}

// misses returns the errors on the held-out observations beside the sigma that the
// uncertainty claims for them.
func (u *uncertainty) misses(held []heldOut) []miss {
	roots := map[int32]*mat.TriDense{}
	out := make([]miss, len(held))
	for i, h := range held {
		if roots[h.frame] == nil {
			roots[h.frame] = u.amplitudes(int(h.frame))
		}
		out[i] = miss{
			by:    u.factors.at(h.row, int(h.frame)) - float64(h.value),
			sigma: math.Sqrt(u.residual[h.row] + u.variance(roots[h.frame], h.row)),
		}
	}
	return out
}
