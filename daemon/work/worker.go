package work

import (
	"context"
	"log/slog"
	"math"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/daemon/fill"
	"lacuna/daemon/gridpin"
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

	Trainings Trainings                                  // pause for filling, which goes first; nil: none run
	Fresh     func(sha256 string) (ingest.Granule, bool) // a granule that the intake has decoded already; nil: none
	Whole     func() time.Time                           // when the archive was last seen whole; nil: it is now
	Fetching  func() fetch.Days                          // older days that are still being fetched on request; nil: none
	Backfill  Throttle                                   // holds the backfill lane back; nil: nothing does
	Wake      <-chan struct{}                            // a value: there may be work; nil: only granules and time bring some
	Trouble   func(err error)                            // called with the outcome of each round of tasks; may be nil
	Metrics   *ops.Metrics                               // nil: none are kept
	Heartbeat *supervise.Heartbeat                       // nil: it is not watched
	Slots     *slots.Slots                               // nil: this is the only worker
	Remote    *Remote                                    // nil: granules are filled in this process, one after the other
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

// Trainings share the machine with filling.
type Trainings interface {
	Hold() (release func())       // pauses them, for a task of the live lane
	HoldInTurn() (release func()) // pauses them, for a task that can wait, and is begun where Owed is 0
	Owed() time.Duration          // what tasks that can wait leave them now
}

type untrained struct{}

func (untrained) Hold() (release func()) { return func() {} }

func (untrained) HoldInTurn() (release func()) { return func() {} }

func (untrained) Owed() time.Duration { return 0 }

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

	// Of a worker whose granules are filled elsewhere, or beside it:
	spooled map[string]string // where the decoded granules lie, by sha256
	round   *Summary          // of the round of tasks in hand
	sent    map[int64]sentJob // under way, by granule; scores count from -1 down
	answers chan answer
	refused map[int64]error // products that could not be stored in this round, by granule
	resumed bool            // the jobs of an earlier daemon were sent again
	large   bool            // the granule that was sent last leaves no memory for another beside it
	gaveWay int             // how often jobs were dropped for a live granule since the last one was stored
}

// New returns the worker of a dataset. It touches nothing; Run and WorkOff do.
func New(set Dataset, cfg Settings, parts Parts) *Worker {
	if parts.Trainings == nil {
		parts.Trainings = untrained{}
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
		List: set.Covariates, Reader: parts.Reader, Granules: Beside(parts.Books, parts.Reading),
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

// logNote logs why analyses are poorer than they could be, once until it changes:
// the reason is that of the series, and would come with every granule.
func (w *Worker) logNote(note string) {
	if note != "" && note != w.noted {
		w.Log.Info("analysis", "note", note)
	}
	w.noted = note
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
