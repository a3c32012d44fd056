package pages

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/ledger"
	"lacuna/ops"
)

// The ledger is asked once for any number of pages, and again after every change, of
// which the next page tells.
func TestRowsAreReadAgainWhenTheLedgerHasChanged(t *testing.T) {
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	look, err := book.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	var asked atomic.Int64
	r := &records{read: func(ctx context.Context, book *ledger.Ledger, set operate.Dataset) (ops.Dataset, error) {
		asked.Add(1)
		return Pages{}.recorded(ctx, book, set)
	}}
	sets := []operate.Dataset{{}, {}, {}}
	for i, name := range []string{"a", "b", "c"} {
		sets[i].Name = name
	}
	for poll := range 3 {
		at := time.Date(2024, 5, 1+poll, 0, 0, 0, 0, time.UTC)
		if err := book.Polled(t.Context(), "b", at); err != nil {
			t.Fatal(err)
		}
		var pages sync.WaitGroup
		for range 8 {
			pages.Go(func() {
				rows, err := r.of(t.Context(), look, sets)
				if err != nil || len(rows) != 3 || rows[1].Name != "b" || !rows[1].LastPoll.Equal(at) || !rows[0].LastPoll.IsZero() {
					t.Errorf("rows after the poll of %v: %+v, %v", at, rows, err)
				}
			})
		}
		pages.Wait()
		if got, want := asked.Load(), int64(3*(poll+1)); got != want {
			t.Errorf("%d readings after %d changes, want %d", got, poll+1, want)
		}
	}
	before := asked.Load() // a command has no look, and no use for what was kept
	if _, err := r.of(t.Context(), book, sets); err != nil || asked.Load() != before+3 {
		t.Errorf("%d readings without a look, %v", asked.Load()-before, err)
	}
}
