package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// identify returns who the state of a ledger is, as its places are marked.
// What is asked for the first time gets a name at random.
func identify(ctx context.Context, book *ledger.Ledger, now time.Time) (publish.Owner, error) {
	i, err := book.Identity(ctx, ledger.Identity{State: rand.Text(), Epoch: 1, Since: now.UTC().Truncate(time.Second)})
	return ownerOf(i), err
}

func ownerOf(i ledger.Identity) publish.Owner {
	return publish.Owner{State: i.State, Epoch: i.Epoch, Since: i.Since.UTC()}
}

// own makes sure, before anything is read or written there, that the folder of
// products is this state's and that no other daemon works on it. What it takes
// is let go of when book is closed. A folder that cannot be written to now is
// no reason not to start: whoever delivers to it tries again.
func (d *Daemon) own(ctx context.Context, book *ledger.Ledger) error {
	me, err := identify(ctx, book, d.parts.Now())
	if err != nil {
		return err
	}
	unlock, err := d.store.Lock()
	switch {
	case errors.Is(err, disk.ErrLocked):
		return err
	case err != nil:
		d.log.Warn("folder of products cannot be locked", "err", err)
	default:
		book.AtClose(unlock)
	}
	owner, err := d.store.Owner(ctx)
	if err == nil {
		err = owner.Admits(me)
	}
	switch {
	case errors.Is(err, publish.ErrForeign), errors.Is(err, publish.ErrMarker):
		return fmt.Errorf("products_dir %s: %w", d.cfg.ProductsDir, err)
	case err != nil:
		d.log.Warn("folder of products does not say whose it is", "err", err)
		return nil
	case owner.State == me.State && owner.Epoch == me.Epoch:
		return nil
	}
	if err := d.store.Claim(ctx, me); err != nil {
		d.log.Warn("folder of products cannot be marked as this state's", "err", err)
		return nil
	}
	d.log.Info("folder of products marked as this state's", "products_dir", d.cfg.ProductsDir, "state", me.State, "epoch", me.Epoch)
	return nil
}

// TakenOver is a place that this state has taken over.
type TakenOver struct {
	Sink  string    `json:"sink"`
	Was   string    `json:"was,omitempty"` // state that had it; empty: none
	Since time.Time `json:"since,omitzero"`
	State string    `json:"state"` // that has it now
	Epoch int       `json:"epoch"`
}

// TakeOver makes every place of the configuration this state's, in a new epoch,
// and records why in the ledger and its journal. Whoever had one stops
// delivering when it next looks. No daemon may be running on this state or on
// its folder of products, and every sink must answer: one that was left to
// another would be fought over.
func (d *Daemon) TakeOver(ctx context.Context, why string) (all []TakenOver, err error) {
	book, err := ledger.Open(ctx, d.cfg.state().Ledger())
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	unlock, err := d.store.Lock()
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	book.AtClose(unlock)
	me, err := identify(ctx, book, d.parts.Now())
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	o := &outbox{store: d.store, log: d.log}
	defer o.close()
	sinks, err := o.open(d.cfg.Publish)
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	for _, sink := range sinks {
		was, err := sink.Owner(ctx)
		if err != nil && !errors.Is(err, publish.ErrMarker) {
			return nil, fmt.Errorf("take over: %s does not say whose it is: %w; nothing was changed: wait for it, or take it out of the configuration", sink.Name(), err)
		}
		me.Epoch = max(me.Epoch, was.Epoch)
		all = append(all, TakenOver{Sink: sink.Name(), Was: was.State, Since: was.Since})
	}
	me.Epoch++
	me.Since = d.parts.Now().UTC().Truncate(time.Second)
	// The ledger comes first: after a crash in between the next start claims
	// what has an earlier epoch of its own, and the rest is taken over again.
	if err := book.SetIdentity(ctx, ledger.Identity{State: me.State, Epoch: me.Epoch, Since: me.Since, Why: why}); err != nil {
		return nil, err
	}
	for i, sink := range sinks {
		if err := sink.Claim(ctx, me); err != nil {
			return nil, fmt.Errorf("take over %s: %w; run the command again", sink.Name(), err)
		}
		all[i].State, all[i].Epoch = me.State, me.Epoch
	}
	return all, nil
}
