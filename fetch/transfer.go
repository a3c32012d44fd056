package fetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// arrival is the result of a download.
type arrival struct {
	action  Action
	granule Granule
	invalid error // why the file is not a granule
	err     error
}

// transfer is a download under way.
type transfer struct {
	action Action
	begun  time.Time
	late   bool     // it holds up later ones no more
	end    *arrival // nil: it is under way
	cancel context.CancelFunc
}

// lanes are the limits of downloads under way: of those that hold up the ones
// behind them, and of those that are late.
type lanes struct{ inOrder, late int }

// newLanes divides the readers that an archive lets be open, 0 for any number,
// so that a late download leaves room for others and there is room for a late
// one. An archive with one reader has no room for it.
func newLanes(parallel, readers int) lanes {
	if readers == 0 {
		readers = 2 * parallel
	}
	l := lanes{inOrder: max(1, min(parallel, readers-1))}
	l.late = min(parallel, readers-l.inOrder)
	return l
}

// transfers are the downloads under way, in the order in which their granules
// are handed on. One that is late goes on beside the others, and from one poll
// to the next.
type transfers struct {
	all    []*transfer
	ended  chan ending // has room for all, so that no download blocks at its end
	ending sync.WaitGroup
}

// ending is the news that a download has ended.
type ending struct {
	transfer *transfer
	arrival  arrival
}

// fetchAll makes downloads, several at a time, and concludes them in their
// order, so that days are handed on one after the other. A download that takes
// longer than the patience gives way: it goes on, and those behind it are
// handed on before it. One that is still late when the next poll is due goes on
// during it.
func (w *Watcher) fetchAll(ctx context.Context, downloads []Action, opts passOptions, t *tally) error {
	downloads = slices.DeleteFunc(downloads, func(a Action) bool { return w.transfers.holds(a.Object.Name) })
	for {
		downloads = w.begin(ctx, downloads, opts)
		concluded, err := w.concludeArrived(ctx, opts, t)
		if err != nil {
			w.transfers.abandon() // downloads under way are resumed later
			return err
		}
		if concluded {
			continue // there is room for others
		}
		if len(w.transfers.all) == 0 {
			return nil
		}
		wake, leave := w.transfers.wake(w.cfg.Patience, w.lanes, w.untilPoll(opts))
		if leave && len(downloads) == 0 {
			t.underWay = len(w.transfers.all)
			return nil
		}
		if err := w.transfers.await(ctx, wake); err != nil {
			w.transfers.abandon()
			return err
		}
	}
}

// untilPoll returns how long it is until the next poll; a long time where there
// is none.
func (w *Watcher) untilPoll(opts passOptions) time.Duration {
	if opts.until.IsZero() {
		return forever
	}
	return opts.until.Sub(w.parts.Now())
}

// begin starts as many downloads as there is room for and returns the others.
// Those that are late take no room.
func (w *Watcher) begin(ctx context.Context, downloads []Action, opts passOptions) []Action {
	for len(downloads) > 0 && w.transfers.inOrder() < w.lanes.inOrder {
		a := downloads[0]
		if a.Lane == Backfill && !opts.until.IsZero() && !w.parts.Now().Before(opts.until) {
			return nil // they are left to the next poll, which puts its live granules first
		}
		downloads = downloads[1:]
		ctx, cancel := context.WithCancel(ctx)
		tr := &transfer{action: a, begun: time.Now(), cancel: cancel}
		w.transfers.add(w.lanes, tr, func() arrival { return w.bring(ctx, a, opts) })
	}
	return downloads
}

// concludeArrived concludes the downloads that have ended and that none before
// them holds up, and reports whether there was one.
func (w *Watcher) concludeArrived(ctx context.Context, opts passOptions, t *tally) (bool, error) {
	q := &w.transfers
	q.drain()
	for _, tr := range q.giveWay(w.cfg.Patience, w.lanes, time.Now()) {
		w.log.Info("object is late, those behind it go first", "object", tr.action.Object.Name, "patience", w.cfg.Patience)
	}
	for i, tr := range q.all {
		if tr.end == nil && !tr.late {
			return false, nil
		}
		if tr.end != nil {
			q.all = slices.Delete(q.all, i, i+1)
			w.alive()
			return true, w.finish(ctx, *tr.end, opts, t)
		}
	}
	return false, nil
}

// bring downloads one object and looks whether it is a granule.
func (w *Watcher) bring(ctx context.Context, a Action, opts passOptions) arrival {
	d := Download{
		Archive: w.parts.Archive, Object: a.Object, Floor: w.cfg.DiskFloor, OnAlive: w.alive,
		Limits: Limits{LeastRate: int64(w.cfg.LeastRate) << 10, Deadline: w.cfg.Deadline},
	}
	if opts.bytes != nil {
		d.OnBytes = func(n int) { opts.bytes(a.Object, n) }
	}
	g, err := w.parts.Spool.Bring(ctx, d)
	if err != nil || g.SHA256 == a.Known.SHA256 {
		return arrival{action: a, granule: g, err: err}
	}
	err = w.parts.Validate(ctx, g.Path)
	if errors.Is(err, ErrInvalid) {
		return arrival{action: a, granule: g, invalid: err}
	}
	if err != nil {
		err = fmt.Errorf("validate %s: %w", a.Object.Name, err)
	}
	return arrival{action: a, granule: g, err: err}
}

// holds reports whether an object of this name is under way.
func (q *transfers) holds(name string) bool {
	return slices.ContainsFunc(q.all, func(tr *transfer) bool { return tr.action.Object.Name == name })
}

// inOrder counts the downloads that hold up those behind them.
func (q *transfers) inOrder() int {
	n := 0
	for _, tr := range q.all {
		if !tr.late {
			n++
		}
	}
	return n
}

// add starts work as the last of the downloads.
func (q *transfers) add(l lanes, tr *transfer, work func() arrival) {
	if q.ended == nil {
		q.ended = make(chan ending, l.inOrder+l.late)
	}
	q.all = append(q.all, tr)
	q.ending.Go(func() {
		end := work()
		tr.cancel()
		q.ended <- ending{tr, end}
	})
}

// drain collects the downloads that have ended.
func (q *transfers) drain() {
	for {
		select {
		case e := <-q.ended:
			e.transfer.end = &e.arrival
		default:
			return
		}
	}
}

// giveWay marks the downloads that take longer than the patience as late, as
// many as there is room for, and returns the newly late ones. They go on beside
// the others.
func (q *transfers) giveWay(patience time.Duration, l lanes, now time.Time) []*transfer {
	var given []*transfer
	room := l.late - (len(q.all) - q.inOrder())
	for _, tr := range q.all {
		if !tr.late && tr.end == nil && room > 0 && now.Sub(tr.begun) >= patience {
			tr.late = true
			given = append(given, tr)
			room--
		}
	}
	return given
}

// forever is longer than any wait.
const forever = time.Duration(math.MaxInt64)

// wake returns when to look again if nothing ends before, and whether there is
// nothing but late downloads to wait for although the next poll is due.
func (q *transfers) wake(patience time.Duration, l lanes, untilPoll time.Duration) (after time.Duration, leave bool) {
	running := q.inOrder()
	if running == 0 {
		return untilPoll, untilPoll <= 0
	}
	if len(q.all)-running >= l.late { // no other one may be late
		return forever, false
	}
	after = forever
	for _, tr := range q.all {
		if !tr.late && tr.end == nil {
			after = min(after, patience-time.Since(tr.begun))
		}
	}
	return after, false
}

// await returns when a download has ended or the time is over, or with the
// error of ctx.
func (q *transfers) await(ctx context.Context, after time.Duration) error {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case e := <-q.ended:
		e.transfer.end = &e.arrival
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// abandon stops all downloads and returns when they have ended. Their bytes are
// kept to be resumed.
func (q *transfers) abandon() {
	for _, tr := range q.all {
		tr.cancel()
	}
	q.ending.Wait()
	q.drain()
	q.all = nil
}
