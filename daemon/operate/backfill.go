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
	"lacuna/internal/figure"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
)

// Backfill is a range of older days to be fetched and filled behind the live lane,
// or products of them to be made again. It is kept in a file until it is done, so
// that it goes on after a stop or a crash, and in another process.
type Backfill struct {
	Dataset string    `json:"dataset"`
	From    time.Time `json:"from"` // first day
	To      time.Time `json:"to"`   // last day
	Next    time.Time `json:"next"` // first day that is still to be fetched, or asked to be made again
	Asked   time.Time `json:"asked"`

	Again bool   `json:"again,omitempty"` // products that are there are made again, and nothing is fetched
	Model string `json:"model,omitempty"` // with Again: the champion at that time; empty: whatever fills the dataset
	Rule  bool   `json:"rule,omitempty"`  // with Again: train.reprocess_days asked for it
}

// BackfillNews is the progress of a backfill.
type BackfillNews struct {
	Backfill
	ByDaemon bool `json:"by_daemon"` // done by a running daemon, not by this process
	Granules int  `json:"granules"`  // known granules of the range
	Waiting  int  `json:"waiting"`   // granules still to be filled
	Products int  `json:"products"`
	SetAside int  `json:"set_aside"`
	Done     bool `json:"done"`
	Paused   bool `json:"paused,omitempty"`
	// Left is the time that the rest takes, in seconds, by the speed of the last
	// products; 0: nothing is left, or no product was made yet.
	Left float64 `json:"seconds_left,omitempty"`
	Rate float64 `json:"products_an_hour,omitempty"` // by the last products; 0: none was made yet
	Most float64 `json:"most_an_hour,omitempty"`     // its rate; 0: no limit
	Took float64 `json:"seconds,omitempty"`          // since it was asked for
}

// String returns the progress as a line.
func (n BackfillNews) String() string {
	who := ""
	if n.ByDaemon {
		who = " (by the daemon)"
	}
	line := fmt.Sprintf("%s %s..%s%s: ", n.Dataset, n.From.Format(time.DateOnly), n.To.Format(time.DateOnly), who)
	reached := n.Next.AddDate(0, 0, -1)
	switch {
	case n.Again:
		line += fmt.Sprintf("%d of %d products made again", n.Products, n.Granules-n.SetAside)
	case reached.Before(n.From):
		line += fmt.Sprintf("nothing fetched yet, %d granules, %d products", n.Granules, n.Products)
	default:
		line += fmt.Sprintf("fetched through %s, %d granules, %d products", reached.Format(time.DateOnly), n.Granules, n.Products)
	}
	line += fmt.Sprintf(", %d to fill, %d set aside", n.Waiting, n.SetAside)
	switch {
	case n.Paused:
		line += ", paused"
	case n.Done && n.Took > 0:
		line += ", in " + figure.Seconds(n.Took)
	case n.Left > 0 && !n.Done:
		if n.Rate > 0 {
			line += fmt.Sprintf(", %.3g an hour", n.Rate)
		}
		if n.Most > 0 {
			line += fmt.Sprintf(", at most %.4g an hour", n.Most)
		}
		line += fmt.Sprintf(", about %s left", figure.Seconds(n.Left))
	}
	return line
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
	if known && there.sameAs(b) {
		return there, nil
	}
	if known && !there.overtakenBy(b) {
		return there, fmt.Errorf("%w: %s to %s of %s; wait for it, or cancel it with --cancel", ErrBackfill,
			there.From.Format(time.DateOnly), there.To.Format(time.DateOnly), b.Dataset)
	}
	if known {
		b.From, b.To = earlier(b.From, there.From), later(b.To, there.To)
	}
	b.Next, b.Asked = b.From, s.Now().UTC().Round(0)
	if err := os.MkdirAll(string(s.State), 0o755); err != nil {
		return b, fmt.Errorf("ask for backfill: %w", err)
	}
	return b, state.Save(path, b)
}

// sameAs reports whether another request asks for what b does.
func (b Backfill) sameAs(other Backfill) bool {
	return b.From.Equal(other.From) && b.To.Equal(other.To) && b.Again == other.Again && b.Model == other.Model
}

// overtakenBy reports whether another request takes the place of b, which is under
// way: products that were made again by the champion before are to be made once more.
func (b Backfill) overtakenBy(other Backfill) bool {
	return b.Again && other.Again && b.Model != other.Model
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// CancelBackfill withdraws the backfill of a dataset, and reports whether there
// was one. Granules that were fetched stay, and revisions that were asked for are
// made.
func (s Station) CancelBackfill(dataset string) (bool, error) {
	err := os.Remove(s.State.Backfill(dataset))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, errors.Join(err, state.Remove(s.State.BackfillPaused(dataset)), state.Remove(s.State.BackfillRate(dataset)))
}

// PauseBackfill makes the backfill lane of a dataset rest after the granule in
// hand, or go on. What is live is filled as ever.
func (s Station) PauseBackfill(dataset string, pause bool) error {
	if _, err := s.dataset(dataset); err != nil {
		return err
	}
	path := s.State.BackfillPaused(dataset)
	if !pause {
		return state.Remove(path)
	}
	if err := os.MkdirAll(string(s.State), 0o755); err != nil {
		return fmt.Errorf("pause backfill: %w", err)
	}
	return state.Save(path, s.Now())
}

// BackfillPaused reports whether the backfill of a dataset rests.
func (s Settings) BackfillPaused(dataset string) bool {
	_, err := os.Stat(s.State.BackfillPaused(dataset))
	return err == nil
}

// BackfillChunk fetches the next days of a backfill, or asks for their products to
// be made again, and moves b on; more is false after the last ones, when the request
// is removed.
func (s Station) BackfillChunk(ctx context.Context, b *Backfill, book *ledger.Ledger) (more bool, err error) {
	step, err := Step(ctx, book, b.Dataset)
	if err != nil {
		return false, err
	}
	days := fetch.Days{From: b.Next, To: earlier(b.To, b.Next.AddDate(0, 0, chunkDays(step)-1))}
	if b.Again {
		err = s.ops(book).reviseDays(ctx, *b, days)
	} else {
		err = s.fetchDays(ctx, b.Dataset, days, book)
	}
	if err != nil {
		return true, fmt.Errorf("backfill %s from %s to %s: %w", b.Dataset, days.From.Format(time.DateOnly), days.To.Format(time.DateOnly), err)
	}
	path := s.State.Backfill(b.Dataset)
	var there Backfill
	known, err := state.Load(path, &there)
	if err != nil {
		return true, err
	}
	if known && !there.Asked.Equal(b.Asked) { // another has taken its place meanwhile
		*b = there
		return true, nil
	}
	b.Next = days.To.AddDate(0, 0, 1)
	switch {
	case !known:
		return false, nil // cancelled meanwhile
	case b.Next.After(b.To):
		return false, state.Remove(path)
	}
	return true, state.Save(path, *b)
}

// fetchDays fetches days of a dataset into the backfill lane.
func (s Station) fetchDays(ctx context.Context, dataset string, days fetch.Days, book *ledger.Ledger) error {
	set, err := s.dataset(dataset)
	if err != nil {
		return err
	}
	in, err := s.Archives.Intake(set.Dataset, book, true)
	if err != nil {
		return err
	}
	_, err = in.Sync(ctx, days, nil)
	return errors.Join(err, in.Close())
}

func (s Station) ops(book *ledger.Ledger) *Operations { return New(s.Settings, book, s.Now) }

// Fetching returns the days of a dataset's backfill that are still to be fetched;
// an open range where there are none. A request that cannot be read counts as
// none: the backfill itself reports it.
func (s Settings) Fetching(dataset string) fetch.Days {
	var b Backfill
	if known, err := state.Load(s.State.Backfill(dataset), &b); err != nil || !known || b.Again {
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

// followPause is the time between two looks at a daemon's progress.
const followPause = time.Second

// FollowBackfill calls progress with the news of a backfill that a daemon does,
// until it is done or rests.
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
		news, err := s.ops(book).BackfillNews(ctx, there)
		if err != nil && ctx.Err() == nil {
			return news, err
		}
		news.ByDaemon, news.Done = true, !known && news.Waiting == 0
		progress(news)
		if news.Done || news.Paused {
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
// at a time, and only while hardly any other granule waits to be filled. It asks for
// products to be made again where a dataset has another champion and the rule says
// so. wake starts the worker of a dataset.
func (s Station) Backfills(ctx context.Context, book *ledger.Ledger, wake func(dataset string)) error {
	tick := time.NewTicker(backfillPause)
	defer tick.Stop()
	said, rested := map[string]string{}, map[string]bool{}
	for {
		for _, set := range s.Datasets {
			paused := s.BackfillPaused(set.Name)
			more, err := false, errors.Join(s.reprocessAfterPromotion(ctx, set, book), s.EndRate(ctx, set.Name, book))
			if err == nil && !paused {
				more, err = s.goOnWithBackfill(ctx, set.Name, book)
			}
			if more || rested[set.Name] && !paused || s.BackfillRate(set.Name) > 0 {
				wake(set.Name)
			}
			rested[set.Name] = paused
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

// WantsMore reports whether a backfill should fetch more days: while no granule waits to
// be filled, and where workers fill already when they would be idle before more come.
func (s Settings) WantsMore(ctx context.Context, dataset string, book *ledger.Ledger) (bool, error) {
	enough := max(s.Ahead, 1)
	waiting, err := book.FirstPending(ctx, dataset, enough)
	return err == nil && len(waiting) < enough, err
}

// goOnWithBackfill takes up the next days of a dataset's backfill, if there is one
// and hardly any granule waits to be filled, and reports whether it did.
func (s Station) goOnWithBackfill(ctx context.Context, dataset string, book *ledger.Ledger) (bool, error) {
	var b Backfill
	known, err := state.Load(s.State.Backfill(dataset), &b)
	if err != nil || !known {
		return false, err
	}
	did := false
	for more := true; more; {
		wanted, err := s.WantsMore(ctx, dataset, book)
		if err != nil || !wanted {
			return did, err
		}
		from := b.Next
		if more, err = s.BackfillChunk(ctx, &b, book); err != nil {
			return did, err
		}
		did = true
		s.Log.Info("backfill goes on", "dataset", dataset, "again", b.Again, "from", from.Format(time.DateOnly), "to", b.Next.AddDate(0, 0, -1).Format(time.DateOnly), "last", !more)
		if !b.Again {
			break // the archive is not asked more often
		}
	}
	return did, nil
}
