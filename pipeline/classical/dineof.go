package classical

import (
	"fmt"
	"math"

	"lacuna/internal/faults"
)

// DINEOF fills gaps with the leading empirical orthogonal functions of the
// series itself.
//
// Anomalies about the smooth mean map form a matrix of cells by frames. Gaps
// start at zero; then in turn the leading k singular vectors of the matrix are
// improved and the gaps replaced by their product, until the map converges.
// k grows from one. Observations in the shape of clouds are held out, and the
// k that estimates them best is chosen; the chosen expansion then goes on with
// all observations. A Gaussian filter in time on the covariance of the frames
// keeps an expansion from depending on the few cells of one frame, and gives
// amplitudes to frames with too few observations to fit their own.
//
// The matrix is never formed: it is the observed residuals plus a product of
// two thin factors, so that an iteration costs the number of observations
// times k. One step of subspace iteration, started from the last one, stands
// for each singular value decomposition.
//
// See Beckers and Rixen, Journal of Atmospheric and Oceanic Technology 20
// (2003), 1839-1856, and Alvera-Azcárate and others, Ocean Science 5 (2009),
// 475-485. Unlike theirs, the subtracted mean varies in space, and the filter is
// the Gaussian that their diffusion steps tend to, which allows uneven times.
type DINEOF struct {
	MaxModes      int     // most modes that may be chosen
	Patience      int     // number of modes in a row without gain that ends the search
	HoldOut       float64 // share of the observations held out to choose the number of modes
	LeastCoverage float64 // frames with a smaller share of the sea observed are filled, but have no part in the modes
	FilterDays    float64 // standard deviation of the filter in time; 0: no filter
	Tolerance     float64 // convergence: root mean square change of the map over the spread of the anomalies
	MaxIterations int     // most iterations for each number of modes
	SmoothKM      float64 // standard deviation of the Gaussian behind the mean map; 0: 20 cells, as for Climatology
	Seed          uint64  // seed of the choice of held-out observations
	Workers       int     // goroutines; 0: as many as GOMAXPROCS
}

// DefaultDINEOF returns the settings for use without tuning.
func DefaultDINEOF() DINEOF {
	return DINEOF{
		MaxModes:      40,
		Patience:      3,
		HoldOut:       0.03, // 1 to 3 % is usual; fewer leave the choice to chance on short series
		LeastCoverage: 0.02, // the amplitudes of a frame with a few cells are noise, and can be large
		FilterDays:    0.5,  // bridges an empty frame; a day already costs structure on real chlorophyll
		Tolerance:     1e-3,
		MaxIterations: 100,
		Seed:          1,
	}
}

// Validate reports everything wrong with d, not just the first thing.
func (d DINEOF) Validate() error {
	var errs faults.List
	finite := func(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
	errs.Check(d.MaxModes >= 1, "most modes is %d, must be positive", d.MaxModes)
	errs.Check(d.Patience >= 1, "patience is %d modes, must be positive", d.Patience)
	errs.Check(d.HoldOut > 0 && d.HoldOut <= 0.5, "share held out is %g, must be above 0 and at most 0.5", d.HoldOut)
	errs.Check(d.LeastCoverage >= 0 && d.LeastCoverage < 1, "least coverage is %g, must be at least 0 and below 1", d.LeastCoverage)
	errs.Check(d.FilterDays >= 0 && finite(d.FilterDays), "filter is %g days, must not be negative", d.FilterDays)
	errs.Check(d.Tolerance > 0 && d.Tolerance < 1, "tolerance is %g, must be between 0 and 1", d.Tolerance)
	errs.Check(d.MaxIterations >= 1, "most iterations is %d, must be positive", d.MaxIterations)
	errs.Check(d.SmoothKM >= 0 && finite(d.SmoothKM), "smoothing is %g km, must not be negative", d.SmoothKM)
	errs.Check(d.Workers >= 0, "workers is %d, must not be negative", d.Workers)
	return errs.Err()
}

// Fill estimates frame target of s. Every sea cell gets a mean and a sigma; a
// cell that the target observed keeps its value. For a series without a single
// observation it returns ErrNoObservations.
//
// progress, if not nil, is called with the number of modes tried so far. The
// total is MaxModes; the search often ends before it.
func (d DINEOF) Fill(s Series, target int, progress func(done, total int)) (Estimate, error) {
	s.check(target)
	e, err := d.expand(s, progress)
	if err != nil {
		return Estimate{}, err
	}
	return e.estimate(target), nil
}

// expand chooses the number of modes and finds them.
func (d DINEOF) expand(s Series, progress func(done, total int)) (*expansion, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("check settings of DINEOF: %w", err)
	}
	smoothKM := d.SmoothKM
	if smoothKM == 0 {
		smoothKM = smoothCells * stepKM(s.Grid)
	}
	bg := newBackground(s, smoothKM)
	if bg.n == 0 {
		return nil, ErrNoObservations
	}
	whole := newRecord(s, bg).dense(d.LeastCoverage)
	kept, held := whole.holdOut(s, d)
	best, errs, iterations := d.choose(kept, held, s, progress)
	e := &expansion{series: s, bg: bg, errors: errs, scale: 1, most: 1}
	if len(held) > 0 {
		u := newUncertainty(s, best, d)
		e.scale = calibration(u.misses(held))
		e.most = max(calibration(bg.misses(whole, held)), 1)
	}
	e.factors = best.withRecord(whole)
	e.iterations = iterations + e.factors.converge(d)
	e.uncertainty = newUncertainty(s, e.factors, d)
	return e, nil
}

// choose returns the factors, fitted to the kept observations, with the least
// error on the held-out ones, and that error for each number of modes.
func (d DINEOF) choose(kept *record, held []heldOut, s Series, progress func(done, total int)) (*factors, []float64, int) {
	now := newFactors(kept, newTimeFilter(s, d.FilterDays))
	best := now
	errs := []float64{now.rmse(held)}
	most := min(d.MaxModes, len(s.Frames)-1)
	iterations, worse := 0, 0
	for k := 1; k <= most && worse < d.Patience; k++ {
		now = now.grown(k)
		iterations += now.converge(d)
		errs = append(errs, now.rmse(held))
		worse++
		if errs[k] < errs[best.k] {
			best, worse = now, 0
		}
		if progress != nil {
			progress(k, most)
		}
	}
	return best, errs, iterations
}

// each calls f for 0..n-1 on all workers and waits for the last call.
func (d DINEOF) each(n int, f func(i int)) { OI{Workers: d.Workers}.each(n, f) }
