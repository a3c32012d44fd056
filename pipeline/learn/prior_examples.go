package learn

import (
	"context"
	"math"
	"math/rand/v2"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// maskExamples makes the examples that a prior learns from. Example n is a
// function of n, whichever worker makes it, and whenever.
type maskExamples struct {
	data     samples.Train
	refs     []samples.Ref
	cfg      PriorConfig
	model    *prior.Model // for the conditions of a place
	schedule prior.Schedule
	padded   int // side of a window, rounded up to a size that the network takes
	stream   noise.Stream
}

func newMaskExamples(data samples.Train, refs []samples.Ref, cfg PriorConfig, m *prior.Model, multiple int) maskExamples {
	return maskExamples{
		data: data, refs: refs, cfg: cfg, model: m, schedule: m.Schedule(),
		padded: (cfg.Side + multiple - 1) / multiple * multiple,
		stream: noise.New(cfg.Seed, "prior", "training"),
	}
}

// Tensors of a batch: latents [batch, 1, height, width], conditions [batch,
// conditions, height, width], levels [batch, prior.LevelNumbers] and the truth
// as the latents.
const (
	deltaTensor = iota
	placeTensor
	levelTensor
	truthTensor
)

// dims returns the dimensions of the tensors.
func (s maskExamples) dims() [][]int {
	n, side := s.cfg.Batch, s.padded
	return [][]int{{n, 1, side, side}, {n, s.cfg.Model.Conditions(), side, side}, {n, prior.LevelNumbers}, {n, 1, side, side}}
}

// fill is the filler of the prior.
func (s maskExamples) fill(_ context.Context, b *train.Batch, item int, n uint64) error {
	part := func(tensor int) []float32 {
		size := len(b.Buffers[tensor]) / s.cfg.Batch
		return b.Buffers[tensor][item*size : (item+1)*size]
	}
	stream := s.stream.Sub(n)
	r := stream.Rand(0)
	mask := s.draw(r)
	s.model.FillConditions(part(placeTensor), mask.Place, s.padded, s.padded)
	truth, delta := part(truthTensor), part(deltaTensor)
	clear(truth) // clears the example before, and padding
	for c, o := range mask.Observed {
		if o {
			truth[c/mask.Width*s.padded+c%mask.Width] = 1
		}
	}
	level := s.level(r)
	copy(part(levelTensor), level.Numbers())
	stream.Normals(delta, 1)
	noised(delta, truth, level)
	return nil
}

// noised turns standard normal numbers into the difference of the two channels
// of x = α·K·e + σ·ε at a level, whose own noise has variance 2σ².
func noised(x, truth []float32, l prior.Level) {
	signal, grain := float32(prior.Classes*l.Alpha), float32(math.Sqrt2*l.Sigma)
	for i, y := range truth {
		x[i] = signal*(2*y-1) + grain*x[i]
	}
}

// draw picks a window and the conditions of its place.
func (s maskExamples) draw(r *rand.Rand) prior.Mask {
	ref := s.refs[r.IntN(len(s.refs))]
	m := prior.MaskOf(s.data.Cut(ref))
	// Yesterday is dropped in half of the cases, so that one network serves
	// where it is known and where it is not.
	if s.cfg.Model.Yesterday && r.IntN(2) == 0 {
		m.Place = m.After(s.data.Yesterday(ref))
	}
	return m
}

// level draws a time: half of them even in time, half even in ln(α/σ), where
// walks have their steps.
func (s maskExamples) level(r *rand.Rand) prior.Level {
	if r.IntN(2) == 0 {
		const nearest = 1e-4 // time nearest to the mask: the gain of the evidence is large enough there for any use
		return s.schedule.At(nearest + (1-nearest)*r.Float64())
	}
	first, last := prior.LogSNRRange(s.cfg.Side * s.cfg.Side)
	return s.schedule.At(s.schedule.TimeOf(first + (last-first)*r.Float64()))
}
