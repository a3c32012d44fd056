package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"lacuna/daemon/supervise"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/embedded"
	"lacuna/publish/s3"
)

// outbox takes stored products to every sink. The ledger holds what is due; a
// dispatcher a sink delivers it, none waiting for another.
type outbox struct {
	book        *ledger.Ledger
	store       disk.Store
	keep        disk.Keep
	me          publish.Owner // the state
	guards      []*guard      // of the sinks, in the order of the dispatchers
	dispatchers []*publish.Dispatcher
	heartbeats  []*supervise.Heartbeat // of the dispatchers, in their order
	kafka       *kafka.Sink            // nil: none
	broker      *embedded.Broker       // nil: none of our own
	now         func() time.Time
	log         *slog.Logger
}

// openOutbox makes the sinks of the configuration. Close ends what it starts.
func (d *Daemon) openOutbox(ctx context.Context, book *ledger.Ledger) (*outbox, error) {
	if err := d.cfg.Publish.checkSecretFiles(); err != nil {
		return nil, err
	}
	o := &outbox{book: book, store: d.store, keep: d.cfg.Publish.Disk.keep(), now: d.parts.Now, log: d.log}
	if err := errors.Join(o.store.Sweep(), o.warnForgotten(ctx, d.cfg.SinkNames())); err != nil {
		return nil, err
	}
	var err error
	if o.me, err = identify(ctx, book, d.parts.Now()); err != nil {
		return nil, err
	}
	sinks, err := o.open(d.cfg.Publish)
	if err != nil {
		o.close()
		return nil, err
	}
	for _, sink := range sinks {
		o.guards = append(o.guards, o.guard(sink))
	}
	d.guards = o.guards
	if err := d.lookAtProducts(ctx, o); err != nil {
		o.close()
		return nil, err
	}
	for _, sink := range o.guards {
		limit := d.cfg.Publish.Timeout + d.cfg.Publish.RetryMax + d.cfg.Publish.Poll + dispatchSilence
		queue := ledgerQueue{book: book, sink: sink.Name(), now: d.parts.Now, heartbeat: d.heartbeats.Add("sink "+sink.Name(), limit)}
		dispatcher, err := publish.NewDispatcher(d.cfg.Publish.Config, sink, queue, d.log)
		if err != nil {
			o.close()
			return nil, err
		}
		o.dispatchers, o.heartbeats = append(o.dispatchers, dispatcher), append(o.heartbeats, queue.heartbeat)
	}
	return o, nil
}

// open returns the sinks of the configuration, the same and by the same names
// as Config.SinkNames.
func (o *outbox) open(cfg Publish) ([]placed, error) {
	sinks := []placed{disk.NewSink(o.store)}
	if cfg.S3 != nil {
		bucket, err := s3.New(cfg.S3.Config)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, bucket)
	}
	if cfg.Kafka != nil {
		if err := o.openKafka(*cfg.Kafka); err != nil {
			return nil, err
		}
		sinks = append(sinks, o.kafka)
	}
	return sinks, nil
}

// guard returns the guard of a sink.
func (o *outbox) guard(sink placed) *guard {
	return &guard{
		placed: sink, me: o.me, log: o.log, turn: make(chan struct{}, 1),
		compare: func(ctx context.Context) error { return o.compare(ctx, sink) },
		displace: func(ctx context.Context, p publish.Product, c *publish.Conflict) error {
			return o.displace(ctx, sink.Name(), p, c)
		},
	}
}

// lookAtProducts compares the folder of products, which is never away, before
// anything is made. A folder that cannot be read is looked at again before the
// first delivery.
func (d *Daemon) lookAtProducts(ctx context.Context, o *outbox) error {
	folder := o.guards[0]
	err := d.adoptFiles(ctx, o, folder.placed)
	if err == nil {
		err = folder.admit(ctx)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, publish.ErrForeign) || errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	d.log.Warn("folder of products was not compared with the ledger", "err", err)
	return nil
}

func (o *outbox) openKafka(k Kafka) (err error) {
	if k.Embedded {
		cfg := embedded.DefaultConfig()
		cfg.Port = k.EmbeddedPort
		if o.broker, err = embedded.New(cfg); err != nil {
			return err
		}
		k.Brokers = []string{o.broker.Addr()}
		o.log.Info("embedded broker started: in memory, for trying out", "kafka", o.broker.Addr())
	}
	o.kafka, err = kafka.New(k.Config, o.log)
	return err
}

func (o *outbox) close() {
	if o.kafka != nil {
		o.kafka.Close()
	}
	if o.broker != nil {
		o.broker.Close()
	}
}

// SinkNames returns the names under which the configured sinks stand in the
// ledger, without opening them.
func (c Config) SinkNames() []string {
	names := []string{"disk"}
	if c.Publish.S3 != nil {
		names = append(names, "s3:"+path.Join(c.Publish.S3.Bucket, c.Publish.S3.Prefix))
	}
	if c.Publish.Kafka != nil {
		names = append(names, "kafka:"+c.Publish.Kafka.Prefix)
	}
	return names
}

// stages returns what runs for as long as the daemon does.
func (o *outbox) stages() []supervise.Stage {
	all := []supervise.Stage{supervise.Lasting("removal of old products", nil, o.tidy)}
	for i, d := range o.dispatchers {
		all = append(all, supervise.Lasting(o.heartbeats[i].Name(), o.heartbeats[i], d.Run))
	}
	return append(all, supervise.Lasting("look at the sinks", nil, func(ctx context.Context) error {
		o.look(ctx)
		return nil
	}))
}

// background delivers while something else is done, until the function it
// returns is called.
func (o *outbox) background(ctx context.Context) (stop func()) {
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

// warnForgotten says what waits for sinks that nobody serves.
func (o *outbox) warnForgotten(ctx context.Context, names []string) error {
	backlogs, err := o.book.Backlogs(ctx)
	for _, b := range backlogs {
		if b.Waiting > 0 && !slices.Contains(names, b.Sink) {
			o.log.Warn("deliveries wait for a sink that is not configured any more; lacuna publish forget drops them",
				"sink", b.Sink, "waiting", b.Waiting)
		}
	}
	return err
}

// nudge says that something was queued.
func (o *outbox) nudge() {
	for _, d := range o.dispatchers {
		d.Nudge()
	}
}

// flush delivers what is due to all sinks at once, each until it is done or
// fails. No dispatcher may be running.
func (o *outbox) flush(ctx context.Context) error {
	errs := make([]error, len(o.dispatchers))
	var wg sync.WaitGroup
	for i, d := range o.dispatchers {
		wg.Go(func() { errs[i] = d.Flush(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lastFlushLimit is how long a stop waits for sinks: enough for files and a
// broker that is there. What is left is taken up at the next start.
const lastFlushLimit = 5 * time.Second

// lastFlush delivers what the last granules have left when everything else has
// stopped. ctx is the one that was cancelled.
func (o *outbox) lastFlush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushLimit)
	defer cancel()
	if err := o.flush(ctx); err != nil {
		o.log.Info("deliveries wait for the next start", "err", err)
	}
}

// tidyInterval is how often products whose time is up are removed; rules
// count in days.
const tidyInterval = time.Hour

// tidy removes old products until ctx is cancelled.
func (o *outbox) tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyInterval)
	defer tick.Stop()
	for {
		if err := o.tidyOnce(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("old products not removed", "err", err, "retry_in", tidyInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tidyOnce removes what is due, except what a sink is still to get.
func (o *outbox) tidyOnce(ctx context.Context) error {
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

// ledgerQueue lets a dispatcher see what the ledger holds for its sink. The
// dispatcher looks at it before and after whatever it does, so its calls are
// the dispatcher's heartbeat.
type ledgerQueue struct {
	book      *ledger.Ledger
	sink      string
	now       func() time.Time
	heartbeat *supervise.Heartbeat
}

// Due implements publish.Queue.
func (q ledgerQueue) Due(ctx context.Context) ([]publish.Delivery, error) {
	q.heartbeat.Beat()
	rows, err := q.book.Due(ctx, q.sink)
	if err != nil {
		return nil, err
	}
	return convert.Each(rows, delivery), nil
}

// delivery is a row of the ledger in the words of package publish. A body that
// cannot be read gives a product without a name, which is set aside.
func delivery(row ledger.Delivery) publish.Delivery {
	d := publish.Delivery{ID: row.ID, Kind: publish.Kind(row.Kind), Attempts: row.Attempts}
	_ = json.Unmarshal([]byte(row.Publication.Body), &d.Product)
	d.Product.Dataset, d.Product.Granule, d.Product.Revision = row.Publication.Dataset, row.Publication.Granule, row.Publication.Revision
	d.Product.Retracted, d.Product.Why = row.Kind == ledger.Retract, row.Publication.Why
	d.Product.Displaced = row.Kind == ledger.Retract && row.Publication.Displaced
	return d
}

// Delivered implements publish.Queue.
func (q ledgerQueue) Delivered(ctx context.Context, d publish.Delivery) error {
	q.heartbeat.Beat()
	return q.book.EndDelivery(ctx, d.ID, q.now())
}

// Failed implements publish.Queue.
func (q ledgerQueue) Failed(ctx context.Context, d publish.Delivery, problem string, aside bool) error {
	q.heartbeat.Beat()
	return q.book.FailDelivery(ctx, d.ID, problem, aside, q.now())
}

// Queue queues the products of a dataset to every sink.
type Queue struct {
	Book  *ledger.Ledger
	Store disk.Store
	Sinks []string
	Skill bool // every new content is due to be scored
	Now   func() time.Time
	Wake  func() // tells the dispatchers that something was queued; nil: nobody waits
}

// Nudge says that something was queued.
func (q Queue) Nudge() {
	if q.Wake != nil {
		q.Wake()
	}
}

// Add records that a granule's product is stored and queues it to every sink,
// in one transaction.
func (q Queue) Add(ctx context.Context, g ledger.Granule, p publish.Product, product ledger.Product) error {
	before, known, err := q.Book.Current(ctx, g.Dataset, g.Name)
	if err != nil {
		return err
	}
	// Before the promise: whatever breaks off in between, no other bytes come
	// under this number.
	if err := q.Store.Seal(p.Path); err != nil {
		return fmt.Errorf("seal product: %w", err)
	}
	var moved *ledger.Publication
	switch {
	case known && publish.Day(before.Time) != publish.Day(p.Time):
		moved = &before
	case known:
		p.Supersedes = before.Revision
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode product: %w", err)
	}
	return q.Book.StoreAndQueue(ctx, g.ID, ledger.Outgoing{
		Product:     product,
		Publication: ledger.Publication{Revision: p.Revision, Time: p.Time, File: p.Path, Size: p.Size, Body: string(body)},
		Sinks:       q.Sinks,
		Moved:       moved,
		Skill:       q.Skill,
	}, q.Now())
}
