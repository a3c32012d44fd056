package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/internal/convert"
	"lacuna/pipeline/ingest"
)

// intake is the watcher of one dataset and the archive that it watches.
type intake struct {
	*fetch.Watcher
	archive connection
	fresh   *fresh
}

// intake makes the watcher of one dataset, which writes into record. It starts
// nothing.
func (d *Daemon) intake(set Dataset, record deliveries) (intake, error) {
	archive, err := d.archives.open(set)
	if err != nil {
		return intake{}, err
	}
	watch := set.Archive.Config
	watch.Name = set.Name
	fresh := &fresh{most: watch.Parallel}
	watcher, err := fetch.NewWatcher(watch, fetch.Parts{
		Archive:    archive,
		Readers:    archive.readers,
		Spool:      d.spool,
		Deliveries: record,
		Polls:      record,
		Validate:   d.validate(set, fresh),
		AsideDir:   filepath.Join(d.cfg.state().Quarantine(), set.Name),
		Now:        d.parts.Now,
		Log:        d.log,
	})
	return intake{Watcher: watcher, archive: archive, fresh: fresh}, err
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

// validate returns what looks whether a file that has just come is a granule
// of the dataset at all, before it counts as one.
func (d *Daemon) validate(set Dataset, fresh *fresh) func(ctx context.Context, path string) error {
	return func(ctx context.Context, path string) error {
		g, err := d.reader.Patient().Read(ctx, path, set.Options)
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

// Fetch is what is to be fetched.
type Fetch struct {
	Dataset string     // empty: all
	Days    fetch.Days // open: what the look-back of the dataset says
	// Backfill says that what comes is not urgent: it is filled when nothing
	// live is to be done.
	Backfill bool
	// Progress returns who hears how a dataset comes along; may be nil.
	Progress func(dataset string) fetch.Progress
}

// Fetched is what was fetched of a dataset.
type Fetched struct {
	Dataset string `json:"dataset"`
	fetch.Summary
}

// Fetch brings what is new on the archives into the spool, without filling it:
// the next run does that. Where something could not be had, the rest is in and
// the error tells.
func (d *Daemon) Fetch(ctx context.Context, ask Fetch) ([]Fetched, error) {
	var all []Fetched
	var errs []error
	err := d.eachIntake(ctx, ask, func(set Dataset, in intake) {
		var progress fetch.Progress
		if ask.Progress != nil {
			progress = ask.Progress(set.Name)
		}
		sum, err := in.Sync(ctx, ask.Days, progress)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
		all = append(all, Fetched{Dataset: set.Name, Summary: sum})
	})
	return all, errors.Join(append(errs, err)...)
}

// FetchPlan is what would be fetched of a dataset now.
type FetchPlan struct {
	Dataset string
	Actions []fetch.Action
	Notices []string // what the archive has to say, such as a version that is about to end
}

// PlanFetch returns what Fetch would do, and why, without doing it.
func (d *Daemon) PlanFetch(ctx context.Context, ask Fetch) ([]FetchPlan, error) {
	var all []FetchPlan
	var errs []error
	err := d.eachIntake(ctx, ask, func(set Dataset, in intake) {
		actions, err := in.Plan(ctx, ask.Days)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
		notices, err := in.archive.notices(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
		all = append(all, FetchPlan{Dataset: set.Name, Actions: actions, Notices: notices})
	})
	return all, errors.Join(append(errs, err)...)
}

// eachIntake calls work with the intake of one dataset, or of each.
func (d *Daemon) eachIntake(ctx context.Context, ask Fetch, work func(Dataset, intake)) error {
	book, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer d.books().Close(ctx, book)
	found := false
	for _, set := range d.cfg.Datasets {
		if ask.Dataset != "" && set.Name != ask.Dataset {
			continue
		}
		found = true
		in, err := d.intake(set, deliveries{dataset: set.Name, ledger: book, backfill: ask.Backfill})
		if err != nil {
			return err
		}
		work(set, in)
		if err := in.archive.Close(); err != nil {
			d.log.Debug("archive not closed", "dataset", set.Name, "err", err)
		}
	}
	if !found {
		return fmt.Errorf("%w: there is no dataset %q", ErrConfig, ask.Dataset)
	}
	return nil
}

// notices returns what the archive has to say to an operator. Only Copernicus
// Marine announces versions.
func (c connection) notices(ctx context.Context) ([]string, error) {
	source, ok := c.bare.(*cmems.Archive)
	if !ok {
		return nil, nil
	}
	found, err := source.Notices(ctx)
	return convert.Each(found, func(n cmems.Notice) string { return n.Text }), err
}

// noticeInterval is how often an archive is asked for news of its versions:
// they are announced weeks ahead.
const noticeInterval = 6 * time.Hour

// announce logs each notice of the archive once, until ctx is cancelled. A
// version is never changed for it: that is for an operator to say.
func (c connection) announce(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	said := map[string]bool{}
	for {
		notices, err := c.notices(ctx)
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
			return c.Close()
		case <-tick.C:
		}
	}
}
