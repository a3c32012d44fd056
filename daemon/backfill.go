package daemon

import (
	"context"
	"errors"
	"slices"

	"lacuna/daemon/operate"
	"lacuna/daemon/workers"
	"lacuna/fetch"
	"lacuna/ledger"
)

// Backfill fetches and fills a requested range, or makes its products again, and
// returns when it is done, rests or ctx is cancelled; then the request stays. Where a daemon runs, that daemon does the
// work and Backfill follows it. It calls progress after each step.
func (d *Daemon) Backfill(ctx context.Context, b operate.Backfill, progress func(operate.BackfillNews)) (operate.BackfillNews, error) {
	book, err := d.open(ctx)
	if errors.Is(err, ledger.ErrLocked) {
		return d.Station().FollowBackfill(ctx, b, progress)
	}
	if err != nil {
		return operate.BackfillNews{}, err
	}
	if d.cfg.Workers.Type != workers.Kafka {
		defer d.books().Close(ctx, book)
		return d.backfillHere(ctx, b, book, nil, progress)
	}
	// No daemon runs, so this process is the coordinator meanwhile.
	if err := book.Close(); err != nil {
		return operate.BackfillNews{}, err
	}
	turn, book, err := d.begin(ctx)
	if err != nil {
		return operate.BackfillNews{}, err
	}
	defer turn.close()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer turn.whenLost(lose)()
	defer turn.listen(ctx)()
	defer d.books().Close(ctx, book)
	return d.backfillHere(ctx, b, book, turn, progress)
}

// backfillHere does the work of a backfill in this process, or has it done by workers.
func (d *Daemon) backfillHere(ctx context.Context, b operate.Backfill, book *ledger.Ledger, turn *coordination, progress func(operate.BackfillNews)) (operate.BackfillNews, error) {
	out, err := d.openOutbox(ctx, book)
	if err != nil {
		return operate.BackfillNews{}, err
	}
	defer out.Close()
	renewal := d.openRenewal(book)
	defer renewal.close()
	set := d.cfg.Datasets[slices.IndexFunc(d.cfg.Datasets, func(s Dataset) bool { return s.Name == b.Dataset })]
	w, live, err := d.dataset(set, shared{book: book, out: out, renewal: renewal, turn: turn})
	if err != nil {
		return operate.BackfillNews{}, err
	}
	station, look := d.Station(), operate.New(d.cfg.Operate(), book, d.parts.Now)
	stop := out.Background(ctx)
	defer stop()
	var errs []error
	for more := true; more && !station.BackfillPaused(b.Dataset); {
		if more, err = station.BackfillChunk(ctx, &b, book); err != nil {
			errs = append(errs, err)
			break
		}
		// Granules of the live lane are filled first, every time. They are fetched
		// last, so that the archive was seen whole after the older days came.
		if _, err := live.Sync(ctx, fetch.Days{}, nil); err != nil {
			errs = append(errs, err)
		}
		if _, err := w.WorkOff(ctx); err != nil {
			errs = append(errs, err)
			break
		}
		news, err := look.BackfillNews(ctx, b)
		if err != nil {
			return news, err
		}
		progress(news)
	}
	stop()
	err = errors.Join(append(errs, out.Flush(ctx))...)
	news, newsErr := look.BackfillNews(ctx, b)
	return news, errors.Join(err, newsErr)
}
