package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Tuning holds the settings of Tune and of its overlays.
type Tuning struct {
	Start        OI            // start of the search; the zero value: DefaultOI
	Past, Future time.Duration // window of each analysis
	Apart        time.Duration // least time between a day and the day whose gaps are laid over it
	Overlays     int           // most days to score
	Pixels       int           // most hidden cells to score on a day
	Seed         uint64        // seed of the choice of days and cells
}

// DefaultTuning returns the tuning for an analysis that sees ten days back.
func DefaultTuning() Tuning {
	return Tuning{
		Past:     10 * 24 * time.Hour,
		Apart:    12 * 24 * time.Hour, // beyond the time scale of weather and of most chlorophyll
		Overlays: 120,
		Pixels:   100, // errors of neighbouring cells are alike: more days tell more than more cells
		Seed:     1,
	}
}

// A Score sums up the errors on the hidden cells of overlays.
type Score struct {
	Overlays, Pixels int
	MSE              float64 // in squared units of the series
	Coverage90       float64 // share of values within mean ± 1.645 sigma; 0.90 is calibrated
	SpreadSkill      float64 // root mean square of sigma over that of the error; 1 is calibrated, NaN without any error
}

// tuningRounds bounds the descent. The optimum is flat: on real chlorophyll
// all of tuning gains about 1 % of MSE over DefaultOI, so a longer search
// would fit the overlays and not the sea.
const tuningRounds = 2

// ninety is the half-width of the central 90 % of a Gaussian, in sigmas.
const ninety = 1.645

// ErrNoOverlays says that a series has no two days of which one could be laid
// over the other, so that nothing can be tuned on it.
var ErrNoOverlays = errors.New("no gaps to tune by")

// Tune finds the length, the time and the nugget with the least mean squared
// error on overlays, one after the other, from t.Start on, and then the
// SigmaScale with which 90 % of the hidden values lie in their 90 % interval.
// An overlay hides a day under the gaps of another day, so that they have the
// shapes of real gaps; other days stay as they are. The score is that of the
// result on the overlays that chose it.
//
// The same series, tuning and seed give the same result. Tune returns the error
// of ctx soon after ctx is done, and ErrNoOverlays where the series is too short,
// too clear or too cloudy.
func Tune(ctx context.Context, s Series, t Tuning) (OI, Score, error) {
	best := t.Start
	if best == (OI{}) {
		best = DefaultOI(s.Grid)
	}
	best.SigmaScale = 1
	if err := best.Validate(); err != nil {
		return OI{}, Score{}, fmt.Errorf("check the start of tuning: %w", err)
	}
	if len(s.Frames) == 0 {
		return OI{}, Score{}, ErrNoObservations
	}
	s.check(0)
	trial := newTrial(s.Detrended(), t, best) // errors are the same without the drift
	if len(trial.overlays) == 0 {
		return OI{}, Score{}, fmt.Errorf("%w: none of %d frames has one %v away that leaves %d cells visible and hides %d",
			ErrNoOverlays, len(s.Frames), t.Apart, leastCells, leastCells)
	}
	return tune(best, len(trial.overlays), func(candidates []OI, served bool) ([][]miss, error) {
		trial.served = served
		return trial.misses(ctx, candidates)
	})
}

// TuneOn is Tune on days that the caller has hidden parts of: in windows, or under
// gaps of its own choice. The grids must have the step of the one that start is
// for. Without a hidden cell it returns ErrNoOverlays.
func TuneOn(ctx context.Context, days []Hidden, start OI) (OI, Score, error) {
	start.SigmaScale = 1
	if err := start.Validate(); err != nil {
		return OI{}, Score{}, fmt.Errorf("check the start of tuning: %w", err)
	}
	cells := 0
	days = slices.Clone(days)
	for i, h := range days {
		h.Series.check(h.Target)
		cells += len(h.Cells)
		days[i] = h.detrended()
	}
	if cells == 0 {
		return OI{}, Score{}, fmt.Errorf("%w: no cell of %d days is hidden", ErrNoOverlays, len(days))
	}
	return tune(start, len(days), func(candidates []OI, served bool) ([][]miss, error) {
		return missesOf(ctx, len(days), func(i int) [][]miss {
			sphere := newSphere(days[i].Series.Grid)
			return days[i].misses(candidates, sphere, OI{Workers: 1}.buildTrees(days[i].Series, sphere), served)
		}, candidates)
	})
}

// missing returns, for each candidate, its errors on the days of a tuning.
type missing func(candidates []OI, served bool) ([][]miss, error)

// tune finds the settings from start on, and calibrates them.
func tune(start OI, days int, miss missing) (OI, Score, error) {
	best, err := descend(start, days, miss)
	if err != nil {
		return OI{}, Score{}, err
	}
	all, err := miss([]OI{best}, true)
	if err != nil {
		return OI{}, Score{}, err
	}
	misses := all[0]
	best.SigmaScale = calibration(misses)
	for i := range misses {
		misses[i].sigma *= best.SigmaScale
	}
	return best, score(misses, days), nil
}

// descend improves one setting after the other.
func descend(best OI, days int, miss missing) (OI, error) {
	for range tuningRounds {
		before := best
		for _, vary := range []func(OI) []OI{lengths, times, nuggets} {
			candidates := vary(best)
			errs := make([]float64, len(candidates))
			misses, err := miss(candidates, false)
			if err != nil {
				return best, err
			}
			for i, m := range misses {
				errs[i] = score(m, days).MSE
			}
			best = candidates[slices.Index(errs, slices.Min(errs))]
		}
		if best == before {
			break
		}
	}
	return best, nil
}

// The present value comes first in each list, so that it wins a tie.

func lengths(o OI) []OI { return scaled(o, func(c *OI) *float64 { return &c.LengthKM }) }

func times(o OI) []OI { return scaled(o, func(c *OI) *float64 { return &c.Days }) }

// scaled returns o with one of its settings halved, doubled and between.
func scaled(o OI, setting func(*OI) *float64) []OI {
	list := []OI{o}
	for _, factor := range []float64{0.5, math.Sqrt2 / 2, math.Sqrt2, 2} {
		c := o
		*setting(&c) *= factor
		list = append(list, c)
	}
	return list
}

func nuggets(o OI) []OI {
	list := []OI{o}
	for _, share := range []float64{0.02, 0.05, 0.1, 0.2, 0.3, 0.45} {
		c := o
		c.Nugget = share
		list = append(list, c)
	}
	return list
}

// calibration returns the factor on sigma with which 90 % of the misses lie
// within 1.645 sigma. Data without spread need none.
func calibration(misses []miss) float64 {
	ratios := make([]float64, 0, len(misses))
	for _, m := range misses {
		if m.sigma > 0 {
			ratios = append(ratios, m.ratio())
		}
	}
	if len(ratios) == 0 {
		return 1
	}
	slices.Sort(ratios)
	factor := ratios[len(ratios)*9/10] / ninety
	if factor == 0 {
		return 1
	}
	return factor
}

// score sums up the misses.
func score(misses []miss, overlays int) Score {
	s := Score{Overlays: overlays, Pixels: len(misses)}
	squares, variances, within := 0.0, 0.0, 0
	for _, m := range misses {
		squares += m.by * m.by
		variances += m.sigma * m.sigma
		if math.Abs(m.by) <= ninety*math.Sqrt(m.sigma*m.sigma+m.over) {
			within++
		}
	}
	n := float64(len(misses))
	s.MSE = squares / n
	s.Coverage90 = float64(within) / n
	s.SpreadSkill = math.Sqrt(variances / squares)
	return s
}
