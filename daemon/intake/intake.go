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
	"lacuna/daemon/shadow"
	"lacuna/daemon/sources"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

// Reader decodes granules.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Intake brings in the granules of one dataset: a watcher for each of its archives,
// and where there are several, the merger of what they bring.
type Intake struct {
	feeds  []feed
	merger *sources.Merger // nil: there is one archive
	poll   time.Duration
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex // guards news
	news []News
}

// feed is an archive with its watcher.
type feed struct {
	*fetch.Watcher
	source  Source // empty: the only archive of its dataset
	series  string // name in the ledger
	archive Connection
	fresh   *fresh
}

// News is an announcement of an archive to operators.
type News struct {
	Version string // a newer version of the dataset that is out; empty: it is about something else
	Text    string
}

// Intake makes the intake of one dataset, which records every granule in the
// ledger; with backfill, in the backfill lane. It starts nothing.
func (s *Archives) Intake(set Dataset, book *ledger.Ledger, backfill bool) (*Intake, error) {
	in := &Intake{poll: set.Archive.PollInterval, now: s.Now, log: s.Log.With("component", "fetch", "archive", set.Name)}
	for i, series := range set.Series() {
		f, err := s.feed(series, book, backfill)
		if err != nil {
			return nil, err
		}
		if len(set.Sources) > 0 {
			f.source = set.Sources[i]
		}
		in.feeds = append(in.feeds, f)
	}
	if len(set.Sources) == 0 {
		return in, nil
	}
	var merged []sources.Source
	for i, f := range in.feeds {
		merged = append(merged, set.Sources[i].merged(set.Options, f.fresh.take))
	}
	in.merger = sources.New(set.Name, merged, sources.Parts{
		Books: book, Reader: s.Reader, Spool: s.Spool, State: s.State, Lock: s.merging.of(set.Name), Now: s.Now, Log: s.Log,
	})
	return in, nil
}

// feed makes the watcher of one archive.
func (s *Archives) feed(set Dataset, book *ledger.Ledger, backfill bool) (feed, error) {
	archive, err := s.Open(set)
	if err != nil {
		return feed{}, err
	}
	watch := set.Archive.Config
	watch.Name = set.Name
	fresh := &fresh{most: watch.Parallel}
	arrived := func(name string) {
		s.noteVersion(set.Name, name, func(m *shadow.Memory) bool { return m.NotePath(name, s.Now()) })
	}
	record := deliveries{dataset: set.Name, ledger: book, backfill: backfill, arrived: arrived}
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
	return feed{Watcher: watcher, series: set.Name, archive: archive, fresh: fresh}, err
}

// Fresh returns a granule that was decoded on arrival, and forgets it. One that was
// merged is none: its bytes are our own.
func (in *Intake) Fresh(sha256 string) (ingest.Granule, bool) {
	if in.merger != nil {
		return ingest.Granule{}, false
	}
	return in.feeds[0].fresh.take(sha256)
}

// Close closes the archives.
func (in *Intake) Close() error {
	var errs []error
	for _, f := range in.feeds {
		errs = append(errs, f.archive.Close())
	}
	return errors.Join(errs...)
}

// Breaker returns the phase of the circuit breaker before the archive, of several
// the first that is not closed; empty where there is none.
func (in *Intake) Breaker() string {
	phase := ""
	for _, f := range in.feeds {
		if breaker, ok := f.archive.Archive.(*fetch.Breaker); ok && (phase == "" || phase == string(fetch.Closed)) {
			phase = string(breaker.State().Phase)
		}
	}
	return phase
}

// fresh keeps the last granules that were decoded on arrival, so that they need
// not be decoded again to be filled.
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

// take returns the granule with this hash and forgets it. A nil fresh has none.
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

// validate returns the check that a file which was just fetched is a granule of
// the dataset.
func (s *Archives) validate(set Dataset, fresh *fresh) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		g, err := s.Reader.Read(ctx, path, set.Options)
		if err == nil {
			fresh.put(g)
			s.noteVersion(set.Name, g.Name, func(m *shadow.Memory) bool { return m.Note(g, s.Now()) })
		}
		bad := (*ingest.BadGranule)(nil)
		if errors.As(err, &bad) {
			return fmt.Errorf("%w: %w", fetch.ErrInvalid, err)
		}
		return err
	}
}

// Notices returns the archives' announcements to operators, such as the end of a
// version. Only Copernicus Marine has any.
func (in *Intake) Notices(ctx context.Context) ([]News, error) {
	var all []News
	var errs []error
	for _, f := range in.feeds {
		archive, ok := f.archive.Bare.(*cmems.Archive)
		if !ok {
			continue
		}
		found, err := archive.Notices(ctx)
		all = append(all, convert.Each(found, newsOf)...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func newsOf(n cmems.Notice) News {
	news := News{Text: n.Text}
	if n.Kind == cmems.NewVersion {
		news.Version = n.Version
	}
	return news
}

// News returns what the archive announced when it was last asked.
func (in *Intake) News() []News {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.news)
}

// noteVersion keeps what a granule tells of its version. Where that fails the
// granule is as good as before, and the next one tries again.
func (s *Archives) noteVersion(dataset, granule string, note func(*shadow.Memory) bool) {
	s.versions.Lock()
	defer s.versions.Unlock()
	known, err := shadow.Load(s.State, dataset)
	if err == nil && note(&known) {
		err = known.Save(s.State, dataset)
	}
	if err != nil {
		s.Log.Warn("the version of a granule could not be kept", "dataset", dataset, "granule", granule, "err", err)
	}
}

// noticeInterval is how often an archive is asked for news of its versions:
// they are announced weeks ahead.
const noticeInterval = 6 * time.Hour

// Announce logs each notice of the archive once, until ctx is cancelled. It never
// changes the version: that is the operator's decision.
func (in *Intake) Announce(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	said := map[string]bool{}
	for {
		notices, err := in.Notices(ctx)
		if err != nil && ctx.Err() == nil {
			log.Debug("notices cannot be read", "err", err) // the watcher meets the same error and reports it
		}
		if err == nil {
			in.mu.Lock()
			in.news = notices
			in.mu.Unlock()
		}
		for _, n := range notices {
			if !said[n.Text] {
				said[n.Text] = true
				log.Warn("archive announces", "notice", n.Text)
			}
		}
		select {
		case <-ctx.Done():
			return in.Close()
		case <-tick.C:
		}
	}
}
