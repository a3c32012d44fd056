package version

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// makeImputer trains the imputer and loads it from its file, as it will serve.
func (r *run) makeImputer(ctx context.Context) error {
	report := &train.Report{}
	r.eval.Reports.Imputer = report
	to := training{part: PartImputer, phase: PhaseImputer, cfg: r.s.Imputer, report: report, steps: r.s.Imputer.Steps}
	fit, err := r.fitImputer(ctx, &to)
	if err != nil {
		return err
	}
	data, err := r.trainNetwork(ctx, to, fit)
	if err != nil {
		return err
	}
	r.model, err = impute.Load(data, r.runner)
	if err := errors.Join(err, r.forgetTeachers()); err != nil {
		return err
	}
	return r.chooseCovariates(ctx)
}

// fitImputer returns how the imputer learns: from the data, or from teachers,
// which are trained first.
func (r *run) fitImputer(ctx context.Context, to *training) (fitting, error) {
	if r.s.Teachers > 0 {
		return r.taught(ctx, to)
	}
	return func(source learn.Source, hooks train.Hooks) (saver, train.Report, error) {
		from, err := r.parentWeights()
		if err != nil {
			return nil, train.Report{}, err
		}
		hooks.Score, hooks.ScoreEvery, hooks.Patience, hooks.From = r.score, r.s.ScoreEvery, r.s.Patience, from
		tuned, report, err := r.trainer.Train(ctx, r.material, source, to.cfg, hooks)
		if err != nil || from == nil || !r.newLevel() {
			return tuned, report, err
		}
		return r.orParent(ctx, tuned, report, from)
	}, nil
}

// parentWeights returns the weights of the parent's imputer, nil without one.
func (r *run) parentWeights() ([]float32, error) {
	data := r.req.Parent[PartImputer]
	if data == nil {
		return nil, nil
	}
	parent, err := impute.Load(data, r.runner)
	if err != nil {
		return nil, fmt.Errorf("load the parent: %w", err)
	}
	weights, err := weightsOf(data)
	if err != nil {
		return nil, err
	}
	if weights, err = impute.Widened(weights, parent.Design(), r.s.Imputer.Design); err != nil {
		return nil, fmt.Errorf("the version to begin from: %w", err)
	}
	return weights, nil
}

func weightsOf(data []byte) ([]float32, error) {
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, err
	}
	return f.Weights, nil
}

// makeMembers trains the residual members of the new imputer.
func (r *run) makeMembers(ctx context.Context) error {
	delete(r.parts, PartMembers) // those of the parent belong to its imputer
	// Not beside the imputer, whose partitions are analysed and drawn meanwhile.
	r.counted = r.beside(ctx, r.countQueries)
	if r.analysis != nil { // else its constants are found at the gate
		r.examined = r.beside(ctx, r.interpolateExam)
	}
	if r.s.Members.Steps == 0 {
		return nil
	}
	report := &train.Report{}
	r.eval.Reports.Members = report
	_, err := r.trainNetwork(ctx, training{part: PartMembers, phase: PhaseMembers, cfg: r.s.Members, report: report, steps: r.s.Members.Steps},
		func(source learn.Source, hooks train.Hooks) (saver, train.Report, error) {
			from, err := r.parentMembers()
			if err != nil {
				return nil, train.Report{}, err
			}
			hooks.From = from
			return r.trainer.TrainMembers(ctx, r.model, r.material, source, r.s.Members, hooks)
		})
	return err
}

// parentMembers returns the weights of the parent's members where they are of
// the same network, else nil: members are cheap to train anew.
func (r *run) parentMembers() ([]float32, error) {
	data := r.req.Parent[PartMembers]
	if data == nil {
		return nil, nil
	}
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("load the parent's members: %w", err)
	}
	if f.Config.Backbone != r.s.Members.Design.Backbone || f.Config.Size != r.s.Members.Design.Size {
		return nil, nil
	}
	parent, err := impute.Load(r.req.Parent[PartImputer], r.runner)
	if err != nil {
		return nil, fmt.Errorf("load the parent: %w", err)
	}
	return impute.WidenedMembers(f.Weights, r.s.Members.Design, parent.Design(), r.s.Imputer.Design)
}

// A saver is a network that can be written.
type saver interface {
	Save(side int) ([]byte, error)
	Close()
}

// training is the training of one network.
type training struct {
	part   Part   // empty: it is no part of the version
	phase  string // that it belongs to
	name   string // of its files; empty: that of the phase
	cfg    learn.Config
	report *train.Report

	done, steps int // of the phase: before this training, and in all
}

// fitting trains a network on examples.
type fitting func(learn.Source, train.Hooks) (saver, train.Report, error)

// files returns the name of the training's files without their endings.
func (t training) files() string { return cmp.Or(t.name, t.phase) }

// network returns the name of the file of weights, which says that the training is over.
func (t training) network() string {
	if t.part == "" {
		return t.files() + ".onnx"
	}
	return t.part.checkpoint()
}

// trainNetwork returns the file of a network: the one in the folder, where the
// training is over, or that of a training, which goes on from its checkpoint.
func (r *run) trainNetwork(ctx context.Context, t training, fit fitting) ([]byte, error) {
	data, err := r.folder.read(t.network())
	if err != nil {
		return nil, err
	}
	if data != nil {
		if t.part != "" {
			r.parts[t.part] = data
		}
		_, err := r.folder.load(t.files()+".json", t.report)
		return data, err
	}
	hooks := r.trainHooks(t)
	source, closeSource, err := r.source(ctx, t, hooks.Checkpoint)
	if err != nil {
		return nil, err
	}
	network, report, err := fit(source, hooks)
	closeSource()
	if err != nil {
		return nil, err
	}
	defer network.Close()
	*t.report = report
	if data, err = network.Save(t.cfg.Side); err != nil {
		return nil, err
	}
	if t.part != "" {
		r.parts[t.part] = data
	}
	// The report first: a file of weights says that the training is over.
	if err := errors.Join(r.folder.save(t.files()+".json", report), r.folder.write(t.network(), data)); err != nil {
		return nil, err
	}
	return data, r.folder.discard(checkpointFile(t.files()))
}

// source returns the examples of a training from the step of its checkpoint on.
// Partitions that a prior draws come from a pool; others cost little.
func (r *run) source(ctx context.Context, t training, checkpoint string) (learn.Source, func(), error) {
	if r.prior == nil {
		source, err := r.ownSource(t.cfg.Seed)
		return source, func() {}, err
	}
	step, err := train.CheckpointStep(checkpoint)
	if err != nil {
		return nil, nil, err
	}
	first := uint64(step) * uint64(t.cfg.Batch)
	from := partition.Windows{Data: r.learned, Refs: r.refs, By: r.strategy}
	pool, err := partition.NewPool(ctx, from, r.s.Pool, stream(r.s, t.files()+" pool"), first)
	if err != nil {
		return nil, nil, err
	}
	return learn.Queue(pool.Next, first), func() {
		use := pool.Use()
		r.eval.Pools = append(r.eval.Pools, use)
		pool.Close()
	}, nil
}

// ownSource returns the source of a strategy that needs no pool.
func (r *run) ownSource(seed uint64) (learn.Source, error) {
	if r.s.Partitions == 0 {
		return learn.Fresh(r.learned, r.refs, r.strategy, seed)
	}
	return learn.Repeated(r.learned, r.refs, r.strategy, r.partitionsOfAPatch(), seed)
}

// fewestPartitions are those of a patch that are worth their analyses whatever the
// room for them: four are 1 % better than two on real chlorophyll.
const fewestPartitions = 4

// partitionsOfAPatch returns how many ways a patch is split in: those of the settings, or as
// many as there is room for the analyses of. Eight in each patch of five seas need a third
// more room than there is, and those without are made again at every step.
func (r *run) partitionsOfAPatch() int {
	const modes = 3 // of one day, of the past, and of past and future
	room := r.material.Analyses.Room(r.s.Imputer.Side * r.s.Imputer.Side)
	return min(r.s.Partitions, max(room/(modes*len(r.refs)), fewestPartitions))
}

// checkpointFile names the checkpoint of a training.
func checkpointFile(name string) string { return name + ".ckpt" }

// checkpointPause is the least time between two checkpoints: a fast device makes
// many steps a second. A kill loses no more than that, or CheckpointEvery steps.
const checkpointPause = 5 * time.Second

// trainHooks returns the hooks of a training.
func (r *run) trainHooks(t training) train.Hooks {
	return train.Hooks{
		Progress: func(p train.Progress) {
			r.hooks.Progress(Progress{Phase: t.phase, Step: t.done + p.Step, Steps: cmp.Or(t.steps, p.Steps), Loss: p.Loss, Score: p.Score})
		},
		Checkpoint: r.folder.path(checkpointFile(t.files())), CheckpointEvery: r.s.CheckpointEvery,
		CheckpointPause: checkpointPause, Now: r.hooks.Now,
	}
}

// score returns the mean squared error on the overlays that choose, or the
// CRPS where only the spread is learned.
func (r *run) score(ctx context.Context, weights []float32) (float64, error) {
	m, err := impute.NewModel(r.runner, r.s.Imputer.Design, r.s.Imputer, weights)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	said, err := m.Predict(ctx, r.scoring)
	if err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	for i, p := range said {
		o := r.choosing[i]
		for cell, scored := range o.Scored {
			if scored {
				mean, truth := float64(p.Mean[cell]), float64(o.Values[cell])
				if r.s.Imputer.SpreadOnly {
					sum += skill.CRPSGaussian(mean, float64(p.Sigma[cell]), truth)
				} else {
					sum += (mean - truth) * (mean - truth)
				}
				n++
			}
		}
	}
	return sum / float64(n), nil
}
