package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// A Job is a table to be made.
type Job struct {
	Table    Table
	Settings Settings
	Series   samples.Series
	Beside   []samples.Series         // further series that networks learn from, and that nobody is judged on
	Dataset  string                   // name in titles
	Label    string                   // label of maps, with the unit
	Truth    []field.Field            // days without gaps, in physical units; nil: unknown
	Gaussian *evaluate.GaussianSea    // origin of Series; nil: no Gaussian sea
	Stored   map[string]version.Parts // versions of rows by Stored, by the name of the row
	Prior    []byte                   // a mask prior; nil: trained where a row needs one
	Folder   string                   // folder of results
	Kept     string                   // folder of finished networks and records, which runs may share; empty: Folder
	Plain    bool                     // draw no pictures
	// Engine opens the engine of the networks. It is called at most once, and only
	// if a network has to run. The caller closes it.
	Engine func() (*engine.Engine, error)
	// State that successive runs may share; nil: the run has its own.
	Runners  *Runners        // runners on Engine
	Analyses *learn.Analyses // analyses of the same series and split

	// Done, if not nil, is called for every row and seed, those of earlier runs too.
	Done func(Record)

	Calendar samples.Calendar // roles of dates; empty: made of Series by Settings.Split
	Seen     []samples.Seen   // days that a stored version knows: nothing is judged on them
}

// Runners hold the runners of an engine, with their compiled programs.
type Runners struct {
	many, few *impute.Runner
	trainer   *learn.Trainer // trainer of networks that run in many
}

// Trainer returns the trainer of networks that take many windows at a time.
func (s *Runners) Trainer() *learn.Trainer { return s.trainer }

// samplerBatch is how many members a sampler takes through a network at a time:
// those of one case.
const samplerBatch = 8

// NewRunners returns runners that have compiled nothing yet.
func NewRunners(e *engine.Engine, cfg impute.RunnerConfig) (*Runners, error) {
	many, err := impute.NewRunner(e, cfg)
	if err != nil {
		return nil, err
	}
	cfg.Batch = min(cfg.Batch, samplerBatch)
	few, err := impute.NewRunner(e, cfg)
	return &Runners{many, few, learn.NewTrainer(many)}, err
}

// Close frees everything that was compiled.
func (s *Runners) Close() {
	s.trainer.Close()
	s.many.Close()
	s.few.Close()
}

// Progress is the progress of a run.
type Progress struct {
	Done, Rows  int    // rows times seeds
	Name        string // name of the row
	Seed        uint64
	Phase       string
	Step, Steps int
	Loss        float64 // 0: not training
}

// Run makes a table. It returns ctx.Err() when cancelled; the same job then goes
// on from the finished files in its folder.
func Run(ctx context.Context, job Job, progress func(Progress)) (evaluate.Results, error) {
	r, err := begin(job, progress)
	if err != nil {
		return evaluate.Results{}, fmt.Errorf("evaluate: %w", err)
	}
	defer r.close()
	for i := range r.entries {
		if err := ctx.Err(); err != nil {
			return evaluate.Results{}, err
		}
		r.at = i
		if !r.entries[i].done {
			if err := r.do(ctx, &r.entries[i]); err != nil {
				return evaluate.Results{}, fmt.Errorf("evaluate %s: %w", r.entries[i].row.Name, err)
			}
		}
		if err := r.report(r.entries[i]); err != nil {
			return evaluate.Results{}, fmt.Errorf("evaluate %s: %w", r.entries[i].row.Name, err)
		}
	}
	results, err := r.results()
	if err != nil {
		return results, fmt.Errorf("evaluate: %w", err)
	}
	if job.Plain {
		return results, nil
	}
	if err := r.draw(ctx, results); err != nil {
		return results, fmt.Errorf("draw pictures: %w", err)
	}
	return results, nil
}

// report hands the record of a finished entry to the caller.
func (r *run) report(e entry) error {
	if r.job.Done == nil {
		return nil
	}
	record, err := r.public(e)
	if err == nil {
		r.job.Done(record)
	}
	return err
}

// An entry is a row for one seed.
type entry struct {
	row    Row
	seed   uint64
	mode   impute.Mode
	key    string
	done   bool
	record record
}

// A run is the state of Run.
type run struct {
	job      Job
	s        Settings
	progress func(Progress)
	folder   folder
	entries  []entry
	at       int // entry

	train    samples.Train
	choose   samples.HeldOut // days that choose: a mask prior is stopped by them
	held     samples.HeldOut // days of the overlays: those that judge, or those that choose where Settings say so
	days     samples.Assignment
	overlays []samples.Overlay
	median   int // number of the case that pictures show
	material learn.Material
	around   impute.Surroundings
	truth    *evaluate.Truth
	exams    map[impute.Mode]*exams

	dataKey, priorKey string
	engine            *engine.Engine // nil: not opened yet
	runner, small     *impute.Runner
	trainer           *learn.Trainer
	prior             *prior.Model
	model             *impute.Model // the last one used, with key modelKey
	modelKey          string
	trainSeconds      float64         // since the entry began
	drawn             map[string]kept // members of networks by key
}

// exams are the exams of one mode.
type exams struct {
	main        *evaluate.Exam
	truth, gaps *evaluate.Exam // nil: the truth is unknown
	reached     float64        // share of the true gaps that weighted overlays represent
}

func begin(job Job, progress func(Progress)) (*run, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	r := &run{job: job, s: job.Settings, progress: progress, folder: folder(cmp.Or(job.Kept, job.Folder)), exams: map[impute.Mode]*exams{}, drawn: map[string]kept{}}
	if err := errors.Join(job.Table.Validate(), r.s.Validate(), r.checkRows()); err != nil {
		return nil, err
	}
	var err error
	if err = r.split(); err != nil {
		return nil, err
	}
	if r.train, _, err = r.train.Beside(job.Beside, r.s.Split); err != nil {
		return nil, fmt.Errorf("learn beside: %w", err)
	}
	if r.overlays, err = r.held.Overlays(r.s.Overlays); err != nil {
		return nil, err
	}
	if err := enoughDays(r.overlays, r.bootstrap()); err != nil {
		return nil, err
	}
	r.median = medianCase(r.overlays)
	r.material, r.around = learn.Material{Train: r.train, Analyses: job.Analyses}, impute.Surroundings{Days: r.held}
	if job.Truth != nil {
		t, err := evaluate.NewTruth(job.Truth, r.held)
		if err != nil {
			return nil, err
		}
		r.truth = &t
	}
	return r, errors.Join(os.MkdirAll(job.Folder, 0o755), r.folder.make(), r.list())
}

func (r *run) bootstrap() skill.Bootstrap {
	b := skill.DefaultBootstrap()
	b.BlockDays = r.s.BlockDays
	return b
}

// enoughDays returns an error if there are too few days to tell methods apart,
// before anything is trained.
func enoughDays(overlays []samples.Overlay, boot skill.Bootstrap) error {
	losses := make([]skill.Loss, len(overlays))
	for i, o := range overlays {
		losses[i] = skill.Loss{Day: o.Time, Sum: 1, Pixels: 1}
	}
	if _, known := boot.Mean(losses); !known {
		return fmt.Errorf("the %d overlays lie on too few days to tell methods apart: give more days, or more overlays", len(overlays))
	}
	return nil
}

// checkRows reports rows whose requirements the job does not meet.
func (r *run) checkRows() error {
	var errs []error
	for _, row := range r.job.Table.Rows {
		switch {
		case row.By == Kriging && r.job.Gaussian == nil:
			errs = append(errs, fmt.Errorf("row %s: of these data no covariance is known; it is for synthetic data", row.Name))
		case row.By == Stored && r.job.Stored[row.Name] == nil:
			errs = append(errs, fmt.Errorf("row %s: there is no version for it: a champion and a version by name need a model store", row.Name))
		}
	}
	if r.job.Table.Name == "mnar" && r.job.Truth == nil {
		errs = append(errs, errors.New("table mnar needs a series without gaps beside the data"))
	}
	return errors.Join(errs...)
}

// list makes the entries, and finds those that are done.
func (r *run) list() error {
	data, err := fingerprint(r.job.Series)
	if err != nil {
		return err
	}
	for _, s := range r.job.Beside {
		also, err := fingerprint(s)
		if err != nil {
			return err
		}
		data += also
	}
	// The settings of the split do not say it all: there may be a calendar, and
	// programs before there were any learned from other days.
	if data, err = keyOf(data, r.days); err != nil {
		return err
	}
	truth := fingerprintFields(r.job.Truth)
	kind, err := r.engineKind()
	if err != nil {
		return err
	}
	if r.dataKey, err = keyOf(data, r.s.Split, kind); err != nil {
		return err
	}
	if r.priorKey, err = keyOf(r.dataKey, r.s.Prior, r.job.Prior); err != nil {
		return err
	}
	for _, row := range r.job.Table.Rows {
		seeds := 1
		if row.trains() && row.Seeds < 2 {
			seeds = r.s.Seeds
		}
		for seed := 1; seed <= seeds; seed++ {
			e := entry{row: row, seed: uint64(seed), mode: row.Mode}
			if e.mode == "" {
				e.mode = r.s.Mode
			}
			if e.key, err = r.entryKey(e, data, truth); err != nil {
				return err
			}
			if e.record, e.done, err = r.folder.record(e.key); err != nil {
				return err
			}
			r.entries = append(r.entries, e)
		}
	}
	return nil
}

// entryKey returns the key of a row and seed: everything that its record depends on.
func (r *run) entryKey(e entry, data, truth string) (string, error) {
	common := []any{data, truth, r.s.Split, r.s.Choosing, r.s.Overlays, r.s.BlockDays, e.mode, e.row, e.seed}
	switch {
	case e.row.trains():
		common = append(common, r.dataKey, r.s.Train, r.s.Members, r.s.PerPatch, r.s.Drawing, r.s.DINDiffDraws, r.s.DINDiffSteps)
		if e.row.needsPrior() {
			common = append(common, r.priorKey, r.s.Target, r.s.Pool, r.s.MaskPatches, r.s.MaskDraws)
		}
	case e.row.By == TunedOI:
		common = append(common, r.s.Train.Side)
	case e.row.By == Stored:
		common = append(common, r.dataKey, r.job.Stored[e.row.Name])
	}
	return keyOf(common...)
}

// engineKind opens the engine if a row needs one: results of engines differ in
// their last digits.
func (r *run) engineKind() (string, error) {
	if !slices.ContainsFunc(r.job.Table.Rows, func(row Row) bool { return row.trains() || row.By == Stored }) {
		return "", nil
	}
	e, err := r.open()
	if err != nil {
		return "", err
	}
	return e.Kind, nil
}

// open returns the engine, with runners on it.
func (r *run) open() (*engine.Engine, error) {
	if r.engine != nil {
		return r.engine, nil
	}
	e, err := r.job.Engine()
	if err != nil {
		return nil, err
	}
	runners := r.job.Runners
	if runners == nil {
		if runners, err = NewRunners(e, r.s.Runner); err != nil {
			return nil, err
		}
	}
	r.runner, r.small, r.trainer = runners.many, runners.few, runners.trainer
	r.engine = e
	return e, nil
}

func (r *run) close() {
	if r.model != nil {
		r.model.Close()
	}
	if r.prior != nil {
		r.prior.Close()
	}
	if r.engine != nil && r.job.Runners == nil {
		(&Runners{r.runner, r.small, r.trainer}).Close()
	}
}

func (r *run) tell(phase string, step, steps int, loss float64) {
	e := r.entries[min(r.at, len(r.entries)-1)]
	r.progress(Progress{Done: r.at, Rows: len(r.entries), Name: e.row.Name, Seed: e.seed, Phase: phase, Step: step, Steps: steps, Loss: loss})
}

// medianCase returns the case in which the mean map has the median error: a
// choice that favours no method.
func medianCase(overlays []samples.Overlay) int {
	errs, order := make([]float64, len(overlays)), make([]int, len(overlays))
	for i, o := range overlays {
		sum, n := 0.0, 0.0
		for k, v := range o.Values {
			if o.Scored[k] {
				sum, n = sum+float64(v)*float64(v), n+1
			}
		}
		errs[i], order[i] = math.Sqrt(sum/n), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case errs[a] < errs[b]:
			return -1
		case errs[a] > errs[b]:
			return 1
		}
		return 0
	})
	return order[len(order)/2]
}
