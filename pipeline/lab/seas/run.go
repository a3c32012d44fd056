package seas

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// checkpointEvery is how many steps lie between two checkpoints at least, and
// checkpointPause how much time: a GPU makes a hundred steps a second.
const (
	checkpointEvery = 100
	checkpointPause = 20 * time.Second
)

// lab holds everything that the runs of one command share.
type lab struct {
	options
	cfg     learn.Config
	log     *slog.Logger
	runner  *impute.Runner
	trainer *learn.Trainer
	seas    []*sea
	names   map[*sea]string // fingerprints
	train   samples.Train   // learn days of all seas that teach
	about   learn.Material
	kept    *kept
	exams   map[string]*exam
}

// open reads the packs and puts their learn days together.
func open(o options, cfg learn.Config, runner *impute.Runner, trainer *learn.Trainer, log *slog.Logger) (*lab, error) {
	all, err := readSeas(o.packs)
	if err != nil {
		return nil, err
	}
	return newLab(o, cfg, all, runner, trainer, log)
}

func newLab(o options, cfg learn.Config, all []*sea, runner *impute.Runner, trainer *learn.Trainer, log *slog.Logger) (*lab, error) {
	l := &lab{options: o, cfg: cfg, log: log, runner: runner, trainer: trainer, seas: all, names: map[*sea]string{}, exams: map[string]*exam{}}
	var err error
	if l.train, err = together(all, cfg.Side); err != nil {
		return nil, err
	}
	for _, s := range all {
		if l.names[s], err = fingerprint(s.series); err != nil {
			return nil, err
		}
		log.Info("sea", "name", s.name, "days", len(s.series.Days), "judge", s.judge.Targets(), "learn", s.learnDays(), "patches", len(s.refs))
	}
	if l.kept, err = openKept(filepath.Join(o.work, "analyses.bin")); err != nil {
		return nil, err
	}
	if err := l.analyse(); err != nil {
		return nil, errors.Join(err, l.kept.close())
	}
	return l, nil
}

// analyse makes the analyser of the learn days, with the constants of each sea.
func (l *lab) analyse() error {
	about := map[*samples.Place]placed{}
	for _, s := range l.seas {
		if s.teaches() {
			about[s.place] = placed{"learn " + l.names[s], s.settings}
		}
	}
	analyser, err := newKeptOI(l.train, l.kept, impute.QuickOI, about)
	// The analyser keeps what it makes; a second copy would only take memory.
	l.about = learn.Material{Train: l.train, Analyser: analyser, Analyses: learn.NewAnalyses(0)}
	return err
}

// run leaves out one sea after the other.
func (l *lab) run(ctx context.Context) error {
	leaves, err := l.leaves(l.seas)
	if err != nil {
		return err
	}
	if err := l.tune(ctx); err != nil {
		return err
	}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	// Every network is judged alone first, and then with what the others say of it.
	all, err := l.round(ctx, leaves, nil)
	if err != nil || len(all) == 0 {
		return err
	}
	known, ok := elsewhere(all, "")
	if !ok {
		return nil
	}
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	// A starter needs this, and not what the second round says of it.
	if err := durable.WriteFile(filepath.Join(l.output, "elsewhere.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	_, err = l.round(ctx, leaves, all)
	return err
}

// round leaves out one sea after the other. What other seas say is taken from the
// records of a round before.
func (l *lab) round(ctx context.Context, leaves []string, before []record) ([]record, error) {
	var all []record
	for _, leave := range leaves {
		of := run{left: leave, teachers: l.teachers(leave)}
		if known, ok := elsewhere(before, leave); ok {
			of.elsewhere = &known
		}
		done, err := l.leaveOut(ctx, of)
		if err != nil {
			return nil, fmt.Errorf("leave out %s: %w", leave, err)
		}
		all = append(all, done...)
		if err := l.report(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// elsewhere returns what the records of seas other than one say of networks that
// never saw a sea; false: they are too few.
func elsewhere(all []record, but string) (skill.Elsewhere, bool) {
	modes, sums := map[string]float64{}, map[string]float64{}
	for _, r := range all {
		if r.Left == r.Sea && r.Sea != but {
			modes[r.Sea], sums[r.Sea] = modes[r.Sea]+1, sums[r.Sea]+r.Best
		}
	}
	var shares []float64
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		shares = append(shares, sums[name]/modes[name])
	}
	return skill.ElsewhereOf(shares)
}

// A run is the networks that never saw a sea, or saw all.
type run struct {
	left      string // sea that was left out, or none
	teachers  []*sea
	networks  []network
	elsewhere *skill.Elsewhere // what networks without another sea say; nil: not asked yet
}

// prepare makes the analyses of all examples, with all workers.
func (l *lab) prepare(ctx context.Context) error {
	began := time.Now()
	for _, s := range l.seas {
		if !s.teaches() {
			continue
		}
		r, err := repeated(l.train, s, l.perPatch, l.cfg.Seed)
		if err != nil {
			return err
		}
		if err := l.about.Prepare(ctx, r, l.modes(), l.workers); err != nil {
			return errors.Join(fmt.Errorf("analyse the patches of %s: %w", s.name, err), l.kept.flush())
		}
		l.log.Info("analyses made", "sea", s.name, "seconds", time.Since(began).Seconds())
		if err := l.kept.flush(); err != nil {
			return err
		}
	}
	return nil
}

// modes returns the modes of the examples.
func (l *lab) modes() []impute.Mode {
	var out []impute.Mode
	if l.cfg.DropTemporal > 0 {
		out = append(out, impute.Single)
	}
	if l.cfg.DropTemporal < 1 && l.cfg.DropFuture > 0 {
		out = append(out, impute.Past)
	}
	if l.cfg.DropTemporal < 1 && l.cfg.DropFuture < 1 {
		out = append(out, impute.Delayed)
	}
	return out
}

// leaveOut trains networks without a sea and judges them on it. Without a sea to
// leave out they are judged on the judge days of all, and written as a starter.
func (l *lab) leaveOut(ctx context.Context, of run) ([]record, error) {
	defer func() {
		for _, n := range of.networks {
			n.model.Close()
		}
		for _, x := range l.exams {
			clear(x.said)
		}
	}()
	for seed := range uint64(l.seeds) {
		n, err := l.network(ctx, of.left, of.teachers, l.cfg.Seed+seed)
		if err != nil {
			return nil, err
		}
		of.networks = append(of.networks, n)
	}
	if of.left == leaveNone {
		if err := l.writeStarter(of.networks); err != nil {
			return nil, err
		}
	}
	var out []record
	for _, s := range l.seas {
		if of.left != leaveNone && of.left != s.name {
			continue
		}
		for _, mode := range []impute.Mode{impute.Past, impute.Delayed} {
			r, err := l.recordOf(ctx, of, s, mode)
			if err != nil {
				return nil, fmt.Errorf("judge on %s: %w", s.name, err)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// teachers returns the seas to learn from where one is left out.
func (l *lab) teachers(leave string) []*sea {
	var out []*sea
	for _, s := range l.seas {
		if s.teaches() && s.name != leave {
			out = append(out, s)
		}
	}
	return out
}

// A network is a trained one with the name of everything that it depends on.
type network struct {
	key   string
	seed  uint64
	data  []byte
	model *impute.Model
	turns []impute.Turn // images of a window that it is asked about; nil: as it is
}

// network returns the network of a seed that learned from some seas: the stored
// one, or a new one.
func (l *lab) network(ctx context.Context, leave string, teachers []*sea, seed uint64) (network, error) {
	cfg := l.cfg
	cfg.Seed = seed
	about := []any{cfg, l.perPatch, l.balance}
	for _, s := range teachers {
		about = append(about, s.name, l.names[s], s.constants)
	}
	name, err := keyOf(about...)
	if err != nil {
		return network{}, err
	}
	n := network{key: name, seed: seed}
	if l.turns {
		n.turns = impute.Turns()
	}
	path := filepath.Join(l.work, "network-"+name+".onnx")
	if n.data, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		n.data, err = l.teach(ctx, leave, teachers, cfg, path)
	}
	if err != nil {
		return n, err
	}
	n.model, err = impute.Load(n.data, l.runner)
	return n, err
}

// teach trains a network and writes its file.
func (l *lab) teach(ctx context.Context, leave string, teachers []*sea, cfg learn.Config, path string) ([]byte, error) {
	source, err := newMixed(l.train, teachers, l.perPatch, l.balance, cfg.Seed)
	if err != nil {
		return nil, err
	}
	began, told := time.Now(), time.Time{}
	m, _, err := l.trainer.Train(ctx, l.about, source, cfg, train.Hooks{
		Checkpoint: path + ".ckpt", CheckpointEvery: checkpointEvery, CheckpointPause: checkpointPause,
		Progress: func(p train.Progress) {
			if now := time.Now(); now.Sub(told) > 10*time.Second {
				told = now
				l.log.Info("training", "without", leave, "seed", cfg.Seed, "step", p.Step, "of", p.Steps, "loss", p.Loss)
			}
		},
	})
	if err != nil {
		return nil, errors.Join(err, l.kept.flush())
	}
	defer m.Close()
	data, err := m.Save(cfg.Side)
	if err != nil {
		return nil, err
	}
	l.log.Info("trained", "without", leave, "seed", cfg.Seed, "seconds", time.Since(began).Seconds())
	if err := durable.WriteFile(path, data, 0o644); err != nil {
		return nil, err
	}
	_ = os.Remove(path + ".ckpt") // the network is stored, so a leftover checkpoint does no harm
	return data, nil
}

// writeStarter writes the networks that learned from all seas.
func (l *lab) writeStarter(networks []network) error {
	for _, n := range networks {
		name := "imputer.onnx"
		if n.seed != l.cfg.Seed {
			name = fmt.Sprintf("imputer-%d.onnx", n.seed)
		}
		if err := durable.WriteFile(filepath.Join(l.output, name), n.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the sha256 of values.
func keyOf(values ...any) (string, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("name a result: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:24], nil
}
