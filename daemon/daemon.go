package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/fill"
	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/daemon/pages"
	"lacuna/daemon/slots"
	"lacuna/daemon/supervise"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"

	"golang.org/x/sync/errgroup"
)

// Parts are the parts that a Daemon is made of.
type Parts struct {
	Log   *slog.Logger
	Now   func() time.Time // nil: time.Now
	Child []string         // argv of the decoding child, see ingest.NewReader
	// Program is the argv of lacuna, for its training children; empty: nothing
	// is trained.
	Program []string
	// Name tells this daemon from others that may be the coordinator of its workers;
	// empty: the name of the machine.
	Name string
}

// Daemon is the service.
type Daemon struct {
	cfg      Config
	operate  operate.Settings // of cfg: made once, for every dataset holds on to those of all
	parts    Parts
	log      *slog.Logger
	reader   slots.Decoders
	archives *intake.Archives
	spool    *fetch.Spool // one for all datasets, so that they share the disk fairly
	store    disk.Store
	began    atomic.Bool // every stage was started once
	ready    atomic.Bool
	refused  atomic.Pointer[string] // why the configuration in the file was not taken up; nil: it was
	addr     atomic.Value           // string: host:port of the status page

	heartbeats *supervise.Heartbeats
	troubles   pages.Troubles // errors that keep granules from being filled
	supervisor *ops.Supervisor
	wakes      map[string]chan struct{} // by dataset: they wake its worker
	// Read by the status page, and set before any stage runs.
	intakes map[string]*intake.Intake // by dataset
	renewal *renewal
	out     *outbox.Outbox
	fleet   atomic.Pointer[workers.Fleet] // nil: granules are filled in this process
}

// New returns the service that cfg describes. It touches neither the network
// nor the disk; Run and Once do.
func New(cfg Config, parts Parts) (*Daemon, error) {
	if parts.Now == nil {
		parts.Now = time.Now
	}
	reader, err := ingest.NewReader(cfg.Decode, parts.Child)
	if err != nil {
		return nil, err
	}
	d := &Daemon{
		cfg: cfg, operate: cfg.Operate(), parts: parts, log: parts.Log, reader: slots.NewDecoders(reader), store: cfg.Publish.Store(cfg.ProductsDir),
		spool: fetch.NewSpool(cfg.state().Spool()), heartbeats: supervise.NewHeartbeats(parts.Now),
		supervisor: ops.NewSupervisor(parts.Log), intakes: map[string]*intake.Intake{},
		wakes: map[string]chan struct{}{},
	}
	for _, set := range cfg.Datasets {
		d.wakes[set.Name] = make(chan struct{}, 1)
	}
	d.archives, err = intake.New(intake.Parts{
		State: cfg.state(), Spool: d.spool, Manners: cfg.Manners, Reader: d.reader.Patient(), Log: parts.Log,
		Now: func() time.Time { return d.parts.Now() },
	})
	return d, err
}

// Addr returns host:port of the status page; empty before Run has bound it.
func (d *Daemon) Addr() string {
	addr, _ := d.addr.Load().(string)
	return addr
}

var errDrainTimeout = errors.New("granules in hand were not finished in time; they are taken up at the next start")

// Run serves until ctx is cancelled, finishes the granules in hand and returns
// nil. Any other return is a failure that needs an operator.
func (d *Daemon) Run(ctx context.Context) error {
	turn, book, err := d.begin(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer turn.close()
	defer d.books().Close(ctx, book)
	out, err := d.openOutbox(ctx, book)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer out.Close()
	renewal := d.openRenewal(book)
	defer renewal.close()
	renewal.trainBy(turn, d)
	d.renewal = renewal
	look, err := book.Look(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer look.Close()
	server, err := d.listen(book, look)
	if err != nil {
		return err
	}

	// Cancelling ctx stops the intake only. A worker finishes the granule in
	// hand; hard is cancelled if that takes too long.
	hard, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	defer turn.whenLost(abandon)()
	g, working := errgroup.WithContext(hard)
	arriving, stopIntake := context.WithCancel(working)
	defer stopIntake()
	defer context.AfterFunc(ctx, func() {
		d.log.Info("stopping", "drain", d.cfg.Drain)
		d.ready.Store(false)
		if errors.Is(context.Cause(ctx), errReload) {
			d.supervisor.Reloading()
		} else {
			d.supervisor.Stopping()
		}
		stopIntake()
		time.AfterFunc(d.cfg.Drain, func() { abandon(errDrainTimeout) })
	})()

	shared := shared{book: book, out: out, renewal: renewal, turn: turn, metrics: server.Metrics(), slots: slots.New(slots.Fills()), beside: slots.New(slots.Fills())}
	stages, err := d.stages(shared)
	if err != nil {
		return err
	}
	attendants, err := d.attendants(book, look)
	if err != nil {
		return err
	}
	stages = slices.Concat(stages, turn.stages(d.cfg.Datasets), out.Stages(), attendants, renewal.stages(),
		[]supervise.Stage{supervise.Lasting("status page", nil, server.Run), supervise.Lasting("look at the sandbox", nil, func(ctx context.Context) error {
			d.logIsolation(ctx)
			return nil
		})})
	keeper := supervise.New(d.log, isDamaged)
	for _, s := range stages {
		g.Go(func() error { return keeper.Keep(arriving, working, s) })
	}
	d.began.Store(true)
	d.ready.Store(true)
	defer d.watch(ctx, look)()
	err = g.Wait()
	out.LastFlush(ctx)
	if err != nil {
		return err
	}
	return context.Cause(hard) // nil, or errDrainTimeout
}

// listen returns the server of the status page, whose address is bound.
func (d *Daemon) listen(book, look *ledger.Ledger) (*ops.Server, error) {
	server, err := ops.New(d.cfg.Web, d.pages().Sources(book, look), d.log)
	if err != nil {
		return nil, err
	}
	if err := server.Listen(); err != nil {
		return nil, err
	}
	d.addr.Store(server.Addr())
	return server, nil
}

// isDamaged reports whether an error is that of a damaged ledger, which starting a
// stage again does not mend.
func isDamaged(err error) bool { return errors.Is(err, ledger.ErrDamaged) }

// shared are the parts that the workers of all datasets share.
type shared struct {
	book    *ledger.Ledger
	out     *outbox.Outbox
	renewal *renewal
	turn    *coordination // nil: granules are filled in this process
	metrics *ops.Metrics  // nil: none are kept
	slots   *slots.Slots  // nil: there is one worker at a time
	beside  *slots.Slots  // of what is filled beside workers; nil: likewise
}

// stages makes the stages of every dataset. It starts none, so that after an error
// nothing is left running.
func (d *Daemon) stages(with shared) ([]supervise.Stage, error) {
	var all []supervise.Stage
	for _, set := range d.cfg.Datasets {
		w, in, err := d.dataset(set, with)
		if err != nil {
			return nil, err
		}
		d.intakes[set.Name] = in
		if set.Simulate != nil {
			// The folder must be there before the watcher first looks.
			if err := os.MkdirAll(set.Archive.Dir, 0o755); err != nil {
				return nil, fmt.Errorf("make archive of dataset %s: %w", set.Name, err)
			}
			all = append(all, supervise.Lasting("simulated producer of "+set.Name, nil, func(ctx context.Context) error {
				return set.Simulate.Run(ctx, set.Archive.Dir, d.log)
			}))
		}
		all = append(all, supervise.Stage{Name: "worker of " + set.Name, Heartbeat: w.Heartbeat, Run: func(arriving, working context.Context) error {
			return w.Run(arriving, working, in.Run)
		}},
			supervise.Lasting("notices of "+set.Name, nil, func(ctx context.Context) error { return in.Announce(ctx, w.Log) }))
		if set.Archive.Type == "cmems" && set.TrialDays > 0 {
			all = append(all, supervise.Lasting("trial of new versions of "+set.Name, nil, func(ctx context.Context) error {
				return d.tryVersions(ctx, with.book, set, in, w.Log)
			}))
		}
	}
	return all, nil
}

// Once makes one pass over every dataset and returns when nothing is left to do.
// It returns an error where work was left unfinished for a reason of our own; a
// granule that was set aside counts as finished.
func (d *Daemon) Once(ctx context.Context) (work.Summary, error) {
	turn, err := d.coordinate(ctx)
	if err != nil {
		return work.Summary{}, err
	}
	defer turn.close()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer turn.whenLost(lose)()
	book, err := turn.openAs(ctx, d)
	if err != nil {
		return work.Summary{}, err
	}
	defer turn.listen(ctx)()
	defer d.books().Close(ctx, book)
	out, err := d.openOutbox(ctx, book)
	if err != nil {
		return work.Summary{}, err
	}
	defer out.Close()
	renewal := d.openRenewal(book) // for the models: a pass trains nothing
	defer renewal.close()
	out.LookFirst(ctx)
	d.logIsolation(ctx)
	stop := out.Background(ctx)
	defer stop()
	defer d.tellPass(ctx, book)()
	var total work.Summary
	var errs []error
	for _, set := range d.cfg.Datasets {
		if set.Simulate != nil {
			if err := set.Simulate.CatchUp(ctx, set.Archive.Dir); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		w, in, err := d.dataset(set, shared{book: book, out: out, renewal: renewal, turn: turn})
		if err != nil {
			return total, err
		}
		fetched, err := in.Sync(ctx, fetch.Days{}, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
		done, err := w.WorkOff(ctx)
		total.Products += done.Products
		total.SetAside += done.SetAside + fetched.SetAside
		total.TooFresh += fetched.Waiting
		total.Unfinished += done.Unfinished
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
	}
	stop()
	errs = append(errs, out.Flush(ctx), out.Tidy(ctx), turn.lost())
	return total, errors.Join(errs...)
}

// open opens the ledger and removes the unfinished files of a killed process.
func (d *Daemon) open(ctx context.Context) (*ledger.Ledger, error) {
	book, err := d.books().Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.spool.Sweep(d.parts.Now()), d.cfg.state().Sweep()); err != nil {
		return nil, errors.Join(err, book.Close())
	}
	return book, nil
}

// books returns the keeper of the ledger.
func (d *Daemon) books() books.Keeper {
	options := map[string]ingest.Options{}
	for _, set := range d.cfg.Datasets {
		options[set.Name] = set.granules()
	}
	return books.Keeper{
		State: d.cfg.state(), Store: d.store, Datasets: options, Sinks: d.cfg.Publish.SinkNames(), Reader: d.reader, Now: d.parts.Now, Log: d.log,
	}
}

// openOutbox opens the sinks of the configuration.
func (d *Daemon) openOutbox(ctx context.Context, book *ledger.Ledger) (*outbox.Outbox, error) {
	out, err := outbox.Open(ctx, d.cfg.Publish, outbox.Parts{
		Book: book, Keeper: d.books(), Heartbeats: d.heartbeats, Now: d.parts.Now, Log: d.log,
	})
	d.out = out
	return out, err
}

// TakeOver makes this state the owner of every sink of the configuration, see
// outbox.TakeOver.
func (d *Daemon) TakeOver(ctx context.Context, why string) ([]outbox.TakenOver, error) {
	return outbox.TakeOver(ctx, d.cfg.Publish, d.books(), why)
}

// Rebuild moves the ledger away and makes another from the files on the disk, see
// books.Keeper.Rebuild. No daemon may be running.
func (d *Daemon) Rebuild(ctx context.Context) (books.Rebuilt, error) { return d.books().Rebuild(ctx) }

// dataset makes the watcher and the worker of one dataset.
func (d *Daemon) dataset(set Dataset, with shared) (*work.Worker, *intake.Intake, error) {
	in, err := d.archives.Intake(set.intake(), with.book, false)
	if err != nil {
		return nil, in, err
	}
	heartbeat := d.heartbeats.Add("worker of "+set.Name, d.cfg.Decode.Timeout+workSilence)
	return work.New(set.work(), d.cfg.work(), work.Parts{
		Books: with.book, Reader: d.reader, Store: d.store, Models: with.renewal.models, Now: d.parts.Now, Log: d.log,
		Queue:     outbox.Queue{Book: with.book, Store: d.store, Sinks: d.cfg.Publish.SinkNames(), Skill: set.DailySkill, Now: d.parts.Now, Wake: with.out.Nudge},
		Trainings: with.renewal, Fresh: in.Fresh, Metrics: with.metrics, Slots: with.slots, Remote: d.remote(set, with, heartbeat.Beat),
		Heartbeat: heartbeat,
		Trouble:   func(err error) { d.troubles.Note(set.Name, err) },
		Whole:     func() time.Time { return in.State().Whole },
		Fetching:  func() fetch.Days { return d.operate.Fetching(set.Name) },
		Backfill:  d.operate.Throttle(set.Name, d.parts.Now),
		Wake:      d.wakes[set.Name],
		Reading:   d.cfg.readingOf,
	}), in, nil
}

// intake returns the settings of a dataset that its intake needs.
func (d Dataset) intake() intake.Dataset {
	return intake.Dataset{Name: d.Name, Archive: d.lead(), Options: d.reading(), Sources: d.Sources}
}

// reading returns how the granules of a dataset are read.
func (d Dataset) reading() ingest.Options { return fill.Reading(d.Options, d.SeaIce) }

// readingOf returns how the granules of a dataset in the spool are read.
func (c Config) readingOf(dataset string) ingest.Options {
	for _, d := range c.Datasets {
		if d.Name == dataset {
			return fill.Reading(d.granules(), d.SeaIce)
		}
	}
	return ingest.Options{}
}

// work returns the settings of a dataset that its worker needs.
func (d Dataset) work() work.Dataset {
	return work.Dataset{
		Name: d.Name, Options: fill.Reading(d.granules(), d.SeaIce), SeaMask: d.SeaMask, Grid: d.Grid, Fill: d.Fill, Tests: d.Tests, SeaIce: d.SeaIce, Covariates: d.Covariates, Reanalysis: d.Reanalysis,
		DailySkill: d.DailySkill, Retry: d.lead().PollInterval, EmptyDays: d.EmptyDays, Due: d.lead().Due,
		Layout: d.Layout, FileName: d.FileName,
	}
}

// work returns the settings that all workers need.
func (c Config) work() work.Settings {
	return work.Settings{
		State: c.state(), Credits: c.Credits, QuickLook: c.Publish.QuickLook, Sinks: c.Publish.SinkNames(),
		Links: work.Links{Products: c.ProductsDir, BaseURL: c.Publish.BaseURL},
	}
}
