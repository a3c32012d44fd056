package pages

import (
	"context"
	"slices"
	"time"

	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/publish"
)

// days is the calendar of a dataset.
type days struct{ reading }

// Span implements ops.Days.
func (w days) Span(ctx context.Context, dataset string) (first, last time.Time, err error) {
	if err := w.known(dataset); err != nil {
		return first, last, err
	}
	if first, last, err = w.book.Span(ctx, dataset); err != nil {
		return first, last, err
	}
	unread, err := w.unread(ctx, dataset)
	for _, u := range unread {
		if first.IsZero() || u.date.Before(first) {
			first = u.date
		}
		if u.date.After(last) {
			last = u.date
		}
	}
	return first, last, err
}

// Days implements ops.Days.
func (w days) Days(ctx context.Context, dataset string, from, to time.Time) ([]ops.Day, error) {
	rows, err := w.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, From: from, To: to})
	if err != nil {
		return nil, err
	}
	modes, err := w.modes(ctx, dataset, from, to)
	if err != nil {
		return nil, err
	}
	unread, err := w.unread(ctx, dataset)
	if err != nil {
		return nil, err
	}
	states := map[time.Time]ops.DayState{}
	note := func(date time.Time, state ops.DayState) {
		if rank(state) > rank(states[date]) && !date.Before(from.Truncate(oneDay)) && !date.After(to) {
			states[date] = state
		}
	}
	for _, g := range newestRows(rows) {
		state := dayState(g, modes)
		for date := g.First.Truncate(oneDay); !date.After(g.Last); date = date.Add(oneDay) {
			note(date, state)
		}
	}
	for _, u := range unread {
		note(u.date, dayState(u.granule, modes))
	}
	all := make([]ops.Day, 0, len(states))
	for date, state := range states {
		all = append(all, ops.Day{Date: date, State: state})
	}
	slices.SortFunc(all, func(a, b ops.Day) int { return a.Date.Compare(b.Date) })
	return all, nil
}

const oneDay = 24 * time.Hour

// unreadGranule is a granule whose day is known only from its name.
type unreadGranule struct {
	date    time.Time
	granule ledger.Granule
}

// mostUnread bounds the unread granules of a calendar: a spool that is fuller than
// this shows in the length of the queue.
const mostUnread = 2000

// unread returns the granules of a dataset that were not read, or could not be
// read, and have their day in their names.
func (w days) unread(ctx context.Context, dataset string) ([]unreadGranule, error) {
	var all []unreadGranule
	for _, state := range []ledger.State{ledger.Quarantined, ledger.Fetched} {
		rows, err := w.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, State: state, Unread: true, Limit: mostUnread})
		if err != nil {
			return nil, err
		}
		for _, g := range rows {
			if date, ok := fetch.DayInName(g.Name); ok {
				all = append(all, unreadGranule{date: date, granule: g})
			}
		}
	}
	return all, nil
}

// modes returns the modes of the products in a range of times, by granule and
// revision.
func (w days) modes(ctx context.Context, dataset string, from, to time.Time) (map[ops.GranuleID]string, error) {
	all, err := w.book.Publications(ctx, dataset, from, to)
	if err != nil {
		return nil, err
	}
	modes := make(map[ops.GranuleID]string, len(all))
	for _, p := range all {
		modes[ops.GranuleID{Name: p.Granule, Revision: p.Revision}] = toldOf(p).Mode
	}
	return modes, nil
}

// newestRows returns one row of each granule, of rows with the newest first: the
// newest, or the one before where the newest only makes an existing product
// again and is not done yet.
func newestRows(rows []ledger.Granule) []ledger.Granule {
	var all []ledger.Granule
	standing := map[string]int{} // index in all
	for _, g := range rows {
		at, ok := standing[g.Name]
		switch {
		case !ok:
			standing[g.Name] = len(all)
			all = append(all, g)
		case isAnew(all[at]) && g.Product.Path != "":
			all[at] = g
		}
	}
	return all
}

// isAnew reports whether g is a new revision of the same bytes that is not made
// yet.
func isAnew(g ledger.Granule) bool {
	return g.Cause != ledger.FromArchive && g.Product.Path == "" && g.State != ledger.Quarantined
}

// dayState returns the state of a day in the calendar, by one of its granules.
func dayState(g ledger.Granule, modes map[ops.GranuleID]string) ops.DayState {
	switch g.State {
	case ledger.Quarantined:
		if g.Absent {
			return "" // its granule has come under another name
		}
		return ops.DayQuarantined
	case ledger.Stored, ledger.Announced:
		if g.Absent {
			return ops.DayNoGranule
		}
		if g.Product.Observed == 0 {
			return ops.DayCloudedOut
		}
		if modes[ops.GranuleID{Name: g.Name, Revision: g.Revision}] == publish.Delayed {
			return ops.DayDelayed
		}
		return ops.DayNearRealTime
	}
	return ops.DayWaiting
}

// rank orders the states of several granules of a day: the one that most needs an
// operator is the highest.
func rank(s ops.DayState) int {
	return slices.Index([]ops.DayState{"", ops.DayMissing, ops.DayNoGranule, ops.DayCloudedOut, ops.DayDelayed, ops.DayNearRealTime, ops.DayWaiting, ops.DayQuarantined}, s)
}
