package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"lacuna/publish"
)

// Placed is a sink that knows the owner of its place, as all sinks here do.
type Placed interface {
	publish.Sink
	publish.Place
}

// Guard admits deliveries to a sink only while its place belongs to this state,
// and only after the sink was compared with the ledger. It reads the owner before
// each delivery, so that a state whose places were taken over stops.
type Guard struct {
	Placed
	me      publish.Owner
	log     *slog.Logger
	compare func(ctx context.Context) error
	marked  func() // remembers that the place has the marker of this state
	// away returns publish.ErrAway where the folder is not mounted that products are
	// delivered from.
	away func(ctx context.Context) error
	// displace resolves a revision that has other bytes in the sink.
	displace func(ctx context.Context, p publish.Product, c *publish.Conflict) error

	// turn is a lock that waits no longer than its context: the first comparison
	// of a large bucket takes minutes. It guards compared.
	turn     chan struct{}
	compared bool
	refused  atomic.Pointer[string] // reason why nothing is delivered; nil: deliveries are admitted
}

// Publish implements publish.Sink.
func (g *Guard) Publish(ctx context.Context, p publish.Product) error {
	if err := g.admit(ctx); err != nil {
		return err
	}
	return g.resolve(ctx, p, g.Placed.Publish(ctx, p))
}

// Replay implements publish.Replayer.
func (g *Guard) Replay(ctx context.Context, p publish.Product) error {
	replayer, ok := g.Placed.(publish.Replayer)
	if !ok {
		return g.Publish(ctx, p)
	}
	if err := g.admit(ctx); err != nil {
		return err
	}
	return g.resolve(ctx, p, replayer.Replay(ctx, p))
}

// Retract implements publish.Sink.
func (g *Guard) Retract(ctx context.Context, p publish.Product) error {
	if err := g.admit(ctx); err != nil {
		return err
	}
	return g.Placed.Retract(ctx, p)
}

// resolve passes a conflict to displace. The conflict stays an error, because the
// delivery was not made. Nothing is set aside for want of its file while the folder of
// products is away.
func (g *Guard) resolve(ctx context.Context, p publish.Product, err error) error {
	if errors.Is(err, publish.ErrPermanent) { // a file that is gone comes back with its disk
		if away := g.away(ctx); away != nil {
			return away
		}
	}
	var c *publish.Conflict
	if !errors.As(err, &c) {
		return err
	}
	if failed := g.displace(ctx, p, c); failed != nil {
		return failed // the dispatcher tries again
	}
	return err
}

// admit returns nil where the place belongs to this state and was compared.
func (g *Guard) admit(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%s is being compared with the ledger: %w", g.Name(), ctx.Err())
	}
	err := g.claim(ctx)
	switch {
	case errors.Is(err, publish.ErrForeign), errors.Is(err, publish.ErrMarker):
		if g.Problem() == "" {
			g.log.Warn("NOTHING IS DELIVERED: the place is not this state's", "sink", g.Name(), "err", err)
		}
		why := err.Error()
		g.refused.Store(&why)
		return fmt.Errorf("%s: %w", g.Name(), err)
	case err != nil:
		return fmt.Errorf("find the owner of %s: %w", g.Name(), err)
	}
	g.marked()
	if g.refused.Swap(nil) != nil {
		g.log.Info("the place is this state's again", "sink", g.Name())
	}
	if g.compared {
		return nil
	}
	if err := g.compare(ctx); err != nil {
		return fmt.Errorf("compare %s with the ledger: %w", g.Name(), err)
	}
	g.compared = true
	return nil
}

// claim reads the owner of the place, and marks a place of nobody, or of an
// earlier epoch of this state, as its own.
func (g *Guard) claim(ctx context.Context) error {
	owner, err := g.Owner(ctx)
	if err == nil {
		err = owner.Admits(g.me)
	}
	if err != nil || owner.State == g.me.State && owner.Epoch == g.me.Epoch {
		return err
	}
	if err := g.Claim(ctx, g.me); err != nil {
		return err
	}
	g.log.Info("place marked as this state's", "sink", g.Name(), "state", g.me.State, "epoch", g.me.Epoch)
	if owner, err = g.Owner(ctx); err != nil { // another state may have claimed it at the same time
		return err
	}
	return owner.Admits(g.me)
}

// Problem returns the reason why nothing is delivered; empty: there is none.
func (g *Guard) Problem() string {
	if why := g.refused.Load(); why != nil {
		return *why
	}
	return ""
}
