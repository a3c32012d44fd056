package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/jobs"
	"lacuna/daemon/state"
	"lacuna/daemon/supervise"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/internal/pause"
	"lacuna/ledger"
	"lacuna/publish/disk"
)

// workers returns the section workers with what it takes from others.
func (c Config) workers() workers.Config {
	w := c.Workers
	if k := c.Publish.Kafka; k != nil {
		if len(w.Brokers) == 0 {
			w.Connection = k.Connection
		}
		if w.Prefix == "" {
			w.Prefix = k.Prefix
		}
	}
	if w.Prefix == "" {
		w.Prefix = "lacuna"
	}
	if w.SharedDir == "" && w.S3 == nil {
		w.SharedDir = filepath.Join(c.StateDir, "shared")
	}
	return w
}

// checkWorkers returns the faults of the section workers.
func (c Config) checkWorkers() error {
	if c.Workers.Type == workers.Kafka && len(c.Workers.Brokers) == 0 && c.Publish.Kafka != nil && c.Publish.Kafka.Embedded {
		return errors.New("brokers is empty: workers need brokers of their own, the embedded one of publish.kafka is for trying out")
	}
	return c.workers().Validate()
}

// coordination is the part of a daemon whose granules are filled by workers. Nil: it
// fills them itself.
type coordination struct {
	held    context.Context // ends when another daemon may be the coordinator
	release func()
	fleet   *workers.Fleet
	cfg     workers.Config
	folder  jobs.Folder
	standby func() // ends the wait, for the service manager
}

// standBy tells the service manager that this daemon is well and waits for its turn,
// until stop is called.
func (d *Daemon) standBy(ctx context.Context) (stop func()) {
	const line = "standing by: another daemon is the coordinator, or the brokers do not answer"
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	d.supervisor.Ready(line)
	go func() {
		defer close(ended)
		d.supervisor.Watch(ctx, func() string { return "" }, func() string { return line })
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-ended
	})
}

// errStopped says that a daemon was stopped while it stood by.
var errStopped = errors.New("stopped before its turn")

// stopped returns errStopped where ctx has ended, else err.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errStopped
	}
	return err
}

// unlessStopped returns the error of a start; nil where the daemon was told to stop before
// it was over: that is no failure.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// begin opens the ledger when it is this daemon's turn. The error is errStopped where
// it was stopped before.
func (d *Daemon) begin(ctx context.Context) (*coordination, *ledger.Ledger, error) {
	turn, err := d.coordinate(ctx)
	if err != nil {
		return nil, nil, err
	}
	book, err := turn.openAs(ctx, d)
	if err != nil {
		turn.close()
		return nil, nil, err
	}
	return turn, book, nil
}

// coordinate waits until this daemon is the coordinator.
func (d *Daemon) coordinate(ctx context.Context) (*coordination, error) {
	if d.cfg.Workers.Type != workers.Kafka {
		return nil, nil
	}
	cfg := d.cfg.workers()
	folder, err := cfg.Folder()
	if err != nil {
		return nil, fmt.Errorf("%w: workers: %w", ErrConfig, err)
	}
	c := &coordination{cfg: cfg, folder: folder, standby: d.standBy(ctx)}
	c.held, c.release, err = workers.Turn{Config: c.cfg, Log: d.log}.Await(ctx)
	if err != nil {
		c.standby()
		return nil, stopped(ctx, err)
	}
	c.fleet, err = workers.NewFleet(c.cfg, c.folder, d.parts.Now, d.log)
	if err == nil {
		err = c.fleet.Prepare(ctx)
	}
	if err != nil {
		c.close()
		return nil, stopped(ctx, fmt.Errorf("open the queue of jobs: %w", err))
	}
	d.fleet.Store(c.fleet)
	return c, nil
}

// close ends the connections and gives the turn to another daemon.
func (c *coordination) close() {
	if c == nil {
		return
	}
	c.standby()
	if c.fleet != nil {
		c.fleet.Close()
	}
	c.release()
}

// whenLost calls lose with the reason when another daemon may be the coordinator,
// until stop is called.
func (c *coordination) whenLost(lose func(error)) (stop func() bool) {
	if c == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(c.held, func() {
		if err := context.Cause(c.held); errors.Is(err, workers.ErrTurn) {
			lose(err)
		}
	})
}

// lost says that another daemon may be the coordinator; nil: it is this one still.
func (c *coordination) lost() error {
	if c == nil {
		return nil
	}
	return context.Cause(c.held)
}

// remote returns the part of a dataset's worker that has its granules filled: by other
// machines, or those of a backfill beside it.
func (d *Daemon) remote(set Dataset, with shared, beat func()) *work.Remote {
	c, r := with.turn, with.renewal
	if c == nil {
		here := jobs.NewHere(func() (string, error) { return d.store.Staging(set.Name) }, with.beside, r.HoldInTurn, beat)
		return &work.Remote{Fleet: here, Folder: here, Version: r.version, Most: jobs.InFlight, Drop: here.Drop}
	}
	return &work.Remote{Fleet: c.fleet, Folder: c.folder, Version: r.version, Most: c.cfg.InFlight}
}

// listen takes results until stop is called, where no stages do.
func (c *coordination) listen(ctx context.Context) (stop func()) {
	if c == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.fleet.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// stages returns the stages of the coordinator.
func (c *coordination) stages(datasets []Dataset) []supervise.Stage {
	if c == nil {
		return nil
	}
	var names []string
	for _, set := range datasets {
		names = append(names, set.Name)
	}
	return []supervise.Stage{
		supervise.Lasting("results of workers", nil, c.fleet.Run),
		supervise.Lasting("sweep of the shared folder", nil, func(ctx context.Context) error { return c.fleet.Sweep(ctx, names) }),
	}
}

// openAs opens the ledger as the coordinator. The one before may still be about to
// close it. After another daemon the state begins a new epoch: whatever the former one
// still has in hand, its deliveries are refused.
func (c *coordination) openAs(ctx context.Context, d *Daemon) (*ledger.Ledger, error) {
	if c == nil {
		return d.open(ctx)
	}
	defer c.standby()
	for told := false; ; told = true {
		book, err := d.open(ctx)
		if err == nil {
			if err = d.succeed(ctx, book); err != nil {
				return nil, errors.Join(err, book.Close())
			}
			return book, nil
		}
		if !errors.Is(err, ledger.ErrLocked) && !errors.Is(err, disk.ErrLocked) {
			return nil, err
		}
		if !told {
			d.log.Warn("the former coordinator has not let go of the state yet", "err", err)
		}
		if lost := context.Cause(c.held); lost != nil {
			return nil, lost
		}
		if !pause.For(ctx, 200*time.Millisecond) {
			return nil, stopped(ctx, ctx.Err())
		}
	}
}

// holder is the last coordinator of a state.
type holder struct {
	Daemon string    `json:"daemon"`
	Since  time.Time `json:"since"`
}

// succeed begins a new epoch where another daemon was the coordinator before.
func (d *Daemon) succeed(ctx context.Context, book *ledger.Ledger) error {
	me := holder{Daemon: d.parts.Name, Since: d.parts.Now().UTC()}
	if me.Daemon == "" {
		me.Daemon, _ = os.Hostname()
	}
	var before holder
	known, err := state.Load(d.cfg.state().Coordinator(), &before)
	if err != nil {
		known = false // a damaged file counts as that of another
	}
	if known && before.Daemon == me.Daemon {
		return nil
	}
	owner, err := books.Identify(ctx, book, me.Since)
	if err != nil {
		return err
	}
	if known {
		why := fmt.Sprintf("%s is the coordinator after %s", me.Daemon, before.Daemon)
		if err := book.SetIdentity(ctx, ledger.Identity{State: owner.State, Epoch: owner.Epoch + 1, Since: me.Since.Truncate(time.Second), Why: why}); err != nil {
			return err
		}
		d.log.Warn("THIS DAEMON TAKES OVER as the coordinator", "before", before.Daemon, "since", before.Since, "epoch", owner.Epoch+1)
	}
	return state.Save(d.cfg.state().Coordinator(), me)
}
