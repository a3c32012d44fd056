package learn

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// Material is the data of a training: the training side of a split and the
// backgrounds that were made of it, each of which may be nil.
type Material struct {
	Train         samples.Train
	Past, Delayed impute.Backgrounds
	Analyser      impute.Analyser // analyser of Train; used only where the design has an analysis
	// Analyses keeps the results of Analyser for further trainings; nil: each
	// training keeps its own.
	Analyses *Analyses
}

func (m Material) surroundings() impute.Surroundings {
	return impute.Surroundings{Days: m.Train, Past: m.Past, Delayed: m.Delayed, Analyser: m.Analyser}
}

// imputerExamples turns the examples of a source into the planes of a batch.
type imputerExamples struct {
	cfg      Config
	source   Source
	scenes   *scenes
	analyses *Analyses
	draws    noise.Stream // chooses neighbours to drop and noise levels
	eps      noise.Stream // the noise itself
}

func newExamples(m Material, source Source, cfg Config) *imputerExamples {
	analyses := m.Analyses
	if analyses == nil {
		analyses = NewAnalyses(cfg.CacheMB / 2) // the other half is for scenes
	}
	return &imputerExamples{
		cfg: cfg, source: source, analyses: analyses, scenes: &scenes{around: m.surroundings(), budgetBytes: int64(cfg.CacheMB/2) << 20},
		draws: noise.New(cfg.Seed, "draws"), eps: noise.New(cfg.Seed, "context noise"),
	}
}

// An Augmented is one example with all random choices made: which neighbours
// and cells it loses, its noise, and whether it is mirrored or negated.
type Augmented struct {
	Example
	In     impute.Inputs // the inputs of the network
	Scene  *impute.Scene
	Level  impute.Level
	flipNS bool
	flipWE bool
	negate bool
}

// Scratch of a batch, in windows.
const (
	scratchLast = iota
	scratchNext
	scratchEps
	scratchWindows
)

// augment draws example n. The scratch of b serves it until the next one.
func (l *imputerExamples) augment(ctx context.Context, b *train.Batch, n uint64) (Augmented, error) {
	example, err := l.source.Example(ctx, n)
	if err != nil {
		return Augmented{}, err
	}
	s := l.scenes.of(example.Ref)
	r := l.draws.Rand(n)
	mode := l.mode(r)
	t := Augmented{Example: example, Scene: s, In: s.Inputs(mode)}
	t.In.Visible = example.Context
	if l.cfg.Design.Extras.Analysis {
		if err := l.analyses.add(&t.In, example, mode, l.scenes.around); err != nil {
			return Augmented{}, err
		}
	}
	thin, keep := r.Float64() < l.cfg.Thin, r.Float64()
	clean, at := r.Float64() < l.cfg.Clean, r.Float32()
	t.flipNS, t.flipWE = l.cfg.Flip && r.Uint64()&1 == 1, l.cfg.Flip && r.Uint64()&2 == 2
	if thin {
		t.In.Last.Freshness = thinned(window(b, scratchLast), t.In.Last.Freshness, keep, r)
		t.In.Next.Freshness = thinned(window(b, scratchNext), t.In.Next.Freshness, keep, r)
	}
	if !clean {
		t.Level = impute.Level{T: at, Eps: window(b, scratchEps)}
		l.eps.Normals(t.Level.Eps, n)
	}
	t.negate = l.cfg.Negate && r.Uint64()&1 == 1 // after all other draws, which it leaves as they were
	return t, nil
}

// mode draws which neighbours an example has.
func (l *imputerExamples) mode(r *rand.Rand) impute.Mode {
	alone, blind := r.Float64() < l.cfg.DropTemporal, r.Float64() < l.cfg.DropFuture
	switch {
	case alone:
		return impute.Single
	case blind:
		return impute.Past
	default:
		return impute.Delayed
	}
}

// thinned stores fresh in dst with cells dropped at random.
func thinned(dst, fresh []float32, keep float64, r *rand.Rand) []float32 {
	if fresh == nil {
		return nil
	}
	for i, f := range fresh {
		dst[i] = 0
		if r.Float64() < keep {
			dst[i] = f
		}
	}
	return dst
}

// window returns one of the scratch windows of a batch.
func window(b *train.Batch, i int) []float32 {
	n := len(b.Scratch) / scratchWindows
	return b.Scratch[i*n : (i+1)*n]
}

// Tensors of a batch of the imputer: image [batch, planes, side, side], time
// [batch], and target with its weight and unit [batch, 3, side, side].
const (
	imageTensor = iota
	timeTensor
	targetTensor
)

// Planes of a target: the right answer of the network, where it counts, and the
// unit that the answer is in.
const (
	ValueOfTarget = iota
	WeightOfTarget
	UnitOfTarget
	targetPlanes
)

func (c Config) batchDims() [][]int {
	return [][]int{{c.Batch, c.Design.Planes(), c.Side, c.Side}, {c.Batch}, {c.Batch, targetPlanes, c.Side, c.Side}}
}

// fill is the filler of the imputer.
func (l *imputerExamples) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.augment(ctx, b, n)
	if err != nil {
		return err
	}
	x := l.cfg.planes(b, imageTensor, item)
	l.cfg.Design.Encode(x, &t.In, t.Level)
	b.Buffers[timeTensor][item] = t.Level.T
	y := l.cfg.planes(b, targetTensor, item)
	l.target(y, &t)
	if t.negate {
		negate(x, l.cfg.Design.Signed()...)
		negate(y, ValueOfTarget)
	}
	flip(x, t.flipNS, t.flipWE)
	flip(y, t.flipNS, t.flipWE)
	return nil
}

// target draws the planes of the target.
func (l *imputerExamples) target(y impute.Image, t *Augmented) {
	value, weight, unit := y.Plane(ValueOfTarget), y.Plane(WeightOfTarget), y.Plane(UnitOfTarget)
	for i, v := range t.Scene.Patch.Values {
		value[i], weight[i], unit[i] = 0, 0, l.cfg.Design.Unit(&t.In, i)
		if l.scored(t, i) && finite(v) {
			value[i], weight[i] = v-l.cfg.Design.Base(&t.In, i), 1
		}
	}
}

func finite(v float32) bool { return v-v == 0 }

func (l *imputerExamples) scored(t *Augmented, cell int) bool {
	return l.cfg.LossOn == OnObserved || t.Query[cell]
}

// planes returns those of an item of tensor i.
func (c Config) planes(b *train.Batch, i, item int) impute.Image {
	n := len(b.Buffers[i]) / c.Batch
	return impute.Image{Data: b.Buffers[i][item*n : (item+1)*n], Height: c.Side, Width: c.Side}
}

// negate changes the sign of planes.
func negate(m impute.Image, planes ...int) {
	for _, i := range planes {
		for cell, v := range m.Plane(i) {
			m.Plane(i)[cell] = -v
		}
	}
}

// flip mirrors all planes.
func flip(m impute.Image, northSouth, westEast bool) {
	cells := m.Height * m.Width
	for p := 0; p < len(m.Data); p += cells {
		plane := m.Data[p : p+cells]
		if northSouth {
			for row := range m.Height / 2 {
				a, b := plane[row*m.Width:(row+1)*m.Width], plane[(m.Height-1-row)*m.Width:(m.Height-row)*m.Width]
				for i := range a {
					a[i], b[i] = b[i], a[i]
				}
			}
		}
		if westEast {
			for row := range m.Height {
				line := plane[row*m.Width : (row+1)*m.Width]
				for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
					line[i], line[j] = line[j], line[i]
				}
			}
		}
	}
}

// scenes keeps the surroundings of patches, up to a budget: cutting a scene out
// takes longer than drawing its planes.
type scenes struct {
	around      impute.Surroundings
	budgetBytes int64

	used atomic.Int64
	kept sync.Map // samples.Ref to *Scene
}

func (s *scenes) of(r samples.Ref) *impute.Scene {
	if kept, ok := s.kept.Load(r); ok {
		return kept.(*impute.Scene)
	}
	sc := s.around.Scene(r)
	size := sc.Bytes()
	if s.used.Add(size) > s.budgetBytes {
		s.used.Add(-size)
		return sc
	}
	if kept, was := s.kept.LoadOrStore(r, sc); was {
		s.used.Add(-size)
		return kept.(*impute.Scene)
	}
	return sc
}
