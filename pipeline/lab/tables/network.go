package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/baselines"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/train"
)

// checkpointEvery is how many steps a killed training loses at most.
const checkpointEvery = 100

// network returns the imputer of an entry: the last one used, the stored one,
// or a new one.
func (r *run) network(ctx context.Context, e entry) (*impute.Model, error) {
	cfg := e.row.Network.config(r.s.Train)
	cfg.Seed = e.seed
	key, err := r.networkKey(e.row, cfg)
	if err != nil || key == r.modelKey {
		return r.model, err
	}
	if r.model != nil {
		r.model.Close()
		r.model, r.modelKey = nil, ""
	}
	data, err := r.trained(e.row.Network, key)
	if err != nil {
		return nil, err
	}
	if data == nil && e.row.Network.Teachers > 0 {
		data, err = r.distil(ctx, e, cfg, key)
		if err != nil {
			return nil, err
		}
	}
	if data == nil {
		data, err = r.trainOnce(ctx, trainingTask{e.row.Network, cfg, key, "training"}, func(source learn.Source, checkpoint string) (network, error) {
			hooks := r.trainHooks("training", checkpoint)
			var err error
			if hooks.From, err = startOf(e.row.Network); err != nil {
				return nil, err
			}
			m, _, err := r.trainer.Train(ctx, r.material, source, cfg, hooks)
			return m, err
		})
		if err != nil {
			return nil, err
		}
	}
	if r.model, err = impute.Load(data, r.runner); err == nil {
		r.modelKey = key
	}
	return r.model, err
}

// startOf returns the weights that the training of a network begins with; nil: random ones.
func startOf(n Network) ([]float32, error) {
	if n.Start == "" {
		return nil, nil
	}
	data, err := os.ReadFile(n.Start)
	if err != nil {
		return nil, err
	}
	file, err := netfile.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Start, err)
	}
	return file.Weights, nil
}

// distil trains the networks of several seeds, where they are not kept yet, and
// then one that answers as they do.
func (r *run) distil(ctx context.Context, e entry, cfg learn.Config, key string) ([]byte, error) {
	var teachers []*impute.Model
	defer func() {
		for _, m := range teachers {
			m.Close()
		}
	}()
	for i := range e.row.Network.Teachers {
		one := e
		one.row.Network.Teachers, one.row.Network.Distil = 0, nil
		one.seed = e.seed + uint64(i)
		m, err := r.network(ctx, one)
		if err != nil {
			return nil, err
		}
		teachers = append(teachers, m.In(r.runner))
	}
	if len(e.row.Network.Distil) > 0 {
		if err := json.Unmarshal(e.row.Network.Distil, &cfg); err != nil {
			return nil, err
		}
	}
	return r.trainOnce(ctx, trainingTask{e.row.Network, cfg, key, "distilling"}, func(source learn.Source, checkpoint string) (network, error) {
		m, _, err := r.trainer.Distil(ctx, teachers, r.material, source, cfg, r.trainHooks("distilling", checkpoint))
		return m, err
	})
}

// trained returns the file of a stored network or one that was trained
// elsewhere, nil if there is none.
func (r *run) trained(n Network, key string) ([]byte, error) {
	if n.File != "" {
		return os.ReadFile(n.File)
	}
	return r.folder.file(networksFolder, key+".onnx")
}

// networkKey returns the key of a network: everything that its weights depend on.
func (r *run) networkKey(row Row, cfg learn.Config) (string, error) {
	on := []any{r.dataKey, row.Network, cfg, r.s.PerPatch}
	if row.needsPrior() {
		on = append(on, r.priorKey, r.s.Target, r.s.Pool)
	}
	return keyOf(on...)
}

// members returns the residual members of an entry's imputer.
func (r *run) members(ctx context.Context, e entry, model *impute.Model) (*impute.Members, error) {
	cfg := r.s.Members
	cfg.Seed = e.seed
	key, err := keyOf(r.modelKey, cfg)
	if err != nil {
		return nil, err
	}
	key = "members-" + key
	data, err := r.folder.file(networksFolder, key+".onnx")
	if err != nil {
		return nil, err
	}
	if data == nil {
		data, err = r.trainOnce(ctx, trainingTask{e.row.Network, cfg, key, "training members"}, func(source learn.Source, checkpoint string) (network, error) {
			m, _, err := r.trainer.TrainMembers(ctx, model, r.material, source, cfg, r.trainHooks("training members", checkpoint))
			return m, err
		})
		if err != nil {
			return nil, err
		}
	}
	return impute.LoadMembers(data, model)
}

// dindiff trains the baseline of an entry. Only its checkpoint is stored.
func (r *run) dindiff(ctx context.Context, e entry) (*baselines.DINDiff, error) {
	cfg := baselines.DINDiffConfig(e.row.Network.config(r.s.Train))
	cfg.Seed = e.seed
	key, err := r.networkKey(e.row, cfg)
	if err != nil {
		return nil, err
	}
	l := trainingTask{e.row.Network, cfg, "dindiff-" + key, "training"}
	began := time.Now()
	source, end, err := r.examples(ctx, l)
	if err != nil {
		return nil, err
	}
	defer end()
	d, _, err := baselines.TrainDINDiff(ctx, r.trainer, r.material, source, cfg, r.trainHooks(l.phase, r.checkpoint(l)))
	r.trainSeconds += time.Since(began).Seconds()
	return d, err
}

// A trainingTask is a training to be done.
type trainingTask struct {
	network Network
	cfg     learn.Config
	key     string
	phase   string
}

// network is the result of a training.
type network interface {
	Save(side int) ([]byte, error)
	Close()
}

// trainOnce trains a network and stores its file.
func (r *run) trainOnce(ctx context.Context, l trainingTask, fit func(learn.Source, string) (network, error)) ([]byte, error) {
	began := time.Now()
	source, end, err := r.examples(ctx, l)
	if err != nil {
		return nil, err
	}
	made, err := fit(source, r.checkpoint(l))
	end()
	r.trainSeconds += time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	defer made.Close()
	data, err := made.Save(l.cfg.Side)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(r.folder.path(networksFolder, l.key+".onnx"), data, 0o644); err != nil {
		return nil, fmt.Errorf("keep a network: %w", err)
	}
	_ = os.Remove(r.checkpoint(l)) // the network is stored, so a leftover checkpoint does no harm
	return data, nil
}

// examples returns the source of a training, from the step of its checkpoint on.
func (r *run) examples(ctx context.Context, l trainingTask) (learn.Source, func(), error) {
	first, err := train.CheckpointStep(r.checkpoint(l))
	if err != nil {
		return nil, nil, err
	}
	return r.source(ctx, l.network, l.cfg, uint64(first)*uint64(l.cfg.Batch))
}

func (r *run) checkpoint(l trainingTask) string { return r.folder.path(networksFolder, l.key+".ckpt") }

func (r *run) trainHooks(phase, checkpoint string) train.Hooks {
	return train.Hooks{
		Checkpoint: checkpoint, CheckpointEvery: checkpointEvery,
		Progress: func(p train.Progress) { r.tell(phase, p.Step, p.Steps, p.Loss) },
	}
}
