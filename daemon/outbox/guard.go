package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"lacuna/publish"
)

// Placed is a sink that says whose its place is, as all of ours do.
type Placed interface {
	publish.Sink
	publish.Place
}

// Guard lets deliveries through to a sink whose place is this state's, looked
// at each time, so that a state that was fenced off stops; and not before the
// sink was compared with the ledger.
type Guard struct {
	Placed
	me      publish.Owner
	log     *slog.Logger
	compare func(ctx context.Context) error
	// displace is told of a revision that has other bytes in the sink.
	displace func(ctx context.Context, p publish.Product, c *publish.Conflict) error

	// turn has room for the one who looks at the sink, which takes minutes where
	// a large bucket is compared for the first time. It guards compared.
	turn     chan struct{}
	compared bool
	refused  atomic.Pointer[string] // why nothing is delivered; nil: it is
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

// resolve hands a conflict on. It stays an error: what was to be delivered was
// not.
func (g *Guard) resolve(ctx context.Context, p publish.Product, err error) error {
	var c *publish.Conflict
	if !errors.As(err, &c) {
		return err
	}
	if failed := g.displace(ctx, p, c); failed != nil {
		return failed // to be tried again
	}
	return err
}

// admit returns nil where the place is this state's and was compared.
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
		return fmt.Errorf("look whose %s is: %w", g.Name(), err)
	}
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

// claim looks whose the place is and makes one of nobody, or of an earlier
// epoch of this state, its own.
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
	if owner, err = g.Owner(ctx); err != nil { // another may have had the same idea
		return err
	}
	return owner.Admits(g.me)
}

// Problem returns why nothing is delivered; empty: it is.
func (g *Guard) Problem() string {
	if why := g.refused.Load(); why != nil {
		return *why
	}
	return ""
}
