package impute

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/train"
)

// Material is what a network may learn from: the training side of a split and
// the backgrounds that were made of it, each of which may be nil.
type Material struct {
	Train         samples.Train
	Past, Delayed Backgrounds
	Analyser      Analyser // of Train; asked only where the design has an analysis
	// Analyses keeps what Analyser made for further trainings; nil: each
	// training keeps its own.
	Analyses *Analyses
}

func (m Material) surroundings() Surroundings {
	return Surroundings{Days: m.Train, Past: m.Past, Delayed: m.Delayed, Analyser: m.Analyser}
}

// lessons turns what a source says into the planes of a batch.
type lessons struct {
	cfg      TrainConfig
	source   Source
	scenes   *scenes
	analyses *Analyses
	draws    noise.Stream // what is dropped, and the noise level
	eps      noise.Stream // the noise itself
}

func newLessons(m Material, source Source, cfg TrainConfig) *lessons {
	analyses := m.Analyses
	if analyses == nil {
		analyses = NewAnalyses(cfg.CacheMB / 2) // the other half is for scenes
	}
	return &lessons{
		cfg: cfg, source: source, analyses: analyses, scenes: &scenes{around: m.surroundings(), budgetBytes: int64(cfg.CacheMB/2) << 20},
		draws: noise.New(cfg.Seed, "draws"), eps: noise.New(cfg.Seed, "context noise"),
	}
}

// A taught is one lesson with everything that chance decides.
type taught struct {
	Lesson
	in     Inputs // what the network is shown
	scene  *scene
	level  level
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

// teach draws lesson n. The scratch of b serves it until the next one.
func (l *lessons) teach(ctx context.Context, b *train.Batch, n uint64) (taught, error) {
	lesson, err := l.source.Lesson(ctx, n)
	if err != nil {
		return taught{}, err
	}
	s := l.scenes.of(lesson.Ref)
	r := l.draws.Rand(n)
	mode := l.mode(r)
	t := taught{Lesson: lesson, scene: s, in: s.inputs(mode)}
	t.in.Visible = lesson.Context
	if l.cfg.Design.Extras.Analysis {
		if err := l.analyses.add(&t.in, lesson, mode, l.scenes.around); err != nil {
			return taught{}, err
		}
	}
	thin, keep := r.Float64() < l.cfg.Thin, r.Float64()
	clean, at := r.Float64() < l.cfg.Clean, r.Float32()
	t.flipNS, t.flipWE = l.cfg.Flip && r.Uint64()&1 == 1, l.cfg.Flip && r.Uint64()&2 == 2
	if thin {
		t.in.Last.Freshness = thinned(window(b, scratchLast), t.in.Last.Freshness, keep, r)
		t.in.Next.Freshness = thinned(window(b, scratchNext), t.in.Next.Freshness, keep, r)
	}
	if !clean {
		t.level = level{t: at, eps: window(b, scratchEps)}
		l.eps.Normals(t.level.eps, n)
	}
	t.negate = l.cfg.Negate && r.Uint64()&1 == 1 // after all other draws, which it leaves as they were
	return t, nil
}

// mode draws which neighbours a lesson has.
func (l *lessons) mode(r *rand.Rand) Mode {
	alone, blind := r.Float64() < l.cfg.DropTemporal, r.Float64() < l.cfg.DropFuture
	switch {
	case alone:
		return Single
	case blind:
		return Past
	default:
		return Delayed
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

// Planes of a target: what the network should say, where that counts, and the
// unit that its answer is in.
const (
	valueOfTarget = iota
	weightOfTarget
	unitOfTarget
	targetPlanes
)

func (c TrainConfig) batchDims() [][]int {
	return [][]int{{c.Batch, c.Design.planes(), c.Side, c.Side}, {c.Batch}, {c.Batch, targetPlanes, c.Side, c.Side}}
}

// fill is the filler of the imputer.
func (l *lessons) fill(ctx context.Context, b *train.Batch, item int, n uint64) error {
	t, err := l.teach(ctx, b, n)
	if err != nil {
		return err
	}
	x := l.cfg.planes(b, imageTensor, item)
	l.cfg.Design.encode(x, &t.in, t.level)
	b.Buffers[timeTensor][item] = t.level.t
	y := l.cfg.planes(b, targetTensor, item)
	l.target(y, &t)
	if t.negate {
		x.negate(l.cfg.Design.signed()...)
		y.negate(valueOfTarget)
	}
	x.flip(t.flipNS, t.flipWE)
	y.flip(t.flipNS, t.flipWE)
	return nil
}

// target draws what is asked, and where.
func (l *lessons) target(y image, t *taught) {
	value, weight, unit := y.plane(valueOfTarget), y.plane(weightOfTarget), y.plane(unitOfTarget)
	for i, v := range t.scene.patch.Values {
		value[i], weight[i], unit[i] = 0, 0, l.cfg.Design.unit(&t.in, i)
		if l.scored(t, i) && finite(v) {
			value[i], weight[i] = v-l.cfg.Design.base(&t.in, i), 1
		}
	}
}

func (l *lessons) scored(t *taught, cell int) bool {
	return l.cfg.LossOn == OnObserved || t.Query[cell]
}

// planes returns those of an item of tensor i.
func (c TrainConfig) planes(b *train.Batch, i, item int) image {
	n := len(b.Buffers[i]) / c.Batch
	return image{b.Buffers[i][item*n : (item+1)*n], c.Side, c.Side}
}

// negate changes the sign of planes.
func (m image) negate(planes ...int) {
	for _, i := range planes {
		for cell, v := range m.plane(i) {
			m.plane(i)[cell] = -v
		}
	}
}

// flip mirrors all planes.
func (m image) flip(northSouth, westEast bool) {
	cells := m.height * m.width
	for p := 0; p < len(m.data); p += cells {
		plane := m.data[p : p+cells]
		if northSouth {
			for row := range m.height / 2 {
				a, b := plane[row*m.width:(row+1)*m.width], plane[(m.height-1-row)*m.width:(m.height-row)*m.width]
				for i := range a {
					a[i], b[i] = b[i], a[i]
				}
			}
		}
		if westEast {
			for row := range m.height {
				line := plane[row*m.width : (row+1)*m.width]
				for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
					line[i], line[j] = line[j], line[i]
				}
			}
		}
	}
}

// scenes keeps what surrounds patches, up to a budget: cutting a scene out
// takes longer than drawing its planes.
type scenes struct {
	around      Surroundings
	budgetBytes int64

	used atomic.Int64
	kept sync.Map // of samples.Ref to *scene
}

func (s *scenes) of(r samples.Ref) *scene {
	if kept, ok := s.kept.Load(r); ok {
		return kept.(*scene)
	}
	sc := s.around.scene(r)
	size := sc.bytes()
	if s.used.Add(size) > s.budgetBytes {
		s.used.Add(-size)
		return sc
	}
	if kept, was := s.kept.LoadOrStore(r, sc); was {
		s.used.Add(-size)
		return kept.(*scene)
	}
	return sc
}

// bytes returns about how much memory the scene takes.
func (s *scene) bytes() int64 {
	const floatBytes = 4
	n := len(s.patch.Values) + len(s.past.value) + len(s.past.sigma) + len(s.delayed.value) + len(s.delayed.sigma) +
		len(s.last.Value) + len(s.last.Freshness) + len(s.next.Value) + len(s.next.Freshness)
	return int64(floatBytes*n + len(s.patch.Sea))
}
