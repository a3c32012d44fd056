package cli

import (
	"context"
	"errors"
	"time"
)

// errBudget ends a run whose time is spent.
var errBudget = errors.New("the time budget is spent")

// WithBudget returns a context that ends after budget; 0: with ctx.
func WithBudget(ctx context.Context, budget time.Duration) (context.Context, context.CancelFunc) {
	if budget <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, budget, errBudget)
}

// StopReason says why a run was cut short.
func StopReason(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errBudget) {
		return errBudget
	}
	return errors.New("stopped")
}
