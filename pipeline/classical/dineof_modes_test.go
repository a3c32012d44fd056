package classical

import "math"

// modeSet is the chosen expansion.
type modeSet struct {
	Count      int
	Errors     []float64   // root mean square error on the held-out observations, with 0, 1, 2, ... modes
	Explained  []float64   // share of each mode in the squared anomalies of the filled series, largest first
	Spatial    [][]float32 // each mode as a map in the units of the series; NaN on land, 0 where nothing was ever observed
	Temporal   [][]float64 // the amplitude of each mode in each frame; their squares sum to the number of frames
	Iterations int         // sum over all numbers of modes
}

// fillAll estimates all frames of s from one expansion, at hardly more than
// the cost of one.
func (d DINEOF) fillAll(s Series, progress func(done, total int)) ([]Estimate, modeSet, error) {
	if len(s.Frames) == 0 {
		return nil, modeSet{}, ErrNoObservations
	}
	s.check(0)
	e, err := d.expand(s, progress)
	if err != nil {
		return nil, modeSet{}, err
	}
	all := make([]Estimate, len(s.Frames))
	d.each(len(all), func(f int) { all[f] = e.estimate(f) })
	return all, e.modes(), nil
}

// modes returns the expansion as maps in the units of the series and amplitudes
// of unit variance.
func (e *expansion) modes() modeSet {
	f := e.factors
	m := modeSet{Count: f.k, Errors: e.errors, Iterations: e.iterations}
	perFrame := math.Sqrt(float64(f.rec.frames))
	total := f.total()
	for a := range f.k {
		spatial, temporal, squares := gappyMap(e.series), make([]float64, f.rec.frames), 0.0
		for t := range temporal {
			temporal[t] = f.basis[t*f.k+a] * perFrame
		}
		for row, c := range f.rec.cells {
			v := f.amp[row*f.k+a]
			squares += v * v
			spatial[c] = float32(v / perFrame)
		}
		m.Spatial = append(m.Spatial, spatial)
		m.Temporal = append(m.Temporal, temporal)
		m.Explained = append(m.Explained, squares/total)
	}
	return m
}

// gappyMap returns zero on the sea and NaN on land.
func gappyMap(s Series) []float32 {
	out := gaps(s.Grid.Len()).Mean
	for c := range out {
		if s.sea(c) {
			out[c] = 0
		}
	}
	return out
}

// total returns the sum of squares of the filled matrix.
func (f *factors) total() float64 {
	sum := 0.0
	for _, v := range f.amp {
		sum += v * v // columns of the basis are orthonormal
	}
	for row := range f.rec.cells {
		for e := f.rec.start[row]; e < f.rec.start[row+1]; e++ {
			v, at := float64(f.rec.value[e]), f.at(row, int(f.rec.frame[e]))
			sum += v*v - at*at
		}
	}
	return sum
}
