package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"lacuna/daemon/quarantine"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// Reader decodes files.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Intake is the watcher of one dataset and the archive that it watches.
type Intake struct {
	*fetch.Watcher
	archive Connection
	fresh   *fresh
}

// Intake makes the watcher of one dataset, which records in the ledger what it
// has brought in. With backfill everything that comes belongs to the backfill
// lane. It starts nothing.
func (s *Archives) Intake(set Dataset, book *ledger.Ledger, backfill bool) (*Intake, error) {
	archive, err := s.Open(set)
	if err != nil {
		return nil, err
	}
	watch := set.Archive.Config
	watch.Name = set.Name
	fresh := &fresh{most: watch.Parallel}
	record := deliveries{dataset: set.Name, ledger: book, backfill: backfill}
	watcher, err := fetch.NewWatcher(watch, fetch.Parts{
		Archive:    archive,
		Readers:    archive.readers,
		Spool:      s.Spool,
		Deliveries: record,
		Polls:      record,
		Validate:   s.validate(set, fresh),
		AsideDir:   quarantine.Folder{State: s.State}.Of(set.Name),
		Now:        s.Now,
		Log:        s.Log,
	})
	return &Intake{Watcher: watcher, archive: archive, fresh: fresh}, err
}

// Fresh returns a granule that was decoded when it came in, and forgets it.
func (in *Intake) Fresh(sha256 string) (ingest.Granule, bool) { return in.fresh.take(sha256) }

// Close lets go of the archive.
func (in *Intake) Close() error { return in.archive.Close() }

// Breaker returns the phase of the circuit breaker before the archive; empty
// where there is none.
func (in *Intake) Breaker() string {
	if breaker, ok := in.archive.Archive.(*fetch.Breaker); ok {
		return string(breaker.State().Phase)
	}
	return ""
}

// fresh keeps the granules that were decoded last when they came in, so that
// they need not be decoded again to be filled.
type fresh struct {
	most int

	mu  sync.Mutex // guards all
	all []ingest.Granule
}

func (f *fresh) put(g ingest.Granule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, g)
	f.all = f.all[max(0, len(f.all)-f.most):]
}

// take returns the granule with this hash and forgets it. Nil has none.
func (f *fresh) take(sha256 string) (ingest.Granule, bool) {
	if f == nil {
		return ingest.Granule{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(g ingest.Granule) bool { return g.SHA256 == sha256 })
	if i < 0 {
		return ingest.Granule{}, false
	}
	g := f.all[i]
	f.all = slices.Delete(f.all, i, i+1)
	return g, true
}

// validate returns the function that looks whether a file that has just come is a
// granule of the dataset at all, before it counts as one.
func (s *Archives) validate(set Dataset, fresh *fresh) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		g, err := s.Reader.Read(ctx, path, set.Options)
		if err == nil {
			fresh.put(g)
		}
		bad := (*ingest.BadGranule)(nil)
		if errors.As(err, &bad) {
			return fmt.Errorf("%w: %w", fetch.ErrInvalid, err)
		}
		return err
	}
}

// Notices returns what the archive has to say to an operator. Only Copernicus
// Marine announces versions.
func (in *Intake) Notices(ctx context.Context) ([]string, error) {
	source, ok := in.archive.Bare.(*cmems.Archive)
	if !ok {
		return nil, nil
	}
	found, err := source.Notices(ctx)
	return convert.Each(found, func(n cmems.Notice) string { return n.Text }), err
}

// noticeInterval is how often an archive is asked for news of its versions:
// they are announced weeks ahead.
const noticeInterval = 6 * time.Hour

// Announce logs each notice of the archive once, until ctx is cancelled. A
// version is never changed for it: that is for an operator to say.
func (in *Intake) Announce(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	said := map[string]bool{}
	for {
		notices, err := in.Notices(ctx)
		if err != nil && ctx.Err() == nil {
			log.Debug("no notices", "err", err) // the watcher meets the same and says so
		}
		for _, text := range notices {
			if !said[text] {
				said[text] = true
				log.Warn("archive announces", "notice", text)
			}
		}
		select {
		case <-ctx.Done():
			return in.Close()
		case <-tick.C:
		}
	}
}
