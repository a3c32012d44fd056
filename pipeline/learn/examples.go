package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
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
	Analyser      impute.Analyser   // analyser of Train; used only where the design has an analysis
	Covariates    impute.Covariates // in the order of the design; nil: none
	// Analyses keeps the results of Analyser for further trainings; nil: each
	// training keeps its own.
	Analyses *Analyses
}

func (m Material) surroundings() impute.Surroundings {
	return impute.Surroundings{Days: m.Train, Past: m.Past, Delayed: m.Delayed, Analyser: m.Analyser, Covariates: m.Covariates}
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
	In    impute.Inputs // the inputs of the network
	Scene *impute.Scene
	Level impute.Level
	turn  impute.Turn
	scale float32 // factor of all anomalies; negative: also of the opposite sign
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
	t.turn.NorthSouth, t.turn.WestEast = l.cfg.Flip && r.Uint64()&1 == 1, l.cfg.Flip && r.Uint64()&2 == 2
	if thin {
		// One draw of the stream seeds a generator that is quicker than it.
		quick := rand.New(rand.NewPCG(r.Uint64(), n))
		t.In.Last.Freshness = thinned(window(b, scratchLast), t.In.Last.Freshness, keep, quick)
		t.In.Next.Freshness = thinned(window(b, scratchNext), t.In.Next.Freshness, keep, quick)
	}
	if !clean {
		t.Level = impute.Level{T: at, Eps: window(b, scratchEps)}
		l.eps.Normals(t.Level.Eps, n)
	}
	// After all other draws, which these leave as they were.
	t.scale = 1
	if l.cfg.Negate && r.Uint64()&1 == 1 {
		t.scale = -1
	}
	if l.cfg.Size > 0 {
		t.scale *= float32(math.Exp(l.cfg.Size * r.NormFloat64()))
	}
	t.turn.Transpose = l.cfg.Transpose && r.Uint64()&1 == 1
	t.In.Covariates = l.dropped(t.In.Covariates, r)
	return t, nil
}

// dropped returns covariates less those that an example loses.
func (l *imputerExamples) dropped(covariates [][]float32, r *rand.Rand) [][]float32 {
	if l.cfg.DropCovariates == 0 || len(covariates) == 0 {
		return covariates
	}
	out := slices.Clone(covariates)
	for k := range out {
		if r.Float64() < l.cfg.DropCovariates {
			out[k] = nil
		}
	}
	return out
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
		if f > 0 && r.Float64() < keep {
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
// [batch], and target with its weight [batch, 2, side, side].
const (
	imageTensor = iota
	timeTensor
	targetTensor
)

// Planes of a target: the right answer of the network, and where it counts.
const (
	ValueOfTarget = iota
	WeightOfTarget
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
	l.cfg.Design.EncodeTimes(x, &t.In, t.Level, t.scale)
	b.Buffers[timeTensor][item] = t.Level.T
	y := l.cfg.planes(b, targetTensor, item)
	l.target(y, &t)
	x.Turn(t.turn)
	y.Turn(t.turn)
	return nil
}

// target draws the planes of the target.
func (l *imputerExamples) target(y impute.Image, t *Augmented) {
	value, weight := y.Plane(ValueOfTarget), y.Plane(WeightOfTarget)
	for i, v := range t.Scene.Patch.Values {
		value[i], weight[i] = 0, 0
		if l.scored(t, i) && finite(v) {
			value[i], weight[i] = t.scale*(v-l.cfg.Design.Base(&t.In, i)), 1
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
