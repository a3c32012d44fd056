package operate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
)

// Backfill is a range of older days to be fetched and filled behind the live lane.
// It is kept in a file until it is done, so that it goes on after a stop or a
// crash, and in another process.
type Backfill struct {
	Dataset string    `json:"dataset"`
	From    time.Time `json:"from"` // first day
	To      time.Time `json:"to"`   // last day
	Next    time.Time `json:"next"` // first day that is still to be fetched
	Asked   time.Time `json:"asked"`
}

// BackfillNews is the progress of a backfill.
type BackfillNews struct {
	Backfill
	ByDaemon bool   `json:"by_daemon"` // done by a running daemon, not by this process
	Granules int    `json:"granules"`  // known granules of the range
	Waiting  int    `json:"waiting"`   // granules still to be filled
	Products int    `json:"products"`
	SetAside int    `json:"set_aside"`
	Done     bool   `json:"done"`
	Problem  string `json:"problem,omitempty"` // error of the last attempt
}

// ErrBackfill says that another range of a dataset is being filled.
var ErrBackfill = errors.New("another backfill is under way")

// BackfillDays is the number of days that are fetched at a time, of a series
// coarser than daily steps: one listing of the archive each time, and at most so
// many granules ahead of a live one.
const BackfillDays = 31

// AskBackfill requests a range of days. The same range requested again goes on
// where it was.
func (s Station) AskBackfill(b Backfill) (Backfill, error) {
	if _, err := s.dataset(b.Dataset); err != nil {
		return b, err
	}
	if b.From.IsZero() || b.To.Before(b.From) {
		return b, fmt.Errorf("backfill from %s to %s: the last day must not be before the first", b.From.Format(time.DateOnly), b.To.Format(time.DateOnly))
	}
	path := s.State.Backfill(b.Dataset)
	var there Backfill
	known, err := state.Load(path, &there)
	if err != nil {
		return b, err
	}
	if known && (!there.From.Equal(b.From) || !there.To.Equal(b.To)) {
		return there, fmt.Errorf("%w: %s to %s of %s; wait for it, or cancel it with --cancel", ErrBackfill,
			there.From.Format(time.DateOnly), there.To.Format(time.DateOnly), b.Dataset)
	}
	if known {
		return there, nil
	}
	b.Next, b.Asked = b.From, s.Now()
	if err := os.MkdirAll(string(s.State), 0o755); err != nil {
		return b, fmt.Errorf("ask for backfill: %w", err)
	}
	return b, state.Save(path, b)
}

// CancelBackfill withdraws the backfill of a dataset, and reports whether there
// was one. Granules that were fetched stay.
func (s Station) CancelBackfill(dataset string) (bool, error) {
	err := os.Remove(s.State.Backfill(dataset))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// BackfillChunk fetches the next days of a backfill and moves b on; more is false
// after the last ones, when the request is removed.
func (s Station) BackfillChunk(ctx context.Context, b *Backfill, book *ledger.Ledger) (more bool, err error) {
	set, err := s.dataset(b.Dataset)
	if err != nil {
		return false, err
	}
	in, err := s.Archives.Intake(set.Dataset, book, true)
	if err != nil {
		return false, err
	}
	step, err := Step(ctx, book, b.Dataset)
	if err != nil {
		return false, errors.Join(err, in.Close())
	}
	last := b.Next.AddDate(0, 0, chunkDays(step)-1)
	if last.After(b.To) {
		last = b.To
	}
	_, err = in.Sync(ctx, fetch.Days{From: b.Next, To: last}, nil)
	if err := errors.Join(err, in.Close()); err != nil {
		return true, fmt.Errorf("backfill %s from %s to %s: %w", b.Dataset, b.Next.Format(time.DateOnly), last.Format(time.DateOnly), err)
	}
	b.Next = last.AddDate(0, 0, 1)
	path := s.State.Backfill(b.Dataset)
	if b.Next.After(b.To) {
		return false, state.Remove(path)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil // cancelled meanwhile
	}
	return true, state.Save(path, *b)
}

// Fetching returns the days of a dataset's backfill that are still to be fetched;
// an open range where there are none. A request that cannot be read counts as
// none: the backfill itself reports it.
func (s Station) Fetching(dataset string) fetch.Days {
	var b Backfill
	if known, err := state.Load(s.State.Backfill(dataset), &b); err != nil || !known {
		return fetch.Days{}
	}
	return fetch.Days{From: b.Next, To: b.To}
}

// chunkDays returns the number of days that are fetched at a time of a series with
// a step.
func chunkDays(step time.Duration) int {
	const day = 24 * time.Hour
	if infer.Daily(step) || step < day {
		return BackfillDays
	}
	return int(math.Ceil(BackfillDays * float64(step) / float64(day)))
}

// BackfillNews returns the progress of a backfill.
func (s Station) BackfillNews(ctx context.Context, b Backfill, book *ledger.Ledger) (BackfillNews, error) {
	news := BackfillNews{Backfill: b, Done: b.Next.After(b.To)}
	rows, err := New(s.Settings, book, s.Now).ofRange(ctx, b.Dataset, b.From, b.To)
	for _, g := range rows {
		news.Granules++
		switch g.State {
		case ledger.Fetched, ledger.Filled, ledger.Discovered:
			news.Waiting++
		case ledger.Quarantined:
			news.SetAside++
		default:
			news.Products++
		}
	}
	return news, err
}

// followPause is the time between two looks at a daemon's progress.
const followPause = time.Second

// FollowBackfill calls progress with the news of a backfill that a daemon does,
// until it is done.
func (s Station) FollowBackfill(ctx context.Context, b Backfill, progress func(BackfillNews)) (BackfillNews, error) {
	book, err := ledger.Join(ctx, s.State.Ledger())
	if err != nil {
		return BackfillNews{}, err
	}
	defer book.Close()
	for {
		there := b
		known, err := state.Load(s.State.Backfill(b.Dataset), &there)
		if err != nil {
			return BackfillNews{}, err
		}
		if !known {
			there.Next = b.To.AddDate(0, 0, 1)
		}
		news, err := s.BackfillNews(ctx, there, book)
		if err != nil && ctx.Err() == nil {
			return news, err
		}
		news.ByDaemon, news.Done = true, !known && news.Waiting == 0
		progress(news)
		if news.Done {
			return news, nil
		}
		select {
		case <-ctx.Done():
			return news, nil
		case <-time.After(followPause):
		}
	}
}

// backfillPause is the time between two looks whether a backfill may go on.
const backfillPause = 5 * time.Second

// Backfills carries out the requested backfills until ctx is cancelled: some days
// at a time, and only while no other granule waits to be filled.
func (s Station) Backfills(ctx context.Context, book *ledger.Ledger) error {
	tick := time.NewTicker(backfillPause)
	defer tick.Stop()
	said := map[string]string{}
	for {
		for _, set := range s.Datasets {
			err := s.goOnWithBackfill(ctx, set.Name, book)
			if err != nil && ctx.Err() == nil && err.Error() != said[set.Name] {
				said[set.Name] = err.Error()
				s.Log.Warn("backfill does not get on", "dataset", set.Name, "err", err, "retry_in", backfillPause)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// goOnWithBackfill fetches the next days of a dataset's backfill, if there is one
// and no granule waits to be filled.
func (s Station) goOnWithBackfill(ctx context.Context, dataset string, book *ledger.Ledger) error {
	var b Backfill
	known, err := state.Load(s.State.Backfill(dataset), &b)
	if err != nil || !known {
		return err
	}
	waiting, err := book.FirstPending(ctx, dataset, 1)
	if err != nil || len(waiting) > 0 {
		return err
	}
	from := b.Next
	more, err := s.BackfillChunk(ctx, &b, book)
	if err != nil {
		return err
	}
	s.Log.Info("backfill goes on", "dataset", dataset, "from", from.Format(time.DateOnly), "to", b.Next.AddDate(0, 0, -1).Format(time.DateOnly), "last", !more)
	return nil
}
