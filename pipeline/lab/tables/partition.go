package tables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"lacuna/internal/durable"
	"lacuna/pipeline/lab/baselines"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// source returns the examples of a network from number first on, and a function
// that stops the source.
func (r *run) source(ctx context.Context, n Network, cfg learn.Config, first uint64) (learn.Source, func(), error) {
	refs := r.refs(cfg.Side)
	if n.Strategy == "everything" {
		s, err := baselines.Everything(r.train, refs, cfg.Seed)
		return s, func() {}, err
	}
	p, err := r.partitioner(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	if (Row{Network: n}).needsPrior() {
		pool, err := partition.NewPool(ctx, partition.Windows{Data: r.train, Refs: refs, By: p}, r.s.Pool, noise.New(cfg.Seed, "pool"), first)
		if err != nil {
			return nil, nil, err
		}
		return learn.Queue(pool.Next, first), pool.Close, nil
	}
	if cfg.Design.Extras.Analysis && r.s.PerPatch > 0 {
		s, err := learn.Repeated(r.train, refs, p, r.s.PerPatch, cfg.Seed)
		return s, func() {}, err
	}
	s, err := learn.Fresh(r.train, refs, p, cfg.Seed) // cheap enough to draw one for each example
	return s, func() {}, err
}

// refs returns the training patches.
func (r *run) refs(side int) []samples.Ref {
	return r.train.Refs(side, max(side/2, 1), partition.MinObservedCells)
}

// partitioner returns the strategy of a network.
func (r *run) partitioner(ctx context.Context, n Network) (partition.Strategy, error) {
	kind, _, _ := strings.Cut(n.Strategy, ":")
	switch kind {
	case "pixel":
		share, err := shareOf(n.Strategy)
		return partition.Pixel(share, share), err
	case "block8": // blocks of the size of the paper, and coarser ones
		return partition.Block(8, 0.5, 0.5), nil
	case "block3":
		return partition.Block(3, 0.5, 0.5), nil
	case "saliency":
		return partition.Saliency(0.5), nil
	case "coherent":
		return partition.Coherent(), nil
	case "empirical":
		return partition.Empirical(r.train), nil
	}
	m, err := r.mustPrior(ctx)
	if err != nil {
		return nil, err
	}
	if kind == "unconditional" {
		cfg := prior.DefaultSampling()
		cfg.Batch = r.s.Pool.Batch
		return prior.NewUnconditional(m, cfg)
	}
	guide, err := r.guidance(ctx, n)
	if err != nil {
		return nil, err
	}
	return prior.NewGuided(m, guide)
}

// strengthPatches is how many patches the strength of guidance is found on;
// every weight meets the same noise, so few are enough to compare.
const strengthPatches = 16

// guidance returns the settings of a guided strategy, with its strength found
// where none is given.
func (r *run) guidance(ctx context.Context, n Network) (prior.GuideConfig, error) {
	guide := n.guidance()
	guide.Batch = r.s.Pool.Batch
	m, err := r.mustPrior(ctx)
	if err != nil || n.Guidance != nil && n.Guidance.Weight > 0 {
		return guide, err
	}
	key, err := keyOf(r.priorKey, guide, r.s.Target)
	if err != nil {
		return guide, err
	}
	name := "strength-" + key + ".json"
	var s masks.Strength
	known, err := r.folder.load(&s, networksFolder, name)
	if err != nil {
		return guide, err
	}
	if !known {
		r.tell("strength of guidance", 0, 1, 0)
		if s, err = masks.AutoStrength(ctx, m, r.patches(strengthPatches), guide, r.s.Target); err != nil {
			return guide, err
		}
		if err := r.folder.save(s, networksFolder, name); err != nil {
			return guide, err
		}
	}
	guide.Weight = s.Weight
	return guide, nil
}

// patches returns training patches, spread over all days.
func (r *run) patches(n int) []samples.Patch {
	refs := r.refs(r.s.Train.Side)
	n = min(n, len(refs))
	out := make([]samples.Patch, n)
	for i := range out {
		out[i] = r.train.Cut(refs[i*len(refs)/n])
	}
	return out
}

// mustPrior returns the mask prior: the given one, the stored one, or a new one.
// All rows and seeds share it.
func (r *run) mustPrior(ctx context.Context) (*prior.Model, error) {
	if r.prior != nil {
		return r.prior, nil
	}
	engine, err := r.open()
	if err != nil {
		return nil, err
	}
	data := r.job.Prior
	if data == nil {
		if data, err = r.folder.file(networksFolder, "prior-"+r.priorKey+".onnx"); err != nil {
			return nil, err
		}
	}
	if data == nil {
		if data, err = r.trainPrior(ctx); err != nil {
			return nil, fmt.Errorf("train the mask prior: %w", err)
		}
	}
	if r.prior, err = prior.Load(engine, data); err != nil {
		return nil, err
	}
	r.prior.Recall(r.train)
	return r.prior, nil
}

func (r *run) trainPrior(ctx context.Context) ([]byte, error) {
	if r.choose.Targets() == 0 {
		return nil, errors.New("no day is left to choose by: give more days, or a prior")
	}
	cfg := r.s.Prior
	cfg.CheckpointEvery = checkpointEvery
	hooks := r.trainHooks("training the mask prior", r.folder.path(networksFolder, "prior-"+r.priorKey+".ckpt"))
	model, _, err := learn.TrainPrior(ctx, r.engine, r.train, r.choose, cfg, hooks)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	data, err := model.Encode()
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(r.folder.path(networksFolder, "prior-"+r.priorKey+".onnx"), data, 0o644); err != nil {
		return nil, err
	}
	_ = os.Remove(hooks.Checkpoint) // the prior is stored, so a leftover checkpoint does no harm
	return data, nil
}

// maskStudy measures the effect of guidance on masks, with a patch for a picture.
type maskStudy struct {
	ContextShare float64   `json:"context_share"`
	SD           float64   `json:"sd"`
	MeanMap      []float32 `json:"mean_map"` // mean mask of the first patch
	SDMap        []float32 `json:"sd_map"`
}

// studyMasks draws masks of a guided strategy and describes them.
func (r *run) studyMasks(ctx context.Context, n Network) (*maskStudy, error) {
	guide, err := r.guidance(ctx, n)
	if err != nil {
		return nil, err
	}
	s := &maskStudy{}
	patches := r.patches(r.s.MaskPatches)
	for k, p := range patches {
		r.tell("masks of guidance", k, len(patches), 0)
		same := make([]samples.Patch, r.s.MaskDraws)
		for i := range same {
			same[i] = p
		}
		masks, _, err := r.prior.DrawGuided(ctx, same, guide, noise.New(1, "masks of guidance").Sub(uint64(k)))
		if err != nil {
			return nil, err
		}
		mean, sd := spreadOf(masks)
		share, deviation := shareIn(p, mean, sd)
		s.ContextShare += share / float64(len(patches))
		s.SD += deviation / float64(len(patches))
		if k == 0 {
			s.MeanMap, s.SDMap = mean, sd
		}
	}
	return s, nil
}

// spreadOf returns mean and standard deviation of each cell over masks.
func spreadOf(masks [][]bool) (mean, sd []float32) {
	mean, sd = make([]float32, len(masks[0])), make([]float32, len(masks[0]))
	for _, m := range masks {
		for i, observed := range m {
			if observed {
				mean[i] += 1 / float32(len(masks))
			}
		}
	}
	for i, p := range mean {
		sd[i] = float32(math.Sqrt(max(float64(p)*(1-float64(p)), 0)))
	}
	return mean, sd
}

// shareIn returns the mean of the masks over the observed cells of a patch, and
// the mean standard deviation over its sea.
func shareIn(p samples.Patch, mean, sd []float32) (share, deviation float64) {
	observed, sea := 0.0, 0.0
	for i, o := range p.Observed() {
		if o {
			share, observed = share+float64(mean[i]), observed+1
		}
		if p.Sea[i] {
			deviation, sea = deviation+float64(sd[i]), sea+1
		}
	}
	return share / max(observed, 1), deviation / max(sea, 1)
}
