package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/daemon/books"
	"lacuna/ledger"
	"lacuna/publish"
)

// TakenOver is a place that this state has taken over.
type TakenOver struct {
	Sink  string    `json:"sink"`
	Was   string    `json:"was,omitempty"` // previous owner; empty: none
	Since time.Time `json:"since,omitzero"`
	State string    `json:"state"` // new owner
	Epoch int       `json:"epoch"`
}

// TakeOver makes this state the owner of every sink of the configuration, in a
// new epoch, and records the reason in the ledger and its journal. A previous
// owner stops before its next delivery. No daemon may be running on this state or
// on its folder of products, and every sink must answer: a sink that was left out
// would be delivered to by both states.
func TakeOver(ctx context.Context, cfg Config, keeper books.Keeper, why string) (all []TakenOver, err error) {
	book, err := ledger.Open(ctx, keeper.State.Ledger())
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	unlock, err := keeper.Store.Lock()
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	book.AtClose(unlock)
	me, err := books.Identify(ctx, book, keeper.Now())
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	o := &Outbox{store: keeper.Store, log: keeper.Log}
	defer o.Close()
	sinks, err := o.open(cfg)
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
	me.Since = keeper.Now().UTC().Truncate(time.Second)
	// The ledger comes first: after a crash in between the next start claims the
	// places that have an earlier epoch of this state, and the operator takes the
	// others over again.
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
