package operate

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"lacuna/daemon/state"
	"lacuna/ledger"
)

// SetBackfillRate has the backfill of a dataset make so many products an hour at most;
// 0: as many as it can.
func (s Station) SetBackfillRate(dataset string, anHour float64) error {
	if _, err := s.dataset(dataset); err != nil {
		return err
	}
	if math.IsNaN(anHour) || anHour < 0 {
		return errors.New("the rate of a backfill must not be negative")
	}
	path := s.State.BackfillRate(dataset)
	if anHour == 0 {
		return state.Remove(path)
	}
	return state.Save(path, anHour)
}

// BackfillRate returns the most products an hour of a dataset's backfill; 0: there is no
// limit. A file that cannot be read counts as none.
func (s Settings) BackfillRate(dataset string) float64 {
	var anHour float64
	if known, err := state.Load(s.State.BackfillRate(dataset), &anHour); err != nil || !known {
		return 0
	}
	return max(anHour, 0)
}

// EndRate forgets the rate of a backfill that is done.
func (s Station) EndRate(ctx context.Context, dataset string, book *ledger.Ledger) error {
	if s.BackfillRate(dataset) == 0 {
		return nil
	}
	if known, err := state.Load(s.State.Backfill(dataset), &Backfill{}); err != nil || known {
		return err
	}
	if waiting, err := book.FirstPending(ctx, dataset, 1); err != nil || len(waiting) > 0 {
		return err
	}
	return s.SetBackfillRate(dataset, 0)
}

// Throttle holds the backfill of a dataset back: while it is paused, and so that it
// keeps to its rate. The workers of several machines are held back at the one that
// sends them their jobs.
type Throttle struct {
	settings Settings
	dataset  string
	now      func() time.Time

	mu    sync.Mutex // guards the rest
	rate  float64    // that holds since the last look
	ready float64    // products that may be begun now
	at    time.Time  // of the last look
}

// Throttle returns what holds the backfill of a dataset back.
func (s Settings) Throttle(dataset string, now func() time.Time) *Throttle {
	return &Throttle{settings: s, dataset: dataset, now: now}
}

// Rests reports whether no product of the backfill may be begun now.
func (t *Throttle) Rests() bool {
	if t.settings.BackfillPaused(t.dataset) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, rate := t.now(), t.settings.BackfillRate(t.dataset)
	if rate != t.rate {
		t.ready = 1 // the first at once
	} else {
		t.ready = saved(t.ready, now.Sub(t.at), rate)
	}
	t.rate, t.at = rate, now
	return rate > 0 && t.ready < 1
}

// Begun counts a product of the backfill.
func (t *Throttle) Begun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready--
}

// throttleBurst is how much of a rate is made up for after an idle time: long against the
// looks at whether a backfill may go on, short against an hour.
const throttleBurst = time.Minute

// saved returns how many products may be begun after a time, of so many before.
func saved(ready float64, after time.Duration, anHour float64) float64 {
	most := max(anHour*throttleBurst.Hours(), 1)
	return min(ready+max(after, 0).Hours()*anHour, most)
}

// slower returns the time of a product at a rate: that of the machines, or the rate's.
func slower(each time.Duration, anHour float64) time.Duration {
	if anHour <= 0 {
		return each
	}
	return max(each, time.Duration(float64(time.Hour)/anHour))
}
