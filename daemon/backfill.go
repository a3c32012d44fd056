package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/fetch"
	"lacuna/internal/pause"
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
	station, look := d.Station(), operate.New(d.operate, book, d.parts.Now)
	stop := out.Background(ctx)
	defer stop()
	run := backfillRun{station: station, book: book, worker: w, live: live, news: func() (operate.BackfillNews, error) {
		news, err := look.BackfillNews(ctx, b)
		if err == nil {
			progress(news)
		}
		return news, err
	}}
	if turn == nil {
		err = run.inTurn(ctx, &b)
	} else {
		err = run.ahead(ctx, &b)
	}
	stop()
	err = errors.Join(err, out.Flush(ctx), station.EndRate(ctx, b.Dataset, book))
	news, newsErr := look.BackfillNews(ctx, b)
	return news, errors.Join(err, newsErr)
}

// backfillRun is a backfill in this process.
type backfillRun struct {
	station operate.Station
	book    *ledger.Ledger
	worker  *work.Worker
	live    *intake.Intake
	news    func() (operate.BackfillNews, error)
}

// next takes up the next days of a backfill. Granules of the live lane are filled
// first, every time. They are fetched last, so that the archive was seen whole after the
// older days came.
func (r backfillRun) next(ctx context.Context, b *operate.Backfill) (more bool, err error) {
	if more, err = r.station.BackfillChunk(ctx, b, r.book); err != nil {
		return false, err
	}
	_, err = r.live.Sync(ctx, fetch.Days{}, nil)
	return more, err
}

// inTurn fetches some days and fills them, again and again.
func (r backfillRun) inTurn(ctx context.Context, b *operate.Backfill) error {
	var errs []error
	for more := true; more && !r.station.BackfillPaused(b.Dataset) && ctx.Err() == nil; {
		var err error
		if more, err = r.next(ctx, b); err != nil { // it keeps nobody from filling what is there
			errs = append(errs, err)
		}
		if err := r.workOff(ctx, b.Dataset); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}

// workOff fills what waits, at the rate of the backfill.
func (r backfillRun) workOff(ctx context.Context, dataset string) error {
	for {
		_, err := r.worker.WorkOff(ctx)
		news, newsErr := r.news()
		if err := errors.Join(err, newsErr); err != nil {
			return err
		}
		if news.Waiting == 0 || news.Paused || r.station.BackfillRate(dataset) == 0 || !pause.For(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// ahead fetches days beside the workers that fill, so that none of them is idle while
// the last granules of some days are filled.
func (r backfillRun) ahead(ctx context.Context, b *operate.Backfill) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fetched := make(chan error, 1)
	ask := *b
	go func() { fetched <- r.fetch(ctx, &ask) }()
	for {
		err := r.workOff(ctx, b.Dataset)
		select {
		case fetchErr := <-fetched:
			if err == nil && fetchErr == nil {
				err = r.workOff(ctx, b.Dataset) // the last days
			}
			*b = ask
			return errors.Join(err, fetchErr)
		default:
		}
		if err != nil {
			cancel()
			err = errors.Join(err, <-fetched)
			*b = ask
			return err
		}
		pause.For(ctx, 200*time.Millisecond)
	}
}

// fetch takes up days while hardly any granule waits to be filled.
func (r backfillRun) fetch(ctx context.Context, b *operate.Backfill) error {
	var errs []error
	for more := true; more && !r.station.BackfillPaused(b.Dataset); {
		wanted, err := r.station.WantsMore(ctx, b.Dataset, r.book)
		switch {
		case err != nil:
			return errors.Join(append(errs, err)...)
		case wanted:
			if more, err = r.next(ctx, b); err != nil {
				errs = append(errs, err)
			}
		case !pause.For(ctx, 200*time.Millisecond):
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}
