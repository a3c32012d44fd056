package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"lacuna/daemon/version"
	"lacuna/fetch"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/ops"
	"lacuna/pipeline/skill"
)

// recentRows is how many products and set-aside granules the page shows: a
// screenful each.
const recentRows = 20

// statusOf returns the function that the status page asks.
func (d *Daemon) statusOf(book *ledger.Ledger) func(context.Context) (ops.Status, error) {
	started := d.parts.Now()
	return func(ctx context.Context) (ops.Status, error) {
		s := ops.Status{Version: version.String(), Started: started, Now: d.parts.Now(), Ready: d.ready.Load()}
		counts, err := book.Counts(ctx)
		if err != nil {
			return s, err
		}
		asideToday, err := book.SetAsideSince(ctx, s.Now.Add(-24*time.Hour))
		if err != nil {
			return s, err
		}
		for _, set := range d.cfg.Datasets {
			row, err := d.datasetRow(ctx, book, set, counts)
			if err != nil {
				return s, err
			}
			row.AsideToday = asideToday[set.Name]
			s.Datasets = append(s.Datasets, row)
		}
		d.noteChampions(s.Datasets)
		if s.Sinks, err = d.sinkRows(ctx, book); err != nil {
			return s, err
		}
		if err := d.noteTaken(ctx, book, &s); err != nil {
			return s, err
		}
		s.Disks = d.diskRows()
		done, err := book.Recent(ctx, recentRows, ledger.Stored, ledger.Announced)
		if err != nil {
			return s, err
		}
		for _, g := range done {
			s.Products = append(s.Products, d.productRow(g))
			noteLatest(s.Datasets, g)
		}
		aside, err := book.Recent(ctx, recentRows, ledger.Quarantined)
		if err != nil {
			return s, err
		}
		for _, g := range aside {
			s.Quarantine = append(s.Quarantine, ops.Quarantined{Dataset: g.Dataset, Granule: g.Name, Reason: g.Reason, At: g.Changed})
		}
		d.assess(&s)
		return s, nil
	}
}

// datasetRow is how far a dataset has come, and how its archive is.
func (d *Daemon) datasetRow(ctx context.Context, book *ledger.Ledger, set Dataset, counts []ledger.Count) (ops.Dataset, error) {
	row := ops.Dataset{Name: set.Name, Title: set.Product, Method: d.renewal.method(set)}
	for _, c := range counts {
		if c.Dataset != set.Name {
			continue
		}
		row.States = append(row.States, ops.StateCount{State: string(c.State), Granules: c.Granules})
		if c.State == ledger.Fetched || c.State == ledger.Filled {
			row.Queue += c.Granules
		}
	}
	newest, _, err := book.Newest(ctx, set.Name)
	if err != nil {
		return row, err
	}
	row.NewestField = newest.Last
	if row.LastPoll, err = book.LastPoll(ctx, set.Name); err != nil {
		return row, err
	}
	if d.renewal != nil {
		row.Training = d.renewal.news(set.Name)
	}
	if err := d.noteSkill(ctx, book, &row); err != nil {
		return row, err
	}
	if in, ok := d.intakes[set.Name]; ok {
		state := in.State()
		row.DiskFull, row.Stalled = state.DiskFull, state.Stalled(d.parts.Now(), set.Archive.Stall)
		row.Problem = cmp.Or(state.Err, state.Slow)
		if row.Stalled {
			row.Problem = fmt.Sprintf("a poll has got on with nothing since %s", state.Progress.UTC().Format(time.RFC3339))
		}
		if !state.LastPoll.IsZero() { // else the ledger may know of one before the start
			row.LastPoll = state.LastPoll
		}
		if breaker, ok := in.archive.Archive.(*fetch.Breaker); ok {
			row.Breaker = string(breaker.State().Phase)
		}
	}
	return row, nil
}

// noteSkill puts the last score of a dataset and its drift on its row.
func (d *Daemon) noteSkill(ctx context.Context, book *ledger.Ledger, row *ops.Dataset) error {
	last, err := book.Skills(ctx, ledger.SkillQuery{Dataset: row.Name, Kind: ledger.Overlay, Limit: 1})
	if err != nil {
		return err
	}
	if len(last) == 1 {
		s := skillRow(last[0])
		row.Skill = &s
	}
	days, err := book.Skills(ctx, ledger.SkillQuery{Dataset: row.Name, Kind: ledger.Overlay, Limit: skill.DriftDays})
	if err != nil {
		return err
	}
	drift := skill.DriftOf(ledger.Errors(days))
	row.Drift, row.RecentMSE = drift.Alarm, drift.Recent
	return nil
}

// noteChampions puts on every row which model serves. A store whose log is
// damaged tells what its sound part says; the page of the models tells why.
func (d *Daemon) noteChampions(rows []ops.Dataset) {
	if d.cfg.Train.Store == "" {
		return
	}
	champions, _ := modelstore.New(d.cfg.Train.Store, d.parts.Now).Champions()
	for i := range rows {
		rows[i].Champion = champions[rows[i].Name].Version
	}
}

// sinkRows is what waits for the sinks, those that are not configured any more
// among them.
func (d *Daemon) sinkRows(ctx context.Context, book *ledger.Ledger) ([]ops.Sink, error) {
	backlogs, err := book.Backlogs(ctx)
	rows := convert.Each(backlogs, func(b ledger.Backlog) ops.Sink {
		return ops.Sink{Name: b.Sink, Waiting: b.Waiting, Bytes: b.Bytes, Oldest: b.Oldest, Aside: b.Aside}
	})
	for _, name := range d.cfg.Publish.SinkNames() {
		if !slices.ContainsFunc(rows, func(r ops.Sink) bool { return r.Name == name }) {
			rows = append(rows, ops.Sink{Name: name})
		}
	}
	for i := range rows {
		rows[i].Foreign = d.out.Refused(rows[i].Name)
	}
	return rows, err
}

// noteTaken puts on s what was found of others in the sinks within a day.
func (d *Daemon) noteTaken(ctx context.Context, book *ledger.Ledger, s *ops.Status) error {
	const day = 24 * time.Hour
	since := d.parts.Now().Add(-day)
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
	found, err := book.TakenSince(ctx, since, recentRows)
	for _, t := range found {
		s.Taken = append(s.Taken, ops.Taken{
			Sink: t.Sink, Dataset: t.Dataset, Granule: t.Granule, Revision: t.Revision, There: t.SHA256, Ours: t.Ours, At: t.At,
		})
	}
	return err
}

// diskRows is the room on the disks that fill up. A folder that is not there
// yet has no row.
func (d *Daemon) diskRows() []ops.Disk {
	var rows []ops.Disk
	for _, folder := range []struct{ name, path string }{{"state", d.cfg.StateDir}, {"products", d.cfg.ProductsDir}} {
		var s syscall.Statfs_t
		if err := syscall.Statfs(folder.path, &s); err == nil {
			rows = append(rows, ops.Disk{Folder: folder.name, FreeBytes: int64(s.Bavail) * s.Bsize})
		}
	}
	return rows
}

func (d *Daemon) productRow(g ledger.Granule) ops.Product {
	file, err := filepath.Rel(d.cfg.ProductsDir, g.Product.Path)
	if err != nil {
		file = ""
	}
	picture := ""
	if d.cfg.Publish.QuickLook && file != "" {
		picture = filepath.ToSlash(strings.TrimSuffix(file, filepath.Ext(file)) + ".png")
	}
	return ops.Product{
		QuickLook: picture,
		Dataset:   g.Dataset, Granule: g.Name, Revision: g.Revision, Day: g.First, Stored: g.Changed,
		File: filepath.ToSlash(file), ObservedBefore: g.Product.Observed, FilledAfter: g.Product.Covered,
	}
}

// noteLatest keeps the newest day of each dataset on its row.
func noteLatest(rows []ops.Dataset, g ledger.Granule) {
	for i := range rows {
		if rows[i].Name == g.Dataset && g.Last.After(rows[i].LastDay) {
			rows[i].LastGranule, rows[i].LastDay, rows[i].LastArrival = g.Name, g.Last, g.Recorded
		}
	}
}
