package evaluate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// A Case is one window to fill. It holds everything a method may use, in
// normalised anomalies.
type Case struct {
	Inputs impute.Inputs    // inputs of a network
	Series classical.Series // inputs of a classical method: the same days, the same cells
	Target int              // index of the day to fill in Series
	Number int              // case number, for noise that must not depend on batches
}

// An Answer is a method's estimate for every sea cell, in normalised
// anomalies.
type Answer struct {
	Mean    []float32
	Sigma   []float32   // nil: the method gives no uncertainty
	Members [][]float32 // nil: the method has no ensemble
	Centred bool        // Members were moved so that their mean is Mean
	Calls   int         // network calls for each member; 0: not counted
	// SelfCalibrated says that Sigma or Members were calibrated on the very cases
	// that they are scored on.
	SelfCalibrated bool
}

// A Method fills cases. Its name and seed tell it from others; methods of one
// name are one row of a table.
type Method struct {
	Name string
	Seed uint64
	Fill func(ctx context.Context, cases []Case) ([]Answer, error)
}

// Remembered returns a method that gives the answers of m, each of which it asks for
// once. It keeps them, so it is for one exam.
func Remembered(m Method) Method {
	var mu sync.Mutex
	known := map[int]Answer{}
	return Method{Name: m.Name, Seed: m.Seed, Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		var asked []Case
		for _, c := range cases {
			if _, ok := known[c.Number]; !ok {
				asked = append(asked, c)
			}
		}
		if len(asked) > 0 {
			said, err := m.Fill(ctx, asked)
			if err != nil {
				return nil, err
			}
			for i, a := range said {
				known[asked[i].Number] = a
			}
		}
		out := make([]Answer, len(cases))
		for i, c := range cases {
			out[i] = known[c.Number]
		}
		return out, nil
	}}
}

// Exam is a set of cases on which methods are judged.
type Exam struct {
	held     samples.HeldOut
	around   impute.Surroundings
	overlays []samples.Overlay
	mode     impute.Mode
	options  skill.Options
	level    map[*samples.Place]float64 // common mean of the scaling, in the space of the transform
	weights  [][]float32                // weights of the scored cells of each overlay; nil before WeighGaps
	analyses sync.Map                   // analysis by case number: made once for all methods

	apartDays int // days between a case and those that calibrate it
}

type analysis struct{ value, sigma []float32 }

// NewExam returns the exam on the overlays of held, in a mode: with the past
// only, or with the future too. around must be of held.
func NewExam(held samples.HeldOut, around impute.Surroundings, overlays []samples.Overlay, mode impute.Mode) (*Exam, error) {
	if len(overlays) == 0 {
		return nil, samples.ErrNoOverlays
	}
	e := &Exam{held: held, around: around, overlays: overlays, mode: mode, options: skill.DefaultOptions(), apartDays: samples.DefaultSplit().GapDays}
	e.options.Range = valueRange(overlays)
	e.level = map[*samples.Place]float64{}
	for _, p := range held.Places() {
		e.level[p] = levelOf(p)
	}
	return e, nil
}

// levelOf returns the mean of the mean map over the sea.
func levelOf(p *samples.Place) float64 {
	mean, n := 0.0, 0
	for i, sea := range p.Sea {
		if sea {
			mean, n = mean+float64(p.Scaling.Mean[i]), n+1
		}
	}
	return mean / float64(n)
}

// Blocks sets how many consecutive days the bootstrap draws together. With fewer
// than the default it treats dependent days as independent, and its intervals
// are too narrow; a short series leaves no choice.
func (e *Exam) Blocks(days int) { e.options.Bootstrap.BlockDays = days }

// Apart sets how many days lie at least between a case and those that calibrate
// it: the gap of the split that the exam is of.
func (e *Exam) Apart(days int) { e.apartDays = days }

// Cases returns the number of cases.
func (e *Exam) Cases() int { return len(e.overlays) }

// Mode returns which days around a day methods may use.
func (e *Exam) Mode() impute.Mode { return e.mode }

// Overlay returns the overlay behind case i, for pictures.
func (e *Exam) Overlay(i int) samples.Overlay { return e.overlays[i] }

// Case returns case i, with nothing in it but visible cells.
func (e *Exam) Case(i int) (Case, error) {
	o := e.overlays[i]
	past, future := e.mode.Window()
	series, target := e.held.Around(o.Ref, o.Visible, past, future)
	in, err := e.inputs(i)
	in.Values = blank(in.Values, o.Visible)
	return Case{Inputs: in, Series: series, Target: target, Number: i}, err
}

// inputs returns the network's inputs for case i, hidden values included.
func (e *Exam) inputs(i int) (impute.Inputs, error) {
	o := e.overlays[i]
	if kept, ok := e.analyses.Load(i); ok {
		in := e.around.Inputs(o.Ref, o.Visible, e.mode)
		in.Analysis, in.AnalysisSigma = kept.(analysis).value, kept.(analysis).sigma
		return in, nil
	}
	in, err := e.around.Analysed(o.Ref, o.Visible, e.mode)
	if err == nil && in.Analysis != nil {
		e.analyses.Store(i, analysis{in.Analysis, in.AnalysisSigma})
	}
	return in, err
}

// blank returns values with NaN in all but the visible cells.
func blank(values []float32, visible []bool) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = field.NaN()
		if visible[i] {
			out[i] = v
		}
	}
	return out
}

// Verdict is the scores of one method.
type Verdict struct {
	Method  string        `json:"method"`
	Seed    uint64        `json:"seed"`
	Summary skill.Summary `json:"summary"`
	Seconds float64       `json:"seconds,omitempty"` // time to fill all cases
	// SelfCalibrated says that the uncertainty was calibrated on the cases that it
	// is scored on, so that CRPS and coverage look better than they are.
	SelfCalibrated bool `json:"self_calibrated,omitempty"`

	Losses Losses `json:"-"` // losses case by case, for comparisons
}

// Losses are the losses of a method on each case, in the order of the cases.
type Losses struct {
	Squared []skill.Loss `json:"squared"`
	CRPS    []skill.Loss `json:"crps,omitempty"`    // CRPS of the members if there are some, else of mean and sigma
	Covered []skill.Loss `json:"covered,omitempty"` // truths in their 90 % interval, of the same
}

func lossesOf(s *skill.Scores) Losses {
	l := Losses{Squared: s.SquaredErrors(), CRPS: s.EnsembleCRPS(), Covered: s.Covered()}
	if len(l.CRPS) == 0 {
		l.CRPS = s.GaussianCRPS()
	}
	return l
}

// batchCases is how many cases a method gets at a time: enough for a network,
// few enough for steady progress reports.
const batchCases = 32

// Judge scores a method on every case. keep, if not nil, is called with every
// answer and its case number; progress with the cases done and their total.
func (e *Exam) Judge(ctx context.Context, m Method, keep func(i int, a Answer), progress func(done, total int)) (Verdict, error) {
	v, scores := Verdict{Method: m.Name, Seed: m.Seed}, skill.NewScores(e.options)
	for first := 0; first < len(e.overlays); first += batchCases {
		end := min(first+batchCases, len(e.overlays))
		cases, err := e.cases(ctx, first, end)
		if err != nil {
			return v, err
		}
		start := time.Now()
		answers, err := m.Fill(ctx, cases)
		v.Seconds += time.Since(start).Seconds()
		if err != nil {
			return v, fmt.Errorf("%s on cases %d to %d: %w", m.Name, first, end-1, err)
		}
		if len(answers) != len(cases) {
			return v, fmt.Errorf("%s returned %d answers to %d cases", m.Name, len(answers), len(cases))
		}
		for k, a := range answers {
			if err := scores.Add(e.sample(first+k, a)); err != nil {
				return v, fmt.Errorf("score %s on case %d: %w", m.Name, first+k, err)
			}
			v.SelfCalibrated = v.SelfCalibrated || a.SelfCalibrated
			if keep != nil {
				keep(first+k, a)
			}
		}
		if progress != nil {
			progress(end, len(e.overlays))
		}
	}
	v.Summary, v.Losses = scores.Summary(), lossesOf(scores)
	return v, nil
}

// cases returns cases first to end-1.
func (e *Exam) cases(ctx context.Context, first, end int) ([]Case, error) {
	out := make([]Case, end-first)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range out {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				out[i], err = e.Case(first + i)
			}
			return err
		})
	}
	return out, group.Wait()
}

// sample returns the answer to a case with the truth, ready to be scored. The
// fields include the mean map, in units of the standard deviation: seams and
// spectra are those of the published map.
func (e *Exam) sample(i int, a Answer) skill.Sample {
	o := e.overlays[i]
	place := e.held.Place(o.Day)
	scaling, level := place.Scaling, e.level[place]
	offset := place.CutMap(scaling.Mean, o.Window)
	for k := range offset {
		offset[k] = float32((float64(offset[k]) - level) / scaling.Std)
	}
	add := func(values []float32) []float32 {
		out := make([]float32, len(values))
		for k := range out {
			out[k] = values[k] + offset[k]
		}
		return out
	}
	s := skill.Sample{
		Day: o.Time, Height: o.Window.Height, Width: o.Window.Width,
		Truth: add(o.Values), Mean: add(a.Mean), Sigma: a.Sigma, Visible: o.Visible, Scored: o.Scored, Centred: a.Centred,
		Physical: skill.Physical{Normalisation: field.Normalisation{Mean: level, Std: scaling.Std}, Transform: e.held.Transform()},
	}
	for _, m := range a.Members {
		s.Members = append(s.Members, add(m))
	}
	if e.weights != nil {
		s.Weights = e.weights[i]
	}
	return s
}

// Mapped returns normalised anomalies of the window of case i in the space of
// the transform, such as decimal logarithms, for pictures.
func (e *Exam) Mapped(i int, anomalies []float32) []float32 {
	place := e.held.Place(e.overlays[i].Day)
	mean := place.CutMap(place.Scaling.Mean, e.overlays[i].Window)
	out := make([]float32, len(anomalies))
	for k, a := range anomalies {
		out[k] = float32(float64(a)*place.Scaling.Std + float64(mean[k]))
	}
	return out
}

// Axes returns the coordinates of the rows and columns of the window of case i,
// and whether its values are decimal logarithms.
func (e *Exam) Axes(i int) (lat, lon []float64, log10 bool) {
	w := e.overlays[i].Window
	place := e.held.Place(e.overlays[i].Day)
	return along(place.Grid.Lat, w.Row, w.Height), along(place.Grid.Lon, w.Col, w.Width), e.held.Transform().Log10
}

// along returns n coordinates of an axis from one on; a window may reach beyond
// it, where it goes on with its first or last step.
func along(axis []float64, from, n int) []float64 {
	out := make([]float64, n)
	last := len(axis) - 1
	for k := range out {
		switch i := from + k; {
		case last == 0:
			out[k] = axis[0] + float64(i)
		case i < 0:
			out[k] = axis[0] + float64(i)*(axis[1]-axis[0])
		case i > last:
			out[k] = axis[last] + float64(i-last)*(axis[last]-axis[last-1])
		default:
			out[k] = axis[i]
		}
	}
	return out
}

// Against returns the paired difference in squared error of v from a
// reference on the same exam, and in CRPS where both have one: of the members
// if there are some, else of mean and sigma.
func (v Verdict) Against(ref Verdict) (mse skill.Difference, crps *skill.Difference, err error) {
	mse, crps, err = v.Losses.against(ref.Losses, skill.DefaultBootstrap())
	if err != nil {
		return mse, crps, fmt.Errorf("compare %s with %s: %w", v.Method, ref.Method, err)
	}
	return mse, crps, nil
}

func (l Losses) against(ref Losses, boot skill.Bootstrap) (mse skill.Difference, crps *skill.Difference, err error) {
	if mse, err = boot.Paired(l.Squared, ref.Squared); err != nil {
		return mse, nil, err
	}
	if len(l.CRPS) == 0 || len(ref.CRPS) == 0 {
		return mse, nil, nil
	}
	d, err := boot.Paired(l.CRPS, ref.CRPS)
	if err != nil {
		return mse, nil, fmt.Errorf("by CRPS: %w", err)
	}
	return mse, &d, nil
}

// valueRange returns the range of the scored values, for PSNR.
func valueRange(overlays []samples.Overlay) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, o := range overlays {
		for i, v := range o.Values {
			if o.Visible[i] || o.Scored[i] {
				low, high = min(low, float64(v)), max(high, float64(v))
			}
		}
	}
	return high - low
}
