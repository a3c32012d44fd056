package work

import (
	"context"
	"log/slog"
	"math"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/daemon/fill"
	"lacuna/daemon/gridpin"
	"lacuna/daemon/jobs"
	"lacuna/daemon/quarantine"
	"lacuna/daemon/slots"
	"lacuna/daemon/state"
	"lacuna/daemon/supervise"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/pipeline/skill"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
)

// Dataset is the part of a dataset's settings that its worker needs.
type Dataset struct {
	Name string
	ingest.Options
	SeaMask    string       // auto, builtin, learned, or a NetCDF file
	Grid       *gridpin.Pin // the only grid that is accepted; nil: the first granules vote
	Fill       infer.Config
	Tests      quality.Tests // of observations
	SeaIce     quality.Ice
	Covariates []covariate.Config
	Reanalysis Reanalysis
	EmptyDays  EmptyDays
	Due        func(time.Time) (due time.Time, known bool) // when the granule of a time is due; nil: not known
	DailySkill bool                                        // score every granule under the gaps of another day
	Retry      time.Duration                               // pause between two attempts at failed tasks
	Layout     netcdf.Layout                               // of the files of products
	FileName   publish.Template                            // of their names; empty: that of the layout
}

// Settings are shared by the workers of all datasets.
type Settings struct {
	State     state.Dir
	Credits   netcdf.Credits
	Links     Links
	QuickLook bool     // a picture beside every product
	Sinks     []string // names of the sinks in the ledger
}

// Reader decodes granules, products and sea masks.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
	ReadSea(ctx context.Context, path string, grid field.Grid) (field.Mask, error)
}

// Queue records that the product of a granule is stored and promises it to every
// sink, in one transaction.
type Queue interface {
	Add(ctx context.Context, g ledger.Granule, told publish.Product, stored ledger.Product) error
	Nudge() // wakes the dispatchers
}

// Models choose the method that fills a granule.
type Models interface {
	Choose(c fill.Case) fill.Choice
	// Lost reports whether a model failed because its GPU is gone, and another
	// device stands in from now on.
	Lost() bool
}

// Parts are the parts that a worker is made of.
type Parts struct {
	Books  Books
	Reader Reader
	Store  disk.Store
	Queue  Queue
	Models Models
	Now    func() time.Time
	Log    *slog.Logger

	Hold      func() (release func())                    // pauses trainings, because filling goes first; nil: none run
	Fresh     func(sha256 string) (ingest.Granule, bool) // a granule that the intake has decoded already; nil: none
	Whole     func() time.Time                           // when the archive was last seen whole; nil: it is now
	Fetching  func() fetch.Days                          // older days that are still being fetched on request; nil: none
	Backfill  Throttle                                   // holds the backfill lane back; nil: nothing does
	Wake      <-chan struct{}                            // a value: there may be work; nil: only granules and time bring some
	Trouble   func(err error)                            // called with the outcome of each round of tasks; may be nil
	Metrics   *ops.Metrics                               // nil: none are kept
	Heartbeat *supervise.Heartbeat                       // nil: it is not watched
	Slots     *slots.Slots                               // nil: this is the only worker
	Remote    *Remote                                    // nil: granules are filled in this process
	Reading   func(dataset string) ingest.Options        // how the granules of another dataset are read, for covariates; nil: there is no other
}

// Throttle holds the backfill lane back.
type Throttle interface {
	Rests() bool // whether nothing of it may be begun now
	Begun()      // a product of it is begun
}

type unthrottled struct{}

func (unthrottled) Rests() bool { return false }

func (unthrottled) Begun() {}

// Worker takes the granules of one dataset from the spool to products.
type Worker struct {
	set Dataset
	cfg Settings
	Parts

	// decoded keeps the granules of the last windows by sha256, so that the
	// neighbours of today need not be decoded again tomorrow.
	decoded map[string]ingest.Granule
	// windows are the sha256 of the granules in use: the last window of the live
	// lane, and that of all other work, which the live lane interrupts.
	windows [2]map[string]bool
	looked  looked // how far the series was looked through for absences
	noted   string // the last note on an analysis that was logged
	pressed bool   // the task in hand is not interrupted by an arrival, and must not take long
	seen    seen
	screen  fill.Screening
	beside  *covariates.Covariates
	toldSea string // the last sea mask that was logged

	// Of a worker whose granules are filled elsewhere:
	spooled map[string]string // where the decoded granules lie, by sha256
	round   *Summary          // of the round of tasks in hand
	sent    map[int64]sentJob // under way, by granule; scores count from -1 down
	answers chan answer
	refused map[int64]error // products that could not be stored in this round, by granule
	resumed bool            // the jobs of an earlier daemon were sent again
}

// New returns the worker of a dataset. It touches nothing; Run and WorkOff do.
func New(set Dataset, cfg Settings, parts Parts) *Worker {
	if parts.Hold == nil {
		parts.Hold = func() func() { return func() {} }
	}
	if parts.Fresh == nil {
		parts.Fresh = func(string) (ingest.Granule, bool) { return ingest.Granule{}, false }
	}
	if parts.Backfill == nil {
		parts.Backfill = unthrottled{}
	}
	parts.Log = parts.Log.With("dataset", set.Name)
	w := &Worker{
		set: set, cfg: cfg, Parts: parts, decoded: map[string]ingest.Granule{}, spooled: map[string]string{}, refused: map[int64]error{},
		screen: fill.Screening{Tests: set.Tests, Ice: set.SeaIce, Reader: parts.Reader},
	}
	w.beside = &covariates.Covariates{
		List: set.Covariates, Reader: parts.Reader, Granules: w.granulesBeside,
		Log: func(text string) { w.Log.Warn("covariate left out", "why", text) },
	}
	return w
}

// Run watches the archive until intake is cancelled and does the tasks that
// arise; work is cancelled when the granule in hand must be dropped. watch sends
// every granule that it has brought into the spool, and closes the channel when
// it returns.
func (w *Worker) Run(intake, work context.Context, watch func(context.Context, chan<- fetch.Granule) error) error {
	watching, stop := context.WithCancel(intake)
	arrived := make(chan fetch.Granule)
	watched := make(chan error, 1)
	go func() { watched <- watch(watching, arrived) }()
	defer func() { // after a panic another worker follows, with a watcher of its own
		stop()
		for range arrived {
		}
	}()
	// Work that a crash left unfinished comes first. Failed tasks are tried again
	// at every tick, reopened products looked at when they have settled.
	retry := time.NewTicker(w.set.Retry)
	defer retry.Stop()
	at := &arrivals{granules: arrived, still: func() bool { return intake.Err() == nil }}
	for !at.ended {
		_, err := w.workOff(work, at)
		if w.Trouble != nil && work.Err() == nil {
			w.Trouble(err)
		}
		if err != nil && work.Err() == nil {
			w.Log.Warn("granules left unfinished", "err", err, "retry_in", w.set.Retry)
		}
		w.Heartbeat.Rest()
		if at.ended {
			break
		}
		select {
		case _, open := <-arrived:
			at.ended = !open
		case <-w.Wake:
		case <-retry.C:
		case <-w.settled(work):
		}
	}
	return <-watched
}

// process makes the product of one granule. A *ingest.BadGranule says that
// the granule is at fault and must be set aside.
func (w *Worker) process(ctx context.Context, g ledger.Granule) error {
	started := w.Now()
	if err := w.accept(ctx, g); err != nil {
		return err
	}
	s, err := w.scene(ctx, g, g.Lane == ledger.Live)
	if err != nil {
		return err
	}
	s.began = started
	w.Metrics.Took(w.set.Name, ops.Decode, w.Now().Sub(started))
	return w.produce(ctx, g, s)
}

// scene is a granule with its neighbours and its sea mask.
type scene struct {
	granule ingest.Granule
	history []ingest.Granule
	sea     field.Mask
	seen    field.Mask // cells that were observed on any known day; nil: too few are known
	seaMask string     // where the sea mask comes from
	began   time.Time  // start of the work on it

	screened fill.Screened // what was taken out of the granule
}

// scene reads a granule that was accepted before, its neighbours and its sea mask,
// and takes out what tests refuse.
func (w *Worker) scene(ctx context.Context, g ledger.Granule, live bool) (scene, error) {
	s, err := w.rawScene(ctx, g, live)
	if err == nil {
		err = w.screened(ctx, &s)
	}
	return s, err
}

// rawScene is scene with all observations.
func (w *Worker) rawScene(ctx context.Context, g ledger.Granule, live bool) (scene, error) {
	s := scene{began: w.Now()}
	var err error
	if s.granule, err = w.granule(ctx, g); err != nil {
		return s, err
	}
	if err := w.findStep(ctx); err != nil {
		return s, err
	}
	first, last := field.Span(s.granule.Fields)
	if s.history, err = w.history(ctx, g, [2]time.Time{first, last}, live); err != nil {
		return s, err
	}
	sea, err := w.sea(ctx, s.granule, s.history)
	s.sea, s.seen, s.seaMask = sea.Mask, sea.Seen, sea.Origin
	return s, err
}

// screened takes the observations out of a scene that tests refuse.
func (w *Worker) screened(ctx context.Context, s *scene) (err error) {
	s.granule, s.history, s.screened, err = w.screen.Granule(ctx, s.granule, s.history, s.sea)
	w.Heartbeat.Beat()
	return err
}

// fill analyses a granule for the revision g; first says that it has no product
// yet, which may be waited for.
func (w *Worker) fill(ctx context.Context, g ledger.Granule, s scene, first bool) (fill.Outcome, error) {
	started := w.Now()
	fetched, err := w.Books.FetchedAt(ctx, g)
	if err != nil {
		return fill.Outcome{}, err
	}
	outcome, _, err := w.analyse(ctx, w.jobOf(g, s, fetched, first))
	if err == nil {
		w.Metrics.Took(w.set.Name, ops.Analyse, w.Now().Sub(started))
	}
	return outcome, err
}

// finish stores the product of a revision and queues it to the sinks.
func (w *Worker) finish(ctx context.Context, g ledger.Granule, s scene, outcome fill.Outcome) error {
	first, _ := field.Span(s.granule.Fields)
	d := draft{
		granule: s.granule.Name, file: publish.WithMode(w.fileName(g.Revision, s.granule), outcome.Product.Mode), first: first, began: s.began, filled: w.Now(),
	}
	outcome.Product.Filled = d.filled
	if g.State == ledger.Filled { // before a crash: the file that may be there already says so
		outcome.Product.Filled = g.Changed
	}
	d.write = func(path string) (jobs.Made, error) {
		return jobs.Write(path, jobs.Draft{Name: d.file, Picture: w.cfg.QuickLook}, s.granule, outcome)
	}
	return w.store(ctx, g, d)
}

// store stores a product and queues it to the sinks.
func (w *Worker) store(ctx context.Context, g ledger.Granule, d draft) error {
	if err := w.Books.Advance(ctx, g.ID, ledger.Filled, d.filled); err != nil {
		return err
	}
	began := w.Now()
	told, made, stored, err := w.storeProduct(ctx, g, d)
	if err != nil {
		return err
	}
	product := ledger.Product{Path: stored.Visible, SHA256: stored.SHA256, Observed: made.Observed, Covered: made.Covered}
	if err := w.Queue.Add(ctx, g, told, product); err != nil {
		return err
	}
	w.Queue.Nudge()
	w.Metrics.Took(w.set.Name, ops.Store, w.Now().Sub(began))
	w.Metrics.Covered(w.set.Name, made.Observed, made.Covered)
	for _, r := range told.Refused {
		w.Metrics.Refused(w.set.Name, r.Test, r.Pixels)
	}
	w.Log.Info("product stored", "granule", d.granule, "revision", g.Revision, "mode", told.Mode,
		"input", told.Input, "observed_percent", percent(made.Observed), "covered_percent", percent(made.Covered),
		"neighbours", made.Neighbours, "calibration_days", made.Scored, "took_seconds", roundSeconds(w.Now().Sub(d.began)), "file", stored.Visible)
	w.logNote(made.Note)
	return nil
}

// logNote logs why analyses are poorer than they could be, once until it changes:
// the reason is that of the series, and would come with every granule.
func (w *Worker) logNote(note string) {
	if note != "" && note != w.noted {
		w.Log.Info("analysis", "note", note)
	}
	w.noted = note
}

// analyse fills a granule by the method that Models choose for its settings.
// Where a model fails, such as one of another grid, it falls back to optimal
// interpolation. It returns the job as it was done.
func (w *Worker) analyse(ctx context.Context, asked fill.Job) (fill.Outcome, fill.Job, error) {
	outcome, job, err := w.attempt(ctx, w.choose(ctx, asked))
	if err != nil && job.Model != nil && ctx.Err() == nil && w.Models.Lost() {
		outcome, job, err = w.attempt(ctx, w.choose(ctx, asked))
	}
	if err == nil || job.Model == nil || ctx.Err() != nil {
		return outcome, job, err
	}
	w.Log.Warn("the model cannot fill the granule", "granule", job.Granule.Name, "model", job.Model.Name(), "method", "oi", "err", err)
	return w.attempt(ctx, interpolated(job))
}

// choose returns the job with the method that Models choose.
func (w *Worker) choose(ctx context.Context, job fill.Job) fill.Job {
	choice := w.Models.Choose(fill.Case{
		Dataset: w.set.Name, Granule: job.Granule, Fill: job.Fill,
		Scaling:  func() (fill.LocalScaling, error) { return w.localScaling(ctx, job) },
		Evidence: func(c fill.Choice) skill.Trust { return w.trust(job, c) },
	})
	job.Fill, job.Model, job.Scaling, job.Trust = choice.Fill, choice.Model, choice.Scaling, choice.Trust
	return job
}

// attempt fills a granule by the method of the job, with the constants and the
// calibration of the dataset.
func (w *Worker) attempt(ctx context.Context, job fill.Job) (outcome fill.Outcome, done fill.Job, err error) {
	if job, err = w.equip(ctx, job); err != nil {
		return fill.Outcome{}, job, err
	}
	outcome, err = fill.Analyse(ctx, job, func(int, int) { w.Heartbeat.Beat() })
	return outcome, job, err
}

// equip returns the job with the constants and the calibration of the dataset.
func (w *Worker) equip(ctx context.Context, job fill.Job) (fill.Job, error) {
	if job.Fill.Method == "oi" || job.Trust != nil || job.Scaling != nil {
		var err error
		if job.Constants, err = w.constants(ctx, job); err != nil {
			return job, err
		}
		if job.Explained, err = fill.Explain(ctx, job, w.beside, false); err != nil {
			return job, err
		}
	}
	job.Widening, job.Centre = w.widening(job), w.centre(job)
	if job.Trust != nil {
		job.Interpolated = w.widening(interpolated(job))
	}
	return job, nil
}

// interpolated returns the job as optimal interpolation does it.
func interpolated(job fill.Job) fill.Job {
	job.Fill.Method, job.Model, job.Scaling, job.Trust = "oi", nil, nil, nil
	return job
}

func (w *Worker) aside() quarantine.Folder { return quarantine.Folder{State: w.cfg.State} }

// setAside moves a bad granule out of the way, with the reason beside it.
func (w *Worker) setAside(ctx context.Context, g ledger.Granule, bad *ingest.BadGranule) error {
	reason := (&ingest.BadGranule{File: g.Name, Problem: bad.Problem, Remedy: bad.Remedy}).Error()
	w.looked.again(g, ingest.Granule{})
	if g.Absent { // it has no file
		return w.Books.Quarantine(ctx, g.ID, reason, w.Now())
	}
	target, err := w.aside().Put(g, reason)
	if err != nil {
		return err
	}
	w.Log.Warn("granule set aside", "granule", g.Name, "reason", reason, "file", target)
	return w.Books.Quarantine(ctx, g.ID, reason, w.Now())
}

func percent(share float64) float64 { return float64(int(share*1000+0.5)) / 10 }

// roundSeconds rounds after the division, so that a log has 1.86 and not
// 1.8599999999999999.
func roundSeconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }
