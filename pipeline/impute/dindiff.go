package impute

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/train"
)

// DINDiff is the baseline of that name, built on the same network: a denoiser
// that predicts noise and is told the noise level of each cell: 0 where it is
// visible, t where it was hidden for training, 1 where it is missing and pure
// noise stands in. It is scored on what was hidden.
type DINDiff struct {
	config  TrainConfig
	shop    *Workshop
	operand *operand
}

const kindDINDiff = "dindiff"

// DINDiffConfig returns the settings of the baseline for a budget like cfg's.
func DINDiffConfig(cfg TrainConfig) TrainConfig {
	cfg.Clean, cfg.Beta, cfg.LossOn = 0, 0, OnQuery
	cfg.Design.Variance, cfg.Design.Departure, cfg.Design.Extras.Analysis = false, false, false
	return cfg
}

// TrainDINDiff trains the baseline. It ends as Train does.
func TrainDINDiff(ctx context.Context, shop *Workshop, m Material, source Source, cfg TrainConfig, hooks train.Hooks) (*DINDiff, train.Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, train.Report{}, fmt.Errorf("train config: %w", err)
	}
	network, err := nn.New(cfg.Design.network())
	if err != nil {
		return nil, train.Report{}, err
	}
	t := cfg.task(network)
	t.Kind, t.Loss, t.Fill = kindDINDiff, imputerLoss(network, 0, pointLoss), noiseLessons{newLessons(m, source, cfg)}.fill
	weights, report, err := shop.train(ctx, cfg, t, hooks)
	if err != nil {
		return nil, report, fmt.Errorf("train dindiff: %w", err)
	}
	o, err := newOperand(cfg.Design.network(), weights)
	return &DINDiff{config: cfg, shop: shop, operand: o}, report, err
}

// Close frees what the network holds on its device.
func (d *DINDiff) Close() {
	release(d.operand.vector)
	d.operand.vector = nil
}

// noiseLessons makes lessons whose query is noised and whose target is the
// noise.
type noiseLessons struct{ *lessons }

func (l noiseLessons) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.teach(ctx, b, n)
	if err != nil {
		return err
	}
	eps := t.level.eps
	if eps == nil { // a config with clean lessons: the query is noised all the same
		return fmt.Errorf("lesson %d has no noise; clean must be 0", n)
	}
	x, y := l.cfg.planes(b, imageTensor, item), l.cfg.planes(b, targetTensor, item)
	l.cfg.Design.encode(x, &t.in, level{})
	alpha, sigma := alphaSigma(t.level.t)
	values, times := x.plane(valuePlane), x.plane(maskPlane)
	target, weight, unit := y.plane(valueOfTarget), y.plane(weightOfTarget), y.plane(unitOfTarget)
	for i, v := range t.scene.patch.Values {
		target[i], weight[i], unit[i] = 0, 0, 1
		switch {
		case t.Context[i]:
			times[i] = 0
		case t.Query[i]:
			values[i], times[i] = alpha*v+sigma*eps[i], t.level.t
			target[i], weight[i] = eps[i], 1
		default:
			values[i], times[i] = eps[i], 1
		}
	}
	b.Buffers[timeTensor][item] = t.level.t
	x.flip(t.flipNS, t.flipWE)
	y.flip(t.flipNS, t.flipWE)
	return nil
}

// cleanLimit bounds what a nearly clean field may be, in standard deviations:
// next to pure noise the field is a small difference of large numbers.
const cleanLimit = 5

// Draw returns members of each window, by window and member, in so many steps
// from noise. Visible cells keep their value. All windows must have the same
// size; window i draws from streams[i].
func (d *DINDiff) Draw(ctx context.Context, in []Inputs, streams []noise.Stream, members, steps int) ([][][]float32, error) {
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
	for first := 0; first < len(in)*members; first += d.shop.cfg.Batch {
		end := min(first+d.shop.cfg.Batch, len(in)*members)
		for s := steps; s > 0; s-- {
			// Half a step from pure noise, where there would be nothing to divide by.
			t, next := (float32(s)-0.5)/float32(steps), max((float32(s)-1.5)/float32(steps), 0)
			if err := d.down(ctx, in, out, span{first, end}, times{t, next}); err != nil {
				return nil, fmt.Errorf("draw dindiff: %w", err)
			}
		}
	}
	return out, nil
}

type times struct{ now, next float32 }

// down takes the members of a span one step towards the field.
func (d *DINDiff) down(ctx context.Context, in []Inputs, members [][][]float32, s span, at times) error {
	batch, planes := d.shop.cfg.Batch, d.config.Design.planes()
	height, width := padded(in[0], d.operand.network)
	cells, each := height*width, len(members[0])
	data, clock := make([]float32, batch*planes*cells), make([]float32, batch)
	for i := s.first; i < s.end; i++ {
		w, x := &in[i/each], members[i/each][i%each]
		picture := image{data[(i-s.first)*planes*cells : (i-s.first+1)*planes*cells], height, width}
		d.config.Design.encode(picture, w, level{})
		values, levels := picture.plane(valuePlane), picture.plane(maskPlane)
		for k := range levels {
			levels[k] = 1 - levels[k] // beyond the window: missing
		}
		for k, visible := range w.Visible {
			if to := k/w.Width*width + k%w.Width; !visible {
				values[to], levels[to] = x[k], at.now
			}
		}
		clock[i-s.first] = at.now
	}
	image, t := tensors.FromFlatDataAndDimensions(data, batch, planes, height, width), tensors.FromFlatDataAndDimensions(clock, batch)
	defer release(image, t)
	answer, err := d.shop.run(ctx, "prediction", d.operand, predictionBody(d.operand.network), image, t)
	if err != nil {
		return err
	}
	alpha, sigma := alphaSigma(at.now)
	alphaNext, sigmaNext := alphaSigma(at.next)
	for i := s.first; i < s.end; i++ {
		w, x := &in[i/each], members[i/each][i%each]
		eps := answer[(i-s.first)*2*cells:]
		for k, visible := range w.Visible {
			if visible {
				x[k] = w.Values[k]
				continue
			}
			e := eps[k/w.Width*width+k%w.Width]
			clean := min(max((x[k]-sigma*e)/alpha, -cleanLimit), cleanLimit)
			x[k] = alphaNext*clean + sigmaNext*(x[k]-alpha*clean)/sigma
		}
	}
	return nil
}
