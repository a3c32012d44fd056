package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/quarantine"
	"lacuna/fetch"
	"lacuna/internal/convert"
	"lacuna/ledger"
)

// Operations are the operator's questions and requests on a ledger, beside a
// daemon that may be running. A request is one transaction: the running daemon
// carries it out, or the next one to start.
type Operations struct {
	cfg  Settings
	book *ledger.Ledger
	now  func() time.Time
}

// Join opens the ledger of the service that cfg describes, beside a daemon that
// may be running.
func Join(ctx context.Context, cfg Settings) (*Operations, error) {
	book, err := ledger.Join(ctx, cfg.State.Ledger())
	if err != nil {
		return nil, err
	}
	return New(cfg, book, time.Now), nil
}

// New returns the operations on an open ledger.
func New(cfg Settings, book *ledger.Ledger, now func() time.Time) *Operations {
	return &Operations{cfg: cfg, book: book, now: now}
}

// Close closes the ledger.
func (o *Operations) Close() error { return o.book.Close() }

// Backup writes a snapshot of the ledger to a file, and returns its size in bytes.
func (o *Operations) Backup(ctx context.Context, file string) (int64, error) {
	if err := o.book.Backup(ctx, file); err != nil {
		return 0, err
	}
	return ledger.Size(file), nil
}

// CheckLedger reads the whole ledger and reports every inconsistency.
func (o *Operations) CheckLedger(ctx context.Context) error { return o.book.Check(ctx) }

// ErrUnknown says that the ledger has no such granule or day.
var ErrUnknown = errors.New("nothing is known of it")

// Aside is a granule in quarantine.
type Aside struct {
	Dataset  string    `json:"dataset"`
	Granule  string    `json:"granule"`
	Revision int       `json:"revision"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
	File     string    `json:"file,omitempty"` // path of its bytes; empty: they were never fetched, or are gone
	Bytes    int64     `json:"bytes"`
	SHA256   string    `json:"sha256,omitempty"`
}

func (o *Operations) quarantine() quarantine.Folder { return quarantine.Folder{State: o.cfg.State} }

// Quarantine returns the granules that are set aside, the latest first: of one
// dataset, or of all where its name is empty.
func (o *Operations) Quarantine(ctx context.Context, dataset string) ([]Aside, error) {
	rows, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, State: ledger.Quarantined})
	return convert.Each(rows, o.aside), err
}

// ShowAside returns the revisions of a granule that are set aside, the latest
// first.
func (o *Operations) ShowAside(ctx context.Context, dataset, granule string) ([]Aside, error) {
	found, err := o.named(ctx, dataset, granule)
	if err != nil {
		return nil, err
	}
	var all []Aside
	for _, name := range found {
		rows, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: name.Dataset, Name: name.Name, State: ledger.Quarantined})
		if err != nil {
			return nil, err
		}
		all = append(all, convert.Each(rows, o.aside)...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", granule, ledger.ErrNotAside)
	}
	return all, nil
}

func (o *Operations) aside(g ledger.Granule) Aside {
	return Aside{
		Dataset: g.Dataset, Granule: g.Name, Revision: g.Revision, Reason: g.Reason, Since: g.Changed,
		File: o.quarantine().File(g), Bytes: g.Size, SHA256: g.SHA256,
	}
}

// Retried is a granule that is taken up again.
type Retried struct {
	Dataset  string `json:"dataset"`
	Granule  string `json:"granule"`
	Revision int    `json:"revision"`
	Problem  string `json:"problem,omitempty"` // reason why it stays in quarantine
}

// RetryAside takes granules in quarantine up again: the newest revisions of those
// that are selected, or all of the dataset where none is. A granule that cannot be
// taken up is returned with its problem.
func (o *Operations) RetryAside(ctx context.Context, s Selection) ([]Retried, error) {
	rows, err := o.asideRows(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []Retried
	for _, g := range rows {
		one := Retried{Dataset: g.Dataset, Granule: g.Name, Revision: g.Revision}
		if err := o.quarantine().TakeUp(ctx, o.book, g, "", o.now()); err != nil {
			one.Problem = err.Error()
		}
		all = append(all, one)
	}
	return all, nil
}

// asideRows returns the granules that RetryAside takes up.
func (o *Operations) asideRows(ctx context.Context, s Selection) ([]ledger.Granule, error) {
	if s.IsZero() {
		return o.book.Granules(ctx, ledger.GranuleQuery{Dataset: s.Dataset, State: ledger.Quarantined})
	}
	found, err := o.selected(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []ledger.Granule
	for _, name := range found {
		newest, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: name.Dataset, Name: name.Name, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(newest) == 1 && newest[0].State == ledger.Quarantined {
			all = append(all, newest[0])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w; 'lacuna why %s' tells what became of it", s, ledger.ErrNotAside, found[0].Name)
	}
	return all, nil
}

// Retry takes one granule in quarantine up again.
func (o *Operations) Retry(ctx context.Context, dataset, granule string) error {
	all, err := o.RetryAside(ctx, Selection{Dataset: dataset, Names: []string{granule}})
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Problem != "" {
			return errors.New(one.Problem)
		}
	}
	return nil
}

// RedoRequest asks for products to be made again, with the reason.
type RedoRequest struct {
	Selection
	Why string
}

// Redone is a product that is made again.
type Redone struct {
	Dataset  string `json:"dataset"`
	Granule  string `json:"granule"`
	Revision int    `json:"revision"` // number of the new revision
	Note     string `json:"note,omitempty"`
}

// Redo asks for products to be made and published again as new revisions. The
// reason is kept with them.
func (o *Operations) Redo(ctx context.Context, r RedoRequest) ([]Redone, error) {
	if strings.TrimSpace(r.Why) == "" {
		return nil, errors.New("a redo needs a reason: it is kept with the new revision")
	}
	targets, err := o.selected(ctx, r.Selection)
	if err != nil {
		return nil, err
	}
	var all []Redone
	var errs []error
	for _, t := range targets {
		before, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: t.Dataset, Name: t.Name, Limit: 1})
		if err != nil {
			return all, err
		}
		g, err := o.book.Revise(ctx, ledger.Revision{Dataset: t.Dataset, Granule: t.Name, Cause: ledger.Redo, Why: r.Why, Lane: ledger.Live}, o.now())
		if errors.Is(err, ledger.ErrNothingToRevise) {
			errs = append(errs, fmt.Errorf("%s of %s was set aside: 'lacuna quarantine retry %s' takes it up again", t.Name, t.Dataset, t.Name))
			continue
		}
		if err != nil {
			return all, err
		}
		one := Redone{Dataset: t.Dataset, Granule: t.Name, Revision: g.Revision}
		if len(before) == 1 && before[0].ID == g.ID {
			one.Note = "it was about to be made anyway"
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}

// RedoDay asks for the products of a day to be made again.
func (o *Operations) RedoDay(ctx context.Context, dataset string, day time.Time, why string) error {
	_, err := o.Redo(ctx, RedoRequest{Selection: Selection{Dataset: dataset, Days: []fetch.Days{{From: day, To: day}}}, Why: why})
	return err
}

// named returns the granules with a name, or whose path ends with it.
func (o *Operations) named(ctx context.Context, dataset, name string) ([]ledger.Object, error) {
	if dataset != "" {
		if _, err := o.cfg.dataset(dataset); err != nil && !o.cfg.hasSeries(dataset) {
			return nil, err
		}
	}
	found, err := o.book.Named(ctx, dataset, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %w: no archive has shown it; 'lacuna plan' lists what they show now", name, ErrUnknown)
	}
	return found, nil
}

// OfDay returns the revisions of granules with a field of a day, and those that
// were set aside unread and have the day in their names, oldest row first.
func (o *Operations) OfDay(ctx context.Context, dataset string, day time.Time) ([]ledger.Granule, error) {
	return o.ofRange(ctx, dataset, day, day)
}

// ofRange is OfDay for the days from through to.
func (o *Operations) ofRange(ctx context.Context, dataset string, from, to time.Time) ([]ledger.Granule, error) {
	const oneDay = 24 * time.Hour
	from, to = from.UTC().Truncate(oneDay), to.UTC().Truncate(oneDay).Add(oneDay-time.Nanosecond)
	rows, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, From: from, To: to})
	if err != nil {
		return nil, err
	}
	for _, state := range []ledger.State{ledger.Quarantined, ledger.Fetched} { // in these states a granule may not have been read
		unread, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, State: state, Unread: true})
		if err != nil {
			return nil, err
		}
		for _, g := range unread {
			if named, ok := fetch.DayInName(g.Name); ok && !named.Before(from) && !named.After(to) {
				rows = append(rows, g)
			}
		}
	}
	slices.SortFunc(rows, func(a, b ledger.Granule) int { return int(a.ID - b.ID) })
	return rows, nil
}
