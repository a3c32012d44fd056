package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lacuna/internal/faults"
)

// Kind is the method of a sink that a delivery calls.
type Kind string

// The kinds of deliveries.
const (
	Announce Kind = "publish" // Sink.Publish
	Withdraw Kind = "retract" // Sink.Retract
	Repeat   Kind = "replay"  // Replayer.Replay where the sink has it, else Sink.Publish
)

// Replayer is a sink that ignores repeated products and can be asked to send
// one again, for receivers that have lost it.
type Replayer interface {
	Replay(ctx context.Context, p Product) error
}

// Delivery is one product, or its retraction, on its way to one sink.
type Delivery struct {
	ID       int64
	Kind     Kind
	Attempts int // failed attempts so far
	Product  Product
}

// Queue keeps the deliveries to one sink through crashes.
type Queue interface {
	// Due returns the first waiting delivery of every dataset.
	Due(ctx context.Context) ([]Delivery, error)
	// Delivered ends a delivery: it is not due again.
	Delivered(ctx context.Context, d Delivery) error
	// Failed records a failed attempt. With aside the delivery leaves the queue
	// until an operator puts it back.
	Failed(ctx context.Context, d Delivery, problem string, aside bool) error
}

// Config sets the pauses and time limits of a Dispatcher.
type Config struct {
	RetryMin time.Duration `yaml:"retry_min"` // wait after a first failure; doubled after each
	RetryMax time.Duration `yaml:"retry_max"` // longest wait
	Timeout  time.Duration `yaml:"timeout"`   // time limit of one delivery
	Poll     time.Duration `yaml:"poll"`      // how often the queue is read for deliveries that commands put there
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		RetryMin: time.Second,
		RetryMax: 2 * time.Minute,  // a broker that is back after days is found within this
		Timeout:  10 * time.Minute, // a gigabyte over a slow line
		Poll:     5 * time.Second,
	}
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.RetryMin > 0, "retry_min is %v, must be positive", c.RetryMin)
	errs.Check(c.RetryMax >= c.RetryMin, "retry_max is %v, must be at least retry_min (%v)", c.RetryMax, c.RetryMin)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	errs.Check(c.Poll > 0, "poll is %v, must be positive", c.Poll)
	return errs.Err()
}

// Dispatcher delivers the products of a queue to one sink: in order per
// dataset, again and again while the sink is away. It keeps nothing but one
// waiting time per dataset in memory, so that a long absence costs no more than
// a short one, and knows of no other sink, so that none delays another.
type Dispatcher struct {
	cfg      Config
	sink     Sink
	queue    Queue
	log      *slog.Logger
	nudge    chan struct{}
	backoffs map[string]backoff // by dataset; used by Run or Flush only
}

// backoff is the pause of a dataset after failures at the head of its queue.
type backoff struct {
	failures  int
	notBefore time.Time
}

// NewDispatcher returns a Dispatcher from queue to sink.
func NewDispatcher(cfg Config, sink Sink, queue Queue, log *slog.Logger) (*Dispatcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("publish config: %w", err)
	}
	return &Dispatcher{
		cfg: cfg, sink: sink, queue: queue, nudge: make(chan struct{}, 1), backoffs: map[string]backoff{},
		log: log.With("component", "publish", "sink", sink.Name()),
	}, nil
}

// Nudge wakes the dispatcher after something was queued. It never blocks.
func (d *Dispatcher) Nudge() {
	select {
	case d.nudge <- struct{}{}:
	default: // a nudge is pending already
	}
}

// Run delivers until ctx is cancelled, then returns nil. A sink or a queue
// that fails is tried again; nothing of it needs an operator.
func (d *Dispatcher) Run(ctx context.Context) error {
	for {
		wait, err := d.round(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a stop is not a failure
		}
		if err != nil {
			d.log.Warn("queue cannot be read", "err", err, "retry_in", d.cfg.Poll)
		}
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-d.nudge:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Flush makes the due deliveries of each dataset until its queue is empty or
// one fails, and returns the first failure.
func (d *Dispatcher) Flush(ctx context.Context) error {
	d.backoffs = map[string]backoff{} // a flush does not wait for pauses
	var first error
	for {
		due, err := d.queue.Due(ctx)
		if err != nil {
			return err
		}
		progress := false
		for _, one := range due {
			if d.backoffs[one.Product.Dataset].failures > 0 {
				continue
			}
			err := d.deliver(ctx, one)
			progress = progress || err == nil || errors.Is(err, ErrPermanent)
			if err != nil && first == nil {
				first = fmt.Errorf("deliver %s to %s: %w", one.Product.ID(), d.sink.Name(), err)
			}
		}
		if !progress {
			return errors.Join(first, ctx.Err())
		}
	}
}

// round tries the head of every queue that is not pausing, and returns the time
// until the next attempt: 0 where something was delivered, for then there may
// be more.
func (d *Dispatcher) round(ctx context.Context) (wait time.Duration, err error) {
	due, err := d.queue.Due(ctx)
	if err != nil {
		return d.cfg.Poll, err
	}
	d.forget(due)
	wait = d.cfg.Poll
	for _, one := range due {
		dataset := one.Product.Dataset
		if left := time.Until(d.backoffs[dataset].notBefore); left > 0 {
			wait = min(wait, left)
			continue
		}
		err := d.deliver(ctx, one)
		if ctx.Err() != nil {
			return 0, nil
		}
		if err == nil || errors.Is(err, ErrPermanent) {
			wait = 0
			continue
		}
		pause := time.Until(d.backoffs[dataset].notBefore)
		wait = min(wait, pause)
		d.log.Warn("delivery failed", "product", one.Product.ID(), "err", err, "attempts", one.Attempts+1, "retry_in", pause)
	}
	return wait, nil
}

// forget drops the pauses of datasets with nothing due, so that memory is
// bounded by the datasets that have a queue.
func (d *Dispatcher) forget(due []Delivery) {
	kept := make(map[string]backoff, len(due))
	for _, one := range due {
		if l, ok := d.backoffs[one.Product.Dataset]; ok {
			kept[one.Product.Dataset] = l
		}
	}
	d.backoffs = kept
}

// deliver makes one delivery and records its result. The sink comes first: a
// crash in between repeats a delivery, which changes nothing; the other order
// would lose it.
func (d *Dispatcher) deliver(ctx context.Context, one Delivery) error {
	err := d.attempt(ctx, one)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrPermanent):
		d.log.Warn("delivery set aside", "product", one.Product.ID(), "err", err)
		if recordErr := d.queue.Failed(ctx, one, err.Error(), true); recordErr != nil {
			err = recordErr // not set aside, so it will be tried again
		}
	case err != nil:
		err = errors.Join(err, d.queue.Failed(ctx, one, err.Error(), false))
	default:
		err = d.queue.Delivered(ctx, one)
	}
	if err == nil || errors.Is(err, ErrPermanent) {
		delete(d.backoffs, one.Product.Dataset)
		return err
	}
	failures := d.backoffs[one.Product.Dataset].failures + 1
	d.backoffs[one.Product.Dataset] = backoff{failures: failures, notBefore: time.Now().Add(d.pause(failures))}
	return err
}

func (d *Dispatcher) attempt(ctx context.Context, one Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if err := one.Product.Check(); err != nil {
		return err
	}
	replayer, replays := d.sink.(Replayer)
	switch {
	case one.Kind == Withdraw:
		return d.sink.Retract(ctx, one.Product)
	case one.Kind == Repeat && replays:
		return replayer.Replay(ctx, one.Product)
	}
	return d.sink.Publish(ctx, one.Product)
}

// pause returns the pause after a number of failures in a row.
func (d *Dispatcher) pause(failures int) time.Duration {
	wait := d.cfg.RetryMin
	for range failures - 1 {
		if wait >= d.cfg.RetryMax/2 {
			return d.cfg.RetryMax
		}
		wait *= 2
	}
	return min(wait, d.cfg.RetryMax)
}
