package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lacuna/daemon/quarantine"
	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/merge"
)

// Source is one of the sources of a dataset. The first of a list is the reference
// that the others are corrected to.
type Source struct {
	merge.Source
	Options ingest.Options // how its granules are read
	// Fresh returns a granule that was decoded on arrival, and forgets it; nil: none.
	Fresh func(sha256 string) (ingest.Granule, bool)
}

// Series returns the name of a source's series in the ledger. No dataset can have
// it: their names hold no dot.
func Series(dataset, source string) string { return dataset + "." + source }

// IsSeries reports whether a name in the ledger is that of a source's series.
func IsSeries(name string) bool { return strings.Contains(name, ".") }

// Books are the parts of the ledger that a merger reads and writes.
type Books interface {
	FirstPending(ctx context.Context, dataset string, n int) ([]ledger.Granule, error)
	Window(ctx context.Context, dataset string, from, to time.Time) ([]ledger.Granule, error)
	Newest(ctx context.Context, dataset string) (g ledger.Granule, ok bool, err error)
	Arrive(ctx context.Context, a ledger.Arrival, at time.Time) (g ledger.Granule, fresh bool, err error)
	SetTimes(ctx context.Context, id int64, times []time.Time) error
	Advance(ctx context.Context, id int64, to ledger.State, at time.Time) error
	Quarantine(ctx context.Context, id int64, reason string, at time.Time) error
}

// Reader decodes granules.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Parts are the parts that a merger is made of.
type Parts struct {
	Books  Books
	Reader Reader
	Spool  *fetch.Spool
	State  state.Dir
	Lock   *sync.Mutex // shared by the mergers of a dataset: one merges at a time
	Now    func() time.Time
	Log    *slog.Logger
}

// Merger makes the granules of one dataset from those of its sources.
type Merger struct {
	dataset string
	sources []Source
	Parts

	form    *form // nil: not known yet
	decoded map[string]ingest.Granule
	order   []string             // keys of decoded, the oldest first
	merged  map[string][]float32 // last merged fields by date, in the space of the transform
	said    map[string]bool      // remarks that were logged

	mu      sync.Mutex // guards the rest
	quality []Quality  // as of the last merge
	aside   int
}

// Quality is what is known of a source.
type Quality struct {
	Source      string
	Bias, Sigma float64 // in the space of the transform; Sigma is NaN where it is not known
	Days        float64 // days, by their weight, that both are fitted from
}

// New returns the merger of a dataset. It touches nothing.
func New(dataset string, sources []Source, parts Parts) *Merger {
	parts.Log = parts.Log.With("dataset", dataset)
	return &Merger{
		dataset: dataset, sources: sources, Parts: parts,
		decoded: map[string]ingest.Granule{}, merged: map[string][]float32{}, said: map[string]bool{},
	}
}

// Qualities returns what was fitted of each source at the last merge; none before
// there was one.
func (m *Merger) Qualities() []Quality {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.quality)
}

// Aside returns how many granules of sources it has set aside.
func (m *Merger) Aside() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.aside
}

// Pending merges the days of which a source has a granule that was not merged yet, in
// the order of days, and calls handOn with every granule that has come or changed by
// it. Days that could not be merged for a reason of our own are left for the next
// call, and the error names them.
func (m *Merger) Pending(ctx context.Context, handOn func(fetch.Granule) error) error {
	m.Lock.Lock()
	defer m.Lock.Unlock()
	var waiting []waiter
	for i, s := range m.sources {
		rows, err := m.Books.FirstPending(ctx, Series(m.dataset, s.Name), -1)
		if err != nil {
			return err
		}
		for _, g := range rows {
			if g.State == ledger.Fetched {
				day, _ := fetch.DayInName(g.Name)
				waiting = append(waiting, waiter{source: i, granule: g, day: day})
			}
		}
	}
	slices.SortStableFunc(waiting, func(a, b waiter) int { return a.day.Compare(b.day) })
	for len(waiting) > 0 {
		n := 1 // all granules of the first day, so that it is merged once
		for n < len(waiting) && waiting[n].day.Equal(waiting[0].day) && !waiting[0].day.IsZero() {
			n++
		}
		if err := m.take(ctx, waiting[:n], handOn); err != nil {
			return err
		}
		waiting = waiting[n:]
	}
	return nil
}

// waiter is a granule of a source that waits to be merged.
type waiter struct {
	source  int
	granule ledger.Granule
	day     time.Time // by its name; zero: the name has none
}

// take merges the days of some granules.
func (m *Merger) take(ctx context.Context, some []waiter, handOn func(fetch.Granule) error) error {
	days := map[time.Time]ledger.Lane{}
	var done []int64
	for _, w := range some {
		granule, err := m.read(ctx, w.source, w.granule)
		if err == nil {
			_, err = m.suit(w.source, granule)
		}
		if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
			if err := m.setAside(ctx, w.granule, bad); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("granule %s of source %s: %w", w.granule.Name, m.sources[w.source].Name, err)
		}
		if err := m.Books.SetTimes(ctx, w.granule.ID, field.Times(granule.Fields)); err != nil {
			return err
		}
		for _, f := range granule.Fields {
			day := f.Time.UTC().Truncate(24 * time.Hour)
			if lane := days[day]; lane != ledger.Live {
				days[day] = w.granule.Lane
			}
		}
		done = append(done, w.granule.ID)
	}
	for _, day := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		g, fresh, err := m.mergeDay(ctx, day, days[day])
		if err != nil {
			return fmt.Errorf("merge %s of dataset %s: %w", day.Format(time.DateOnly), m.dataset, err)
		}
		if fresh {
			if err := handOn(g); err != nil {
				return err
			}
		}
	}
	for _, id := range done {
		if err := m.Books.Advance(ctx, id, ledger.Filled, m.Now()); err != nil {
			return err
		}
	}
	return nil
}

// mostDecoded is the number of decoded granules in memory: the sources of a day, and
// a few of the days around it.
const mostDecoded = 8

// read returns a granule of a source from memory, or decodes it.
func (m *Merger) read(ctx context.Context, source int, g ledger.Granule) (ingest.Granule, error) {
	key := m.sources[source].Name + " " + g.SHA256 // options differ between sources
	if granule, ok := m.decoded[key]; ok {
		return granule, nil
	}
	granule, ok := ingest.Granule{}, false
	if fresh := m.sources[source].Fresh; fresh != nil {
		granule, ok = fresh(g.SHA256)
	}
	if !ok || granule.Name != filepath.Base(g.SpoolPath) {
		if _, err := os.Stat(g.SpoolPath); errors.Is(err, os.ErrNotExist) { // it may have been on its way out when a process was killed
			if _, err := (quarantine.Folder{State: m.State}).Restore(g); err != nil {
				return ingest.Granule{}, err
			}
		}
		var err error
		if granule, err = m.Reader.Read(ctx, g.SpoolPath, m.sources[source].Options); err != nil {
			return ingest.Granule{}, err
		}
	}
	m.decoded[key] = granule
	m.order = append(m.order, key)
	for len(m.order) > mostDecoded {
		delete(m.decoded, m.order[0])
		m.order = m.order[1:]
	}
	return granule, nil
}

// setAside moves a bad granule of a source out of the way, with the reason beside
// it.
func (m *Merger) setAside(ctx context.Context, g ledger.Granule, bad *ingest.BadGranule) error {
	reason := (&ingest.BadGranule{File: g.Name, Problem: bad.Problem, Remedy: bad.Remedy}).Error()
	target, err := (quarantine.Folder{State: m.State}).Put(g, reason)
	if err != nil {
		return err
	}
	m.Log.Warn("granule set aside", "source", g.Dataset, "granule", g.Name, "reason", reason, "file", target)
	if err := m.Books.Quarantine(ctx, g.ID, reason, m.Now()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.aside++
	return nil
}

// first reports whether a remark is made for the first time.
func (m *Merger) first(remark ...any) bool {
	key := fmt.Sprint(remark...)
	known := m.said[key]
	m.said[key] = true
	return !known
}
