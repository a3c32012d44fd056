package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// oneReopening is a ledger that has one reopened product.
type oneReopening struct {
	Books
	due time.Time // zero: it has none
	err error
}

func (r oneReopening) NextReopening(context.Context, string, time.Time) (time.Time, bool, error) {
	return r.due, !r.due.IsZero(), r.err
}

func TestReopenedProductIsLookedAtWhenItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, tt := range []struct {
			name string
			book oneReopening
			want time.Duration // 0: at the next tick only
		}{
			{"before the next tick", oneReopening{due: now.Add(20 * time.Second)}, 20 * time.Second},
			{"after the next tick", oneReopening{due: now.Add(3 * time.Minute)}, 0},
			{"none is open", oneReopening{}, 0},
			{"the ledger cannot be read", oneReopening{due: now.Add(time.Second), err: errors.New("disk I/O error")}, 0},
		} {
			w := &Worker{}
			w.Books, w.Now, w.set.Retry = tt.book, func() time.Time { return now }, 2*time.Minute
			began := time.Now()
			settled := w.settled(t.Context())
			if (settled != nil) != (tt.want > 0) {
				t.Errorf("%s: told of it is %v", tt.name, settled != nil)
			}
			if settled == nil {
				continue
			}
			<-settled
			if got := time.Since(began); got != tt.want {
				t.Errorf("%s: after %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}
