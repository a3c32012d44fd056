package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/supervise"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// Outbox delivers stored products to every sink. The ledger holds the queues; each
// sink has a dispatcher, and none waits for another.
type Outbox struct {
	book        *ledger.Ledger
	store       disk.Store
	keep        disk.Keep
	keeper      books.Keeper
	me          publish.Owner // identity of the state
	guards      []*Guard      // one a sink, in the order of the dispatchers
	dispatchers []*publish.Dispatcher
	heartbeats  []*supervise.Heartbeat // one a dispatcher, in their order
	closers     []func()               // close the sinks
	now         func() time.Time
	log         *slog.Logger
}

// Parts are the parts that an outbox is made of.
type Parts struct {
	Book       *ledger.Ledger
	Keeper     books.Keeper // restores products that the ledger does not know
	Heartbeats *supervise.Heartbeats
	Now        func() time.Time
	Log        *slog.Logger
}

// Open makes the sinks of the configuration, and compares the folder of products
// with the ledger. The caller closes the outbox.
func Open(ctx context.Context, cfg Config, parts Parts) (*Outbox, error) {
	if err := cfg.CheckSecretFiles(); err != nil {
		return nil, err
	}
	o := &Outbox{
		book: parts.Book, keeper: parts.Keeper, store: parts.Keeper.Store, keep: cfg.Disk.Keep(), now: parts.Now, log: parts.Log,
	}
	if err := errors.Join(o.store.Sweep(), o.warnForgotten(ctx, cfg.SinkNames())); err != nil {
		return nil, err
	}
	var err error
	if o.me, err = books.Identify(ctx, o.book, o.now()); err != nil {
		return nil, err
	}
	sinks, err := o.open(cfg)
	if err != nil {
		o.Close()
		return nil, err
	}
	for _, sink := range sinks {
		o.guards = append(o.guards, o.guard(sink))
	}
	if err := o.lookAtProducts(ctx); err != nil {
		o.Close()
		return nil, err
	}
	if err := o.dispatch(cfg, parts.Heartbeats); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// dispatchSilence is the silence allowed to a dispatcher beyond the limits of a
// delivery and the longest pause after failures: the ledger is a database on a
// disk that may be busy.
const dispatchSilence = 2 * time.Minute

// dispatch makes a dispatcher for each sink.
func (o *Outbox) dispatch(cfg Config, all *supervise.Heartbeats) error {
	for _, sink := range o.guards {
		limit := cfg.Timeout + cfg.RetryMax + cfg.Poll + dispatchSilence
		queue := ledgerQueue{book: o.book, sink: sink.Name(), now: o.now, hashed: o.store.Hashed, heartbeat: all.Add("sink "+sink.Name(), limit)}
		dispatcher, err := publish.NewDispatcher(cfg.Config, sink, queue, o.log)
		if err != nil {
			return err
		}
		o.dispatchers, o.heartbeats = append(o.dispatchers, dispatcher), append(o.heartbeats, queue.heartbeat)
	}
	return nil
}

// Refused returns the reason why nothing is delivered to a sink; empty: there is
// none.
func (o *Outbox) Refused(sink string) string {
	if o == nil {
		return ""
	}
	for _, g := range o.guards {
		if g.Name() == sink {
			return g.Problem()
		}
	}
	return ""
}

// open returns the sinks of the configuration, in their order.
func (o *Outbox) open(cfg Config) ([]Placed, error) {
	var sinks []Placed
	for _, k := range cfg.sinks() {
		sink, end, err := k.open(cfg, o.store, o.log)
		if err != nil {
			return nil, err
		}
		o.closers = append(o.closers, end)
		if sink.Name() != k.name(cfg) {
			return nil, fmt.Errorf("the sink of publish.%s calls itself %s, and the ledger %s: this is a bug", k.key, sink.Name(), k.name(cfg))
		}
		sinks = append(sinks, sink)
	}
	return sinks, nil
}

// guard returns the guard of a sink.
func (o *Outbox) guard(sink Placed) *Guard {
	marked := func() {}
	if folder, ok := sink.(publish.Foldered); ok {
		if err := books.RecallMark(o.keeper.State, folder); err != nil {
			o.log.Warn("it is not known which folders were marked", "err", err)
		}
		marked = sync.OnceFunc(func() {
			if err := books.KeepMark(o.keeper.State, folder); err != nil {
				o.log.Warn("it is not remembered that a folder was marked", "sink", sink.Name(), "err", err)
			}
		})
	}
	return &Guard{
		Placed: sink, me: o.me, log: o.log, turn: make(chan struct{}, 1), marked: marked,
		compare: func(ctx context.Context) error { return o.compare(ctx, sink) },
		away: func(ctx context.Context) error {
			if _, err := o.store.Owner(ctx); errors.Is(err, publish.ErrAway) {
				return err
			}
			return nil
		},
		displace: func(ctx context.Context, p publish.Product, c *publish.Conflict) error {
			return o.displace(ctx, sink.Name(), p, c)
		},
	}
}

// lookAtProducts compares the folder of products, which is on this machine,
// before any product is made. A folder that cannot be read now is compared
// before the first delivery.
func (o *Outbox) lookAtProducts(ctx context.Context) error {
	folder := o.guards[0]
	err := o.adoptFiles(ctx, folder.Placed)
	if err == nil {
		err = folder.admit(ctx)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, publish.ErrForeign) || errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	o.log.Warn("folder of products was not compared with the ledger", "err", err)
	return nil
}

// Close closes the sinks, the last one first.
func (o *Outbox) Close() {
	for _, end := range slices.Backward(o.closers) {
		end()
	}
}

// Stages returns the dispatchers, the first look at the sinks and the removal of
// old products, to be run by a supervisor.
func (o *Outbox) Stages() []supervise.Stage {
	all := []supervise.Stage{supervise.Lasting("removal of old products", nil, o.tidy)}
	for i, d := range o.dispatchers {
		all = append(all, supervise.Lasting(o.heartbeats[i].Name(), o.heartbeats[i], d.Run))
	}
	return append(all, supervise.Lasting("look at the sinks", nil, func(ctx context.Context) error {
		o.look(ctx)
		return nil
	}))
}

// Background delivers beside other work until stop is called.
func (o *Outbox) Background(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, d := range o.dispatchers {
		wg.Go(func() { _ = d.Run(ctx) }) // nil after the cancellation that ends it
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// warnForgotten warns of deliveries to sinks that are not configured any more.
func (o *Outbox) warnForgotten(ctx context.Context, names []string) error {
	backlogs, err := o.book.Backlogs(ctx)
	for _, b := range backlogs {
		if b.Waiting > 0 && !slices.Contains(names, b.Sink) {
			o.log.Warn("deliveries wait for a sink that is not configured any more; lacuna publish forget drops them",
				"sink", b.Sink, "waiting", b.Waiting)
		}
	}
	return err
}

// Nudge tells the dispatchers that a delivery was queued.
func (o *Outbox) Nudge() {
	for _, d := range o.dispatchers {
		d.Nudge()
	}
}

// Flush delivers the queues of all sinks at once, each until it is empty or a
// delivery fails. No dispatcher may be running.
func (o *Outbox) Flush(ctx context.Context) error {
	errs := make([]error, len(o.dispatchers))
	var wg sync.WaitGroup
	for i, d := range o.dispatchers {
		wg.Go(func() { errs[i] = d.Flush(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lastFlushLimit is how long a stop waits for sinks: enough for files and a
// broker that is there. Other deliveries wait for the next start.
const lastFlushLimit = 5 * time.Second

// LastFlush delivers the products of the last granules when all stages have
// stopped. ctx is the one that was cancelled.
func (o *Outbox) LastFlush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushLimit)
	defer cancel()
	if err := o.Flush(ctx); err != nil {
		o.log.Info("deliveries wait for the next start", "err", err)
	}
}

// tidyInterval is how often old products are removed: the rules of retention
// count in days.
const tidyInterval = time.Hour

// tidy removes old products until ctx is cancelled.
func (o *Outbox) tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyInterval)
	defer tick.Stop()
	for {
		if err := o.Tidy(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("old products not removed", "err", err, "retry_in", tidyInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Tidy removes the products that are past their retention, except those that a
// delivery waits for.
func (o *Outbox) Tidy(ctx context.Context) error {
	due, err := o.store.Plan(o.now(), o.keep)
	if err != nil {
		return err
	}
	gone, err := o.store.Remove(ctx, due, func(ctx context.Context, r disk.Removal) (bool, error) {
		return o.book.Awaited(ctx, r.Dataset, r.Granule, r.Revision)
	})
	for _, r := range gone {
		o.log.Info("old product removed", "dataset", r.Dataset, "granule", r.Granule, "revision", r.Revision, "class", string(r.Class))
	}
	return err
}
