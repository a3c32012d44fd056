package pages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/daemon/shadow"
	"lacuna/daemon/sources"
	"lacuna/daemon/version"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/ops"
	"lacuna/publish"
)

// RecentRows is the number of products, and of granules in quarantine, that the
// page shows: a screenful each.
const RecentRows = 20

// Status returns the function that gives the status page its content.
func (p Pages) Status(book *ledger.Ledger) func(context.Context) (ops.Status, error) {
	started := p.Now()
	records := &records{read: p.recorded}
	return func(ctx context.Context) (ops.Status, error) {
		s := ops.Status{Version: version.String(), Started: started, Now: p.Now(), Ready: p.Live.Ready(), Fleet: p.Live.Fleet()}
		counts, err := book.Counts(ctx)
		if err != nil {
			return s, err
		}
		asideToday, err := book.SetAsideSince(ctx, s.Now.Add(-24*time.Hour))
		if err != nil {
			return s, err
		}
		told, err := records.of(ctx, book, p.Settings.Datasets)
		if err != nil {
			return s, err
		}
		for i, set := range p.Settings.Datasets {
			row, err := p.datasetRow(ctx, book, set, told[i], counts)
			if err != nil {
				return s, err
			}
			row.AsideToday = asideOf(set, asideToday)
			s.Datasets = append(s.Datasets, row)
		}
		p.noteChampions(s.Datasets)
		if s.Sinks, err = p.sinkRows(ctx, book); err != nil {
			return s, err
		}
		if err := p.noteTaken(ctx, book, &s); err != nil {
			return s, err
		}
		s.Disks = p.diskRows()
		done, err := book.Recent(ctx, RecentRows, ledger.Stored, ledger.Announced)
		if err != nil {
			return s, err
		}
		for _, g := range done {
			s.Products = append(s.Products, p.productRow(g))
			noteLatest(s.Datasets, g)
			if err := noteMethod(ctx, book, s.Datasets, g); err != nil {
				return s, err
			}
		}
		aside, err := book.Recent(ctx, RecentRows, ledger.Quarantined)
		if err != nil {
			return s, err
		}
		for _, g := range aside {
			s.Quarantine = append(s.Quarantine, ops.Quarantined{Dataset: g.Dataset, Granule: g.Name, Reason: g.Reason, At: g.Changed})
		}
		p.assess(&s)
		return s, nil
	}
}

// datasetRow returns the progress of a dataset and the state of its archive, from what
// the ledger tells of it.
func (p Pages) datasetRow(ctx context.Context, book *ledger.Ledger, set operate.Dataset, row ops.Dataset, counts []ledger.Count) (ops.Dataset, error) {
	row.Method = p.Live.Method(set.Name)
	for _, c := range counts {
		if c.Dataset != set.Name {
			continue
		}
		row.States = append(row.States, ops.StateCount{State: string(c.State), Granules: c.Granules})
		if c.State == ledger.Fetched || c.State == ledger.Filled {
			row.Queue += c.Granules
		}
	}
	if set.Clock != nil {
		row.Now = set.Clock(p.Now())
	}
	p.noteTraining(&row)
	if err := p.noteBackfill(ctx, book, &row); err != nil {
		return row, err
	}
	var news []intake.News
	if in := p.Live.Intake(set.Name); in != nil {
		state := in.State()
		row.DiskFull, row.Stalled = state.DiskFull, state.Stalled(p.Now(), set.Archive.Stall)
		row.Problem = cmp.Or(state.Err, state.Slow)
		if row.Stalled {
			row.Problem = fmt.Sprintf("a poll has got on with nothing since %s", state.Progress.UTC().Format(time.RFC3339))
		}
		if !state.LastPoll.IsZero() { // otherwise the ledger may know a poll from before the start
			row.LastPoll = state.LastPoll
		}
		row.Breaker = in.Breaker()
		if !state.Late.Due.IsZero() { // by expect.by
			row.Due = state.Late.Due
		}
		news = in.News()
		noteSources(in, &row)
	}
	p.noteVersions(&row, news)
	return row, nil
}

// asideOf returns the granules of a dataset that were set aside, with those of its
// sources.
func asideOf(set operate.Dataset, counts map[string]int) int {
	n := counts[set.Name]
	for _, s := range set.Sources {
		n += counts[sources.Series(set.Name, s.Name)]
	}
	return n
}

// noteSources adds what a running intake knows of the sources of a dataset.
func noteSources(in *intake.Intake, row *ops.Dataset) {
	row.Sources = slices.Clone(row.Sources) // what the ledger tells of them is kept
	for _, live := range in.Sources() {
		at := slices.IndexFunc(row.Sources, func(s ops.Source) bool { return s.Name == live.Name })
		if at < 0 {
			continue
		}
		s := &row.Sources[at]
		s.Problem = cmp.Or(live.State.Err, live.State.Slow)
		if q := live.Quality; q != nil {
			s.Bias, s.Days = q.Bias, q.Days
			if !math.IsNaN(q.Sigma) {
				s.Error = &q.Sigma
			}
		}
	}
}

// noteVersions adds new versions of a dataset that no operator has decided on, with
// the comparison as far as there is one.
func (p Pages) noteVersions(row *ops.Dataset, news []intake.News) {
	known, err := shadow.Load(p.Settings.State, row.Name)
	if err != nil {
		row.NewVersion = err.Error()
		return
	}
	var all []string
	for _, n := range news {
		if n.Version == "" || slices.Contains(known.Refused, n.Version) {
			continue
		}
		if r, ok, err := shadow.Last(p.Settings.State, row.Name); err == nil && ok && r.Version == n.Version {
			n.Text += "; " + r.String()
		}
		all = append(all, n.Text)
	}
	all = append(all, convert.Each(known.Changes, shadow.Change.String)...)
	row.NewVersion = strings.Join(all, "; ")
}

// noteChampions adds the champion to every row. Of a damaged log of the store the
// sound part counts; the page of the models shows the damage.
func (p Pages) noteChampions(rows []ops.Dataset) {
	if p.ModelStore == "" {
		return
	}
	champions, _ := modelstore.New(p.ModelStore, p.Now).Champions()
	for i := range rows {
		rows[i].Champion = champions[rows[i].Name].Version
	}
}

// sinkRows returns the queues of the sinks, also of sinks that are not configured
// any more.
func (p Pages) sinkRows(ctx context.Context, book *ledger.Ledger) ([]ops.Sink, error) {
	backlogs, err := book.Backlogs(ctx)
	rows := convert.Each(backlogs, func(b ledger.Backlog) ops.Sink {
		return ops.Sink{Name: b.Sink, Waiting: b.Waiting, Bytes: b.Bytes, Oldest: b.Oldest, Aside: b.Aside}
	})
	for _, name := range p.Settings.Publish.SinkNames() {
		if !slices.ContainsFunc(rows, func(r ops.Sink) bool { return r.Name == name }) {
			rows = append(rows, ops.Sink{Name: name})
		}
	}
	for i := range rows {
		rows[i].Foreign = p.Live.Refused(rows[i].Name)
	}
	return rows, err
}

// noteTaken adds the revisions that were found taken in the sinks within a day.
func (p Pages) noteTaken(ctx context.Context, book *ledger.Ledger, s *ops.Status) error {
	const day = 24 * time.Hour
	since := p.Now().Add(-day)
	counts, err := book.CountTaken(ctx, since)
	if err != nil {
		return err
	}
	for _, n := range counts {
		for i := range s.Sinks {
			if s.Sinks[i].Name == n.Sink {
				s.Sinks[i].Conflicts, s.Sinks[i].Unknown = n.Conflicts, n.Unknown
			}
		}
	}
	found, err := book.TakenSince(ctx, since, RecentRows)
	for _, t := range found {
		s.Taken = append(s.Taken, ops.Taken{
			Sink: t.Sink, Dataset: t.Dataset, Granule: t.Granule, Revision: t.Revision, There: t.SHA256, Ours: t.Ours, At: t.At,
		})
	}
	return err
}

// diskRows returns the free space of the folders that grow. A folder that does not
// exist yet has no row.
func (p Pages) diskRows() []ops.Disk {
	var rows []ops.Disk
	for _, folder := range []struct{ name, path string }{{"state", string(p.Settings.State)}, {"products", p.Settings.Products}} {
		var s syscall.Statfs_t
		if err := syscall.Statfs(folder.path, &s); err == nil {
			rows = append(rows, ops.Disk{Folder: folder.name, FreeBytes: int64(s.Bavail) * s.Bsize})
		}
	}
	return rows
}

func (p Pages) productRow(g ledger.Granule) ops.Product {
	file, err := filepath.Rel(p.Settings.Products, g.Product.Path)
	if err != nil {
		file = ""
	}
	picture := ""
	if p.Settings.Publish.QuickLook && file != "" {
		picture = filepath.ToSlash(strings.TrimSuffix(file, filepath.Ext(file)) + ".png")
	}
	return ops.Product{
		QuickLook: picture, Input: inputOf(g),
		Dataset: g.Dataset, Granule: g.Name, Revision: g.Revision, Day: g.First, Stored: g.Changed,
		File: filepath.ToSlash(file), ObservedBefore: g.Product.Observed, FilledAfter: g.Product.Covered,
	}
}

// noteMethod adds what filled a granule to the row of its dataset, where no daemon
// has chosen anything since it was started.
func noteMethod(ctx context.Context, book *ledger.Ledger, rows []ops.Dataset, g ledger.Granule) error {
	at := slices.IndexFunc(rows, func(row ops.Dataset) bool { return row.Name == g.Dataset && row.Method == "" })
	if at < 0 {
		return nil
	}
	current, holds, err := book.Current(ctx, g.Dataset, g.Name)
	if err != nil || !holds {
		return err
	}
	told := toldOf(current)
	rows[at].Method = cmp.Or(fill.Method(told.Model), told.Model)
	return nil
}

// inputOf returns the input of a product.
func inputOf(g ledger.Granule) string {
	switch {
	case g.Absent:
		return publish.NoGranule
	case g.Product.Observed == 0:
		return publish.CloudedOut
	}
	return publish.Seen
}

// noteLatest keeps the newest day of each dataset on its row.
func noteLatest(rows []ops.Dataset, g ledger.Granule) {
	for i := range rows {
		if rows[i].Name == g.Dataset && !g.Absent && g.Last.After(rows[i].LastDay) {
			rows[i].LastGranule, rows[i].LastDay, rows[i].LastArrival = g.Name, g.Last, g.Recorded
		}
	}
}
