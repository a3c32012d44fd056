// Package pause waits without outliving its caller.
package pause

import (
	"context"
	"time"
)

// For waits for d. It returns false, at once, where ctx ends before.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
