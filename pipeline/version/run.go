package version

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// Make makes a version and judges it. A cancelled ctx ends it with ctx.Err();
// with a checkpoint folder the same request goes on from there.
func Make(ctx context.Context, req Request, hooks Hooks) (Outcome, error) {
	r, err := begin(req, hooks)
	if err != nil {
		return Outcome{}, fmt.Errorf("make a version: %w", err)
	}
	defer r.close()
	defer r.endAsides()
	r.around = r.beside(ctx, r.makeSurroundings)
	r.beside(ctx, r.compileSteps)
	for _, phase := range r.phases() {
		if err := ctx.Err(); err != nil {
			return Outcome{}, err
		}
		if err := phase.do(ctx); err != nil {
			return Outcome{}, fmt.Errorf("make a version: %s: %w", phase.name, err)
		}
	}
	return r.outcome()
}

// A run is a Make under way.
type run struct {
	req     Request
	s       Settings
	hooks   Hooks
	folder  folder
	runner  *impute.Runner
	trainer *learn.Trainer

	levels       []samples.Level // changes of the level of the days, which are all brought to that of the last
	split        split
	train        samples.Train
	learned      samples.Train     // train, and the days beside it; days of train keep their numbers
	chooseSide   samples.HeldOut   // days that end trainings and calibrate
	judgeSide    samples.HeldOut   // days that judge: only the gate looks at them
	own, refs    []samples.Ref     // training patches with replay: those of train, those of learned
	choosing     []samples.Overlay // of chooseSide
	judging      []samples.Overlay // of judgeSide
	material     learn.Material
	analysis     *Interpolation // optimal interpolation of this dataset; nil: not found yet
	aroundChoose impute.Surroundings
	aroundJudge  impute.Surroundings
	scoring      []impute.Inputs   // inputs of the first choosing overlays
	chosen       []impute.Inputs   // inputs of all choosing overlays; nil: they are made where they are needed
	channels     []samples.Channel // of the covariates, in the order of the design
	exam         *evaluate.Exam    // of the gate; nil: not set yet
	floor        *evaluate.Method  // optimal interpolation with its answers to it; nil: it was not asked yet
	low, high    float32           // range of the training values, in anomalies

	asides                    []*aside
	around, counted, examined *aside      // of makeSurroundings, countQueries and interpolateExam
	waited                    atomic.Bool // the phase of the surroundings has come: their progress is that of the run

	prior    *prior.Model
	strategy partition.Strategy
	model    *impute.Model
	queries  []*partition.QueryMap // one for each grid; nil: not counted
	parts    Parts
	eval     Evaluation
}

func begin(req Request, hooks Hooks) (*run, error) {
	if hooks.Now == nil {
		hooks.Now = time.Now
	}
	if hooks.Progress == nil {
		hooks.Progress = func(Progress) {}
	}
	s := req.Settings
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if s.Only == OnlyCalibration && req.Parent[PartImputer] == nil {
		return nil, errNothingToCalibrate
	}
	if len(req.Series)+len(req.Beside) > 1 {
		s.Prior.Model.Frequency = false // how often cells are observed is a map of one grid
	}
	name, err := req.Fingerprint()
	if err != nil {
		return nil, err
	}
	r := &run{s: s, hooks: hooks, parts: Parts{}}
	r.req, r.levels = req.atPresent()
	if r.split, err = r.req.split(); err != nil {
		return nil, err
	}
	r.train, r.chooseSide, r.judgeSide = r.split.Train, r.split.Choose, r.split.Judge
	if r.learned, r.split.beside, err = r.train.Beside(req.Beside, s.Split); err != nil {
		return nil, fmt.Errorf("learn beside: %w", err)
	}
	if r.folder, err = openFolder(req.Folder, name); err != nil {
		return nil, err
	}
	if r.runner, err = impute.NewRunner(req.Backend, s.Runner); err != nil {
		return nil, err
	}
	r.trainer = learn.NewTrainer(r.runner)
	// The members learn from the partitions that the imputer learned from.
	r.material = learn.Material{Train: r.learned, Analyses: learn.NewAnalyses(s.Imputer.CacheMB / 2)}
	r.aroundChoose, r.aroundJudge = impute.Surroundings{Days: r.chooseSide}, impute.Surroundings{Days: r.judgeSide}
	for name, data := range req.Parent {
		r.parts[name] = data
	}
	if err := r.beginCovariates(); err != nil {
		return nil, err
	}
	return r, r.choosePatches()
}

func (r *run) close() {
	if r.prior != nil {
		r.prior.Close()
	}
	if r.model != nil {
		r.model.Close()
	}
	r.trainer.Close()
	r.runner.Close()
}

type phase struct {
	name string
	do   func(context.Context) error
}

func (r *run) phases() []phase {
	if r.s.Only == OnlyCalibration {
		return []phase{{PhaseBackground, r.keepNetworks}, {PhaseBackground, r.surroundings}, {PhaseCalibration, r.makeCalibration}, {PhaseGate, r.judge}}
	}
	all := []phase{{PhasePrior, r.makePrior}}
	if r.s.Only == OnlyPrior {
		return all
	}
	return append(all, phase{PhaseStrength, r.makeStrategy}, phase{PhaseBackground, r.surroundings},
		phase{PhaseImputer, r.makeImputer}, phase{PhaseMembers, r.makeMembers}, phase{PhaseReliability, r.makeReliability},
		phase{PhaseCalibration, r.makeCalibration}, phase{PhaseGate, r.judge})
}

// choosePatches chooses the patches to learn from, and the overlays that choose
// and that judge.
func (r *run) choosePatches() error {
	refs := r.train.Refs(r.s.Imputer.Side, r.s.Stride, partition.MinObservedCells)
	replay := r.s.Replay
	if r.req.Parent == nil {
		replay = Replay{} // a first model learns from all seasons alike
	}
	var err error
	if r.own, err = replay.choose(refs, ageIn(r.train), stream(r.s, "replay")); err != nil {
		return err
	}
	if r.refs, err = r.besideOwn(); err != nil {
		return err
	}
	if r.choosing, err = r.overlays(r.chooseSide, r.s.Judging.Choosing); err != nil {
		return fmt.Errorf("days that end trainings and calibrate (there are %s): %w; give more days", r.split.describe(), err)
	}
	if r.judging, err = r.overlays(r.judgeSide, r.s.Judging.Overlays); err != nil {
		return fmt.Errorf("days that judge (there are %s): %w; give more days", r.split.describe(), err)
	}
	r.low, r.high = rangeOf(r.train, refs, r.s.Judging.Margin)
	return nil
}

// besideOwn returns the patches of train and, where there is something to learn
// from beside it, as many of that: the fewer are shown again.
func (r *run) besideOwn() ([]samples.Ref, error) {
	if len(r.req.Beside) == 0 {
		return r.own, nil
	}
	others := slices.DeleteFunc(r.learned.Refs(r.s.Imputer.Side, r.s.Stride, partition.MinObservedCells), func(ref samples.Ref) bool {
		return ref.Day < r.train.Days()
	})
	if len(others) == 0 {
		return nil, fmt.Errorf("learn beside: %w", errNoPatches)
	}
	all := make([]samples.Ref, 0, 2*max(len(r.own), len(others)))
	for i := range max(len(r.own), len(others)) {
		all = append(all, r.own[i%len(r.own)], others[i%len(others)])
	}
	return all, nil
}

// overlays returns at most so many overlays of held-out days, in random order.
// Where there are few, windows overlap by half and then by three quarters; the
// bootstrap draws days, so that cells that are scored twice do not count twice.
func (r *run) overlays(of samples.HeldOut, most int) ([]samples.Overlay, error) {
	cfg := samples.DefaultOverlays(r.s.Imputer.Side)
	for cfg.Stride = cfg.Side; ; cfg.Stride /= 2 {
		all, err := of.Overlays(cfg)
		if err != nil {
			return nil, err
		}
		if len(all) < r.s.Judging.Scoring && cfg.Stride > max(cfg.Side/4, 1) {
			continue
		}
		some := make([]samples.Overlay, min(most, len(all)))
		for i, k := range stream(r.s, "overlays").Rand(0).Perm(len(all))[:len(some)] {
			some[i] = all[k]
		}
		return some, nil
	}
}

// rangeOf returns the range of the anomalies of patches, wider by a share of
// it on both sides.
func rangeOf(data samples.Train, refs []samples.Ref, margin float64) (low, high float32) {
	l, h := math.Inf(1), math.Inf(-1)
	for _, ref := range refs {
		for _, v := range data.Cut(ref).Values {
			if v == v { // not NaN
				l, h = min(l, float64(v)), max(h, float64(v))
			}
		}
	}
	wider := margin * (h - l)
	return float32(l - wider), float32(h + wider)
}
