package baselines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/train"
)

// DINDiff is the baseline of that name, built on the same network: a denoiser
// that predicts noise and is told the noise level of each cell: 0 where it is
// visible, t where it was hidden for training, 1 where it is missing or land and
// pure noise stands in. Its loss covers the hidden cells. It draws all missing
// sea as if it were hidden.
type DINDiff struct {
	design  impute.Design
	runner  *impute.Runner
	network *impute.Network
}

const kindDINDiff = "dindiff"

// DINDiffConfig returns the settings of the baseline for a budget like cfg's.
func DINDiffConfig(cfg learn.Config) learn.Config {
	cfg.Clean, cfg.Beta, cfg.LossOn = 0, 0, learn.OnQuery
	cfg.Design.Variance, cfg.Design.Departure, cfg.Design.Extras.Analysis = false, false, false
	return cfg
}

// TrainDINDiff trains the baseline. It ends as Train does.
func TrainDINDiff(ctx context.Context, tr *learn.Trainer, m learn.Material, source learn.Source, cfg learn.Config, hooks train.Hooks) (*DINDiff, train.Report, error) {
	weights, report, err := tr.TrainBy(ctx, kindDINDiff, noisedQuery(cfg.Design), m, source, cfg, hooks)
	if err != nil {
		return nil, report, err
	}
	n, err := impute.NewNetwork(tr.Runner(), cfg.Design.Network(), weights)
	return &DINDiff{design: cfg.Design, runner: tr.Runner(), network: n}, report, err
}

// Close frees the network's memory on its device.
func (d *DINDiff) Close() { d.network.Close() }

// noisedQuery draws examples whose query is noised and whose target is the noise.
func noisedQuery(d impute.Design) func(x, y impute.Image, t learn.Augmented) error {
	return func(x, y impute.Image, t learn.Augmented) error {
		eps := t.Level.Eps
		if eps == nil { // a config with clean examples, which the baseline does not have
			return errors.New("train DINDiff: an example has no noise: set clean to 0")
		}
		alpha, sigma := impute.AlphaSigma(t.Level.T)
		noised := slices.Clone(eps)
		target, weight := y.Plane(learn.ValueOfTarget), y.Plane(learn.WeightOfTarget)
		for i, v := range t.Scene.Patch.Values {
			target[i], weight[i] = 0, 0
			if t.Query[i] {
				noised[i] = alpha*v + sigma*eps[i]
				target[i], weight[i] = eps[i], 1
			}
		}
		encodeNoised(d, x, &t.In, noisedCells{noised, t.Query, t.Level.T})
		return nil
	}
}

// noisedCells are the cells of a window that are not visible.
type noisedCells struct {
	values []float32 // pure noise where not hidden
	hidden []bool
	t      float32 // level of the hidden ones
}

// encodeNoised writes the planes of a window, in training and in drawing alike.
// The plane of the mask holds levels. Beyond the window, where images are padded,
// it is land with the mean of the noise.
func encodeNoised(d impute.Design, m impute.Image, in *impute.Inputs, n noisedCells) {
	d.Encode(m, in, impute.Level{})
	values, levels := m.Plane(impute.ValuePlane), m.Plane(impute.MaskPlane)
	for k := range levels {
		levels[k] = 1
	}
	for k, visible := range in.Visible {
		to := k/in.Width*m.Width + k%in.Width
		switch {
		case visible:
			levels[to] = 0
		case n.hidden[k]:
			values[to], levels[to] = n.values[k], n.t
		default:
			values[to] = n.values[k]
		}
	}
}

// cleanLimit bounds the estimate of the clean field in standard deviations: next
// to pure noise it is a small difference of large numbers.
const cleanLimit = 5

// Draw returns members of each window, by window and member, in a number of steps
// from noise. Visible cells keep their value, and land keeps its noise. All
// windows must have the same size; window i draws from streams[i].
func (d *DINDiff) Draw(ctx context.Context, in []impute.Inputs, streams []noise.Stream, members, steps int) ([][][]float32, error) {
	out := make([][][]float32, len(in))
	for i := range in {
		out[i] = make([][]float32, members)
		if err := in[i].Validate(); err != nil {
			return nil, fmt.Errorf("draw dindiff %d: %w", i, err)
		}
		for m := range members {
			out[i][m] = make([]float32, in[i].Cells())
			streams[i].Sub(uint64(m)).Normals(out[i][m], 0)
		}
	}
	for first := 0; first < len(in)*members; first += d.runner.Batch() {
		end := min(first+d.runner.Batch(), len(in)*members)
		for s := steps; s > 0; s-- {
			if err := d.down(ctx, in, out, span{first, end}, timesOf(s, steps)); err != nil {
				return nil, fmt.Errorf("draw dindiff: %w", err)
			}
		}
	}
	return out, nil
}

type span struct{ first, end int }

type times struct{ now, next float32 }

// timesOf returns the times of a step, counted down from steps to 1. They lie
// half a step from pure noise, where there would be nothing to divide by.
func timesOf(step, steps int) times {
	return times{(float32(step) - 0.5) / float32(steps), max((float32(step)-1.5)/float32(steps), 0)}
}

// down takes the members of a span one step towards the field.
func (d *DINDiff) down(ctx context.Context, in []impute.Inputs, members [][][]float32, s span, at times) error {
	batch, planes := d.runner.Batch(), d.design.Planes()
	height, width := d.network.Padded(in[0])
	cells, each := height*width, len(members[0])
	data, clock := make([]float32, batch*planes*cells), make([]float32, batch)
	for i := s.first; i < s.end; i++ {
		w := &in[i/each]
		image := impute.Image{Data: data[(i-s.first)*planes*cells : (i-s.first+1)*planes*cells], Height: height, Width: width}
		encodeNoised(d.design, image, w, noisedCells{members[i/each][i%each], missing(w), at.now})
		clock[i-s.first] = at.now
	}
	answer, err := d.network.Predict(ctx, data, clock, height, width)
	if err != nil {
		return err
	}
	for i := s.first; i < s.end; i++ {
		w, x := &in[i/each], members[i/each][i%each]
		eps := answer[(i-s.first)*2*cells:]
		for k, hidden := range missing(w) {
			switch {
			case hidden:
				x[k] = at.step(x[k], eps[k/w.Width*width+k%w.Width])
			case w.Visible[k]:
				x[k] = w.Values[k]
			}
		}
	}
	return nil
}

// missing returns the cells that are drawn: sea that is not visible.
func missing(in *impute.Inputs) []bool {
	out := make([]bool, in.Cells())
	for k, sea := range in.Sea {
		out[k] = sea && !in.Visible[k]
	}
	return out
}

// step takes a cell from now to next, given its noise.
func (at times) step(x, eps float32) float32 {
	alpha, sigma := impute.AlphaSigma(at.now)
	alphaNext, sigmaNext := impute.AlphaSigma(at.next)
	clean := min(max((x-sigma*eps)/alpha, -cleanLimit), cleanLimit)
	return alphaNext*clean + sigmaNext*(x-alpha*clean)/sigma
}
