package classical

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"lacuna/internal/faults"
	"lacuna/pipeline/field"
)

// OI is optimal interpolation (kriging) in space and time.
//
// An observation is a smooth mean map of the series plus an anomaly, in units
// of the local spread about that map. The anomalies of two observations that
// are h kilometres and t days apart have the covariance
//
//	C(h, t) = (1 - Nugget) · exp(-h/LengthKM - t/Days) + 0.3
//
// and each has the variance 1.3. The constant is the variance of an error of
// the mean map that a neighbourhood shares. Where observations come with errors,
// the noise of each is its own, about the nugget (see excess). A cell is estimated by the linear
// combination of the nearest observations that has the least expected error
// under this covariance, and sigma is the root of that error. Solutions for
// places Spacing cells apart are blended, so that no step shows where the
// nearest observations change. Where no frame
// observed anything, the error of the mean map is added, which grows with the
// distance. Overlays of the frames' own gaps then calibrate sigma, by the size of
// the error that the covariance expects. Where frames have a drift, all of this is
// about the values less their drift, and that of the target is added in the end.
//
// See Cressie, Statistics for Spatial Data (1993), chapter 3, and Bretherton,
// Davis and Fandry, Deep-Sea Research 23 (1976), 559-582.
type OI struct {
	LengthKM   float64 // e-folding distance of the covariance
	Days       float64 // e-folding time of the covariance
	Nugget     float64 // share of uncorrelated noise in the variance, 0 to below 1
	Neighbours int     // observations in one solve
	PerSector  int     // most neighbours from one quadrant of one frame; more where frames are few
	Spacing    int     // cells from one solve to the next; solves between are blended
	SmoothKM   float64 // standard deviation of the Gaussian behind the mean map
	SigmaScale float64 // factor on sigma from Tune; 1 without tuning
	Overlays   int     // overlays of the frames' own gaps that calibrate sigma; 0: it stays as the covariance has it
	Workers    int     // goroutines; 0: as many as GOMAXPROCS
}

// DefaultOI returns the settings for data on which nothing was tuned. They come
// from overlays on chlorophyll at 0.2 and 4.5 km
// and sea surface temperature at 2 and 8 km: finer grids show finer structure,
// but not in proportion, and on most of them the MSE changes by a few per
// cent within a factor of two of these values.
func DefaultOI(g field.Grid) OI {
	step := stepKM(g)
	length := 42 * math.Sqrt(step) // 88 km on a grid of 4.4 km
	return OI{
		LengthKM:   length,
		Days:       5,
		Nugget:     0.2,
		Neighbours: 48,
		PerSector:  2,
		// A node a tenth of the length from the next.
		Spacing:    min(max(int(math.Round(length/step/10)), 1), 4),
		SmoothKM:   smoothCells * step,
		SigmaScale: 1,
		Overlays:   8,
	}
}

// Validate reports everything wrong with o, not just the first thing.
func (o OI) Validate() error {
	var errs faults.List
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	errs.Check(positive(o.LengthKM), "length is %g km, must be positive", o.LengthKM)
	errs.Check(positive(o.Days), "time scale is %g days, must be positive", o.Days)
	errs.Check(o.Nugget >= 0 && o.Nugget < 1, "nugget is %g, must be at least 0 and below 1", o.Nugget)
	errs.Check(o.Neighbours >= 1 && o.Neighbours <= 1000, "neighbours is %d, must be 1 to 1000", o.Neighbours)
	errs.Check(o.PerSector >= 1, "neighbours per sector is %d, must be positive", o.PerSector)
	errs.Check(o.Spacing >= 1, "spacing is %d cells, must be positive", o.Spacing)
	errs.Check(positive(o.SmoothKM), "smoothing is %g km, must be positive", o.SmoothKM)
	errs.Check(positive(o.SigmaScale), "sigma scale is %g, must be positive", o.SigmaScale)
	errs.Check(o.Workers >= 0, "workers is %d, must not be negative", o.Workers)
	return errs.Err()
}

// Fill estimates frame target of s. Every sea cell gets a mean and a sigma;
// a cell that the target observed keeps its value, with the noise of Nugget as
// its sigma. For a series without a single observation it returns
// ErrNoObservations.
//
// progress, if not nil, is called with the rows of nodes done, by one
// goroutine at a time and never after Fill has returned.
func (o OI) Fill(s Series, target int, progress func(done, total int)) (Estimate, error) {
	return o.FillContext(context.Background(), s, target, progress)
}

// FillContext is Fill that returns the error of ctx soon after ctx is done.
func (o OI) FillContext(ctx context.Context, s Series, target int, progress func(done, total int)) (Estimate, error) {
	s.check(target)
	if err := o.Validate(); err != nil {
		return Estimate{}, fmt.Errorf("check settings of optimal interpolation: %w", err)
	}
	whole := s
	s = s.Detrended()
	bg := newBackground(s, o.SmoothKM)
	if bg.n == 0 {
		return Estimate{}, ErrNoObservations
	}
	sphere := newSphere(s.Grid)
	a := &analysis{oi: o, series: s, target: target, bg: bg, sphere: sphere}
	trees := o.buildTrees(s, sphere)
	a.search(trees)
	var wide widening
	if o.Overlays > 0 {
		wide = a.widen(ctx, trees) // first, while the maps of the estimate take no memory yet
	}
	e := gaps(s.Grid.Len())
	a.keepObserved(e)
	a.fill(ctx, a.gap, e, progress)
	if o.Overlays > 0 {
		e = a.calibrated(e, wide)
	}
	whole.withDrift(e, target)
	return e, ctx.Err()
}

// buildTrees returns a search tree for each frame.
func (o OI) buildTrees(s Series, sphere *sphere) []boxTree {
	trees := make([]boxTree, len(s.Frames))
	o.each(len(trees), func(f int) {
		trees[f] = newBoxTree(sphere, s.Grid, func(c int) bool { return s.observed(f, c) })
	})
	return trees
}

// each calls f for 0..n-1 on all workers and waits for the last call.
func (o OI) each(n int, f func(i int)) {
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
