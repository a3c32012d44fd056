package prior

import (
	"context"
	"math"
	"math/rand/v2"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// source makes examples to train on. Example n is a function of n: it does not
// matter who makes it, or when.
type source struct {
	data     samples.Train
	refs     []samples.Ref
	cfg      TrainConfig
	model    *Model // for the conditions of a place
	schedule Schedule
	padded   size
	stream   noise.Stream
}

func newSource(data samples.Train, refs []samples.Ref, cfg TrainConfig, m *Model) source {
	side := size{cfg.Side, cfg.Side}
	return source{
		data: data, refs: refs, cfg: cfg, model: m, schedule: m.schedule,
		padded: side.paddedTo(m.net.network.Multiple()),
		stream: noise.New(cfg.Seed, "prior", "training"),
	}
}

// Tensors of a batch: latents [batch, 1, height, width], conditions [batch,
// conditions, height, width], levels [batch, levelParts] and the truth as the
// latents.
const (
	deltaTensor = iota
	placeTensor
	levelTensor
	truthTensor
)

// dims returns those of the tensors.
func (s source) dims() [][]int {
	n, h, w := s.cfg.Batch, s.padded.height, s.padded.width
	return [][]int{{n, 1, h, w}, {n, s.cfg.Model.conditions(), h, w}, {n, levelParts}, {n, 1, h, w}}
}

// fill is the filler of the prior.
func (s source) fill(_ context.Context, b *train.Batch, item int, n uint64) error {
	part := func(tensor int) []float32 {
		size := len(b.Buffers[tensor]) / s.cfg.Batch
		return b.Buffers[tensor][item*size : (item+1)*size]
	}
	stream := s.stream.Sub(n)
	r := stream.Rand(0)
	mask := s.draw(r)
	s.model.fill(part(placeTensor), mask.Place, s.padded)
	truth, delta := part(truthTensor), part(deltaTensor)
	clear(truth) // of the example before, and padding
	for c, o := range mask.Observed {
		if o {
			truth[c/mask.Width*s.padded.width+c%mask.Width] = 1
		}
	}
	level := s.level(r)
	copy(part(levelTensor), levels(level, 1))
	stream.Normals(delta, 1)
	noised(delta, truth, level)
	return nil
}

// noised turns standard normal numbers into the difference of the two channels
// of x = α·K·e + σ·ε at a level, whose own noise has variance 2σ².
func noised(x, truth []float32, l Level) {
	signal, grain := float32(classes*l.Alpha), float32(math.Sqrt2*l.Sigma)
	for i, y := range truth {
		x[i] = signal*(2*y-1) + grain*x[i]
	}
}

// draw picks a window and what its network is told of it.
func (s source) draw(r *rand.Rand) Mask {
	ref := s.refs[r.IntN(len(s.refs))]
	m := MaskOf(s.data.Cut(ref))
	// Yesterday is dropped in half of the cases, so that one network serves
	// where it is known and where it is not.
	if s.cfg.Model.Yesterday && r.IntN(2) == 0 {
		m.Yesterday = known(s.data.Yesterday(ref))
	}
	return m
}

// level draws a time: half of them even in time, half even in ln(α/σ), where
// walks have their steps.
func (s source) level(r *rand.Rand) Level {
	if r.IntN(2) == 0 {
		const nearest = 1e-4 // to the mask, where the gain of the evidence is large enough for any use
		return s.schedule.At(nearest + (1-nearest)*r.Float64())
	}
	first, last := logSNRRange(s.cfg.Side * s.cfg.Side)
	return s.schedule.At(s.schedule.TimeOf(first + (last-first)*r.Float64()))
}
