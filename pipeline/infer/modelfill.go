package infer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// A filling is the networks' answer for a field, in the space of the
// transform.
type filling struct {
	estimate    classical.Estimate
	own         []float32 // sigma of the estimate before it was widened; nil: it was not
	noise       []float32 // fitted standard error of the observations, NaN where there is none; nil: none was fitted
	members     [][]float32
	reliability []float32 // nil: not known, or not requested
	familiar    []float32 // sigma of optimal interpolation, calibrated, where the model was trained elsewhere; else nil
	apart       *Apart
	sampling    Sampling
	means       *Means // of the model; nil: it has one only
	took        Timing
}

// Timing is the time spent on a field, by stage.
type Timing struct {
	Analysis time.Duration `json:"analysis"` // scaling, composites and optimal interpolation
	Look     time.Duration `json:"look"`     // prediction by the imputer, all windows
	Members  time.Duration `json:"members"`
	// Network is the part of Look and Members in which the networks were
	// running, encoding included; the rest is cutting out and blending.
	Network time.Duration `json:"network"`
	Windows int           `json:"windows"` // windows with a gap
}

// fill fills frame target of s, which is already cut to its window of days.
func (m *Model) fill(ctx context.Context, s classical.Series, target int, how fillOptions) (filling, error) {
	how.progress = forward(how.progress)
	how.began = how.now()
	sub, err := m.prepare(ctx, s, target, how)
	if err != nil {
		return filling{}, err
	}
	how.analysis = how.now().Sub(how.began)
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := ctx.Err(); err != nil {
		return filling{}, err
	}
	how.began = how.now().Add(-how.analysis) // who waits for a turn has not lost the time
	for size := m.size(how.cfg.Network); ; {
		l := newLayout(sub, size, how.cfg.Network.OverlapCells)
		out, err := m.run(ctx, sub, l, how)
		if !errors.Is(err, engine.ErrOutOfMemory) {
			return out, err
		}
		smaller, ok := m.shrink(l.size)
		if !ok {
			return out, fmt.Errorf("even windows of %d x %d cells, the smallest, do not fit: %w", size.window, size.window, err)
		}
		size = smaller
	}
}

// fillOptions are the settings of one field's filling.
type fillOptions struct {
	cfg      Config
	now      func() time.Time
	progress func(done, total int) // in thousandths
	scaling  *samples.Scaling      // scaling of the scene; nil: that of the version
	// constants are those of the dataset, for a scaling of the scene: an analysis
	// that suits the place is the better start, also for a network that learned
	// elsewhere.
	constants *Constants
	centre    impute.Centre // mean to publish where there are two; empty: that of the version
	// covariates are those of the scene.
	covariates []Covariate
	last       bool // the series may be overwritten, and let go of but for the target

	// Set by fill.
	began    time.Time
	analysis time.Duration // that the analysis below the networks took
}

// part returns the progress callback of a stage, from and to in thousandths.
func (h fillOptions) part(from, to int) func(done, total int) {
	return func(done, total int) { h.progress(from+done*(to-from)/max(total, 1), 1000) }
}

// forward returns a progress callback that never goes back, even if work is repeated.
func forward(progress func(done, total int)) func(done, total int) {
	furthest := 0
	return func(done, total int) {
		if done > furthest {
			furthest = done
			progress(done, total)
		}
	}
}

// run predicts and draws members in the windows of a layout.
func (m *Model) run(ctx context.Context, sub *preparedField, l layout, how fillOptions) (filling, error) {
	predictBegan := how.now()
	m.busy = &busyTime{now: how.now}
	predicted, err := m.predict(ctx, sub, l, how.part(300, 400))
	if err != nil {
		return filling{}, err
	}
	out := filling{took: Timing{Analysis: how.analysis, Look: how.now().Sub(predictBegan), Windows: len(l.tiles)}}
	got := Speed{Analysis: how.analysis, Look: out.took.Look}
	draw := drawOptions{predicted: predicted, noise: m.noise(sub, how.cfg), progress: how.part(400, 1000)}
	if out.sampling, err = m.tier(ctx, sub, l, how, draw); err != nil {
		return filling{}, err
	}
	var members [][]float32
	draw.recipe = how.recipe(&out.sampling, m.members, m.version.MembersCalibration.Centre)
	if draw.recipe.Members > 0 {
		drawn := how.now()
		if members, err = m.draw(ctx, sub, l, draw); err != nil {
			return filling{}, err
		}
		out.took.Members = how.now().Sub(drawn)
		got.Step = out.took.Members / time.Duration(draw.recipe.Members*draw.recipe.ODE.Calls())
	}
	m.measured(sub.grid.Len(), got)
	out.took.Network = m.busy.total
	if in := &sub.inputs; !how.cfg.Details { // else reliability looks at them once more
		in.Last, in.Next, in.Analysis, in.Background, in.Covariates = samples.Composite{}, samples.Composite{}, nil, nil, nil
		clearUp(sub.grid.Len())
	}
	m.publish(&out, sub, predicted, members)
	if how.cfg.Details {
		out.reliability, err = m.reliable(ctx, sub, l)
	}
	return out, err
}

// noise returns the stream of the members' noise, keyed by the seed, the model
// and the time of the field.
func (m *Model) noise(sub *preparedField, cfg Config) noise.Stream {
	return noise.New(cfg.Network.Seed, m.version.Name, sub.time.UTC().Format(time.RFC3339Nano), "members")
}

// spreadMembers is the smallest ensemble whose spread becomes the uncertainty:
// the standard deviation of ten numbers is known to a quarter, that of four to
// two fifths. With fewer members the uncertainty is that of the imputer.
const spreadMembers = 10

// publish calibrates and brings everything to the space of the transform. Where
// the sampling has a centre, the spread of the members becomes the uncertainty.
// Cells that were never query in training stay NaN.
func (m *Model) publish(out *filling, sub *preparedField, predicted impute.Prediction, members [][]float32) {
	n := len(sub.hidden)
	// A network with strides of two and four answers differently at every fourth
	// cell, by a hundredth of sigma, which is a tenth of its gradient.
	predicted.Sigma = field.Blur(predicted.Sigma, sub.hidden, sub.grid, 1)
	mean, sigma := predicted.Mean, make([]float32, n)
	eachCell(n, func(i int) {
		sigma[i] = m.version.Calibration.Apply(predicted.Sigma[i], sub.distance[i], sub.inputs.DayOfYear)
	})
	if len(members) > 0 {
		spreads := out.sampling.Centre != ""
		if spreads {
			out.means = &Means{OneStep: slices.Clone(predicted.Mean), Members: make([]float32, n)}
			eachCell(n, func(i int) { out.means.Members[i], _ = impute.Departure(members, i) })
			mean = slices.Clone(out.means.of(out.sampling.Centre))
		}
		spread := predicted.Sigma
		if m.version.MembersCalibration.Share < 1 {
			spread = steadySpread(sub, predicted.Sigma, members)
		}
		eachCell(n, func(i int) {
			if given := m.centre(sub, predicted.Sigma[i], spread[i], mean[i], members, i); spreads {
				sigma[i] = given
				for _, x := range [][]float32{out.means.OneStep, out.means.Members} {
					x[i] = sub.scaling.Inverse(x[i], i)
				}
			}
			for _, x := range members {
				x[i] = sub.scaling.Inverse(x[i], i)
			}
		})
		out.members = members
	}
	for i := range sub.calibrated {
		out.familiar = append(out.familiar, float32(float64(sub.calibrated[i])*sub.scaling.Std))
	}
	out.estimate = classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	eachCell(n, func(i int) {
		out.estimate.Mean[i] = sub.scaling.Inverse(mean[i], i)
		out.estimate.Sigma[i] = float32(float64(sigma[i]) * sub.scaling.Std)
		if q := sub.query; !sub.hidden[i] || q != nil && q[i] == 0 {
			out.estimate.Mean[i], out.estimate.Sigma[i] = field.NaN(), field.NaN()
		}
	})
	out.noise = sub.noise()
}

// noise returns the noise of the observations in the analysis that the imputer
// departs from; nil where it has none.
func (sub *preparedField) noise() []float32 {
	if sub.inputs.AnalysisSigma == nil {
		return nil
	}
	out := make([]float32, len(sub.hidden))
	eachCell(len(out), func(i int) {
		out[i] = field.NaN()
		if sub.inputs.Visible[i] {
			out[i] = float32(float64(sub.inputs.AnalysisSigma[i]) * sub.scaling.Std)
		}
	})
	return out
}

// steadyPasses is how often the spread of members is blurred: to a standard
// deviation of two and a half cells.
const steadyPasses = 6

// steadySpread returns the spread of members. That of sixteen is known to an eighth
// at a cell by itself, and an interval of twice the width here and half the width
// there is worse than one that is right on average: what a neighbourhood says of
// the ratio to the imputer's sigma, which has the detail, is taken together.
func steadySpread(sub *preparedField, said []float32, members [][]float32) []float32 {
	ratio := make([]float32, len(said))
	eachCell(len(ratio), func(i int) {
		if _, spread := impute.Departure(members, i); sub.hidden[i] && said[i] > 0 {
			ratio[i] = spread / said[i]
		}
	})
	ratio = field.Blur(ratio, sub.hidden, sub.grid, steadyPasses)
	eachCell(len(ratio), func(i int) { ratio[i] *= said[i] })
	return ratio
}

// centre moves the members of a cell to the published mean, gives them the spread
// of the calibration, and returns the standard deviation of a truth that is one
// more draw of the same kind. steady is their spread in the neighbourhood.
func (m *Model) centre(sub *preparedField, said, steady, mean float32, members [][]float32, i int) float32 {
	own, spread := impute.Departure(members, i)
	sigma := m.version.MembersCalibration.Sigma(said, steady, sub.distance[i], sub.inputs.DayOfYear)
	factor := float32(0)
	if spread > 0 {
		factor = sigma / spread
	}
	for _, x := range members {
		x[i] = mean + factor*(x[i]-own)
	}
	if m.version.MembersCalibration.Ratio > 0 {
		return sigma // calibrated to the size of the errors
	}
	count := float64(len(members))
	return sigma * float32(math.Sqrt((count+1)/max(count-1, 1)))
}

// reliable returns the reliability of cells, from the classifier or else from
// the map of the version.
func (m *Model) reliable(ctx context.Context, sub *preparedField, l layout) ([]float32, error) {
	if m.reliability == nil {
		return sub.query, nil
	}
	all := l.blend()
	for _, at := range l.tiles {
		p, err := m.reliability(ctx, sub.cut(l, at))
		if err != nil {
			return nil, err
		}
		all.add(at, p)
	}
	return all.sum, nil
}

// busyTime adds up the time in which at least one call is under way.
type busyTime struct {
	now   func() time.Time
	mu    sync.Mutex // guards the fields below
	calls int
	since time.Time
	total time.Duration
}

func (b *busyTime) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == 0 {
		b.since = b.now()
	}
	b.calls++
}

func (b *busyTime) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls--; b.calls == 0 {
		b.total += b.now().Sub(b.since)
	}
}
