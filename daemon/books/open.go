package books

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/publish"
)

// Rebuilt counts the findings of a rebuilding.
type Rebuilt struct {
	Away     string `json:"away,omitempty"` // path of the damaged ledger; empty: there was none
	Granules int    `json:"granules"`       // restored revisions
	Products int    `json:"products"`       // restored revisions with a product
	SetAside int    `json:"set_aside"`      // restored revisions in quarantine
	Waiting  int    `json:"waiting"`        // restored revisions that are still to be filled
	Lost     int    `json:"lost"`           // revisions of the journal without a file: the archives give them again
	Orphans  int    `json:"orphans"`        // files in the spool that no record mentions
}

// Rebuild moves the ledger away and makes another from the journal, the spool,
// the quarantine and the products. No daemon may be running.
func (k Keeper) Rebuild(ctx context.Context) (Rebuilt, error) {
	if holder, running := ledger.Holder(k.State.Ledger()); running {
		return Rebuilt{}, fmt.Errorf("rebuild ledger: %w by %s; stop it first", ledger.ErrLocked, holder)
	}
	book, done, err := k.rebuild(ctx)
	if err != nil {
		return done, err
	}
	return done, book.Close()
}

// Open opens the ledger. A damaged one is rebuilt from the disk, one that lacks
// entries of its journal is completed, and the log says so.
func (k Keeper) Open(ctx context.Context) (*ledger.Ledger, error) {
	path := k.State.Ledger()
	book, err := ledger.Open(ctx, path)
	if err == nil && Suspected(path) {
		if err = book.Check(ctx); err != nil {
			err = errors.Join(err, book.Close())
		}
	}
	if errors.Is(err, ledger.ErrDamaged) {
		k.Log.Warn("THE LEDGER IS DAMAGED and is made anew from what is on the disk", "err", err)
		book, done, err := k.rebuild(ctx)
		k.logRebuilt(done, err)
		return book, err
	}
	if err != nil {
		return nil, err
	}
	err = k.own(ctx, book)
	if err == nil {
		err = k.complete(ctx, book)
	}
	if err != nil {
		return nil, errors.Join(err, book.Close())
	}
	return book, state.Remove(SuspectPath(path))
}

// complete restores the rows that a ledger has lost, as its journal and the
// products show.
func (k Keeper) complete(ctx context.Context, book *ledger.Ledger) error {
	behind, err := book.Behind(ctx)
	if err != nil {
		return err
	}
	if !behind {
		fresh, err := book.Counts(ctx)
		if err != nil || len(fresh) > 0 || !k.hasProducts() {
			return err
		}
	}
	k.Log.Warn("THE LEDGER HAS LOST WHAT IT HAD and is completed from what is on the disk")
	done, err := k.restoreAll(ctx, book)
	k.logRebuilt(done, err)
	return err
}

func (k Keeper) logRebuilt(done Rebuilt, err error) {
	if err != nil {
		return // the caller reports it
	}
	k.Log.Warn("ledger made anew", "moved_to", done.Away, "granules", done.Granules, "products", done.Products,
		"set_aside", done.SetAside, "to_fill", done.Waiting, "lost", done.Lost, "orphans", done.Orphans)
}

// rebuild moves the ledger away and fills a new one.
func (k Keeper) rebuild(ctx context.Context) (*ledger.Ledger, Rebuilt, error) {
	path := k.State.Ledger()
	away := ""
	if _, err := os.Stat(path); err == nil {
		if away, err = ledger.MoveAway(path, k.Now()); err != nil {
			return nil, Rebuilt{}, err
		}
	}
	book, err := ledger.Open(ctx, path)
	if err != nil {
		return nil, Rebuilt{Away: away}, err
	}
	if err := k.own(ctx, book); err != nil {
		return nil, Rebuilt{Away: away}, errors.Join(err, book.Close())
	}
	done, err := k.restoreAll(ctx, book)
	done.Away = away
	if err == nil {
		err = state.Remove(SuspectPath(path))
	}
	if err != nil {
		return nil, done, errors.Join(err, book.Close())
	}
	return book, done, nil
}

// restoreAll restores every revision found on the disk. An error leaves the
// journal as it is, so that the next start tries again.
func (k Keeper) restoreAll(ctx context.Context, book *ledger.Ledger) (Rebuilt, error) {
	var done Rebuilt
	if _, err := k.Store.Owner(ctx); errors.Is(err, publish.ErrAway) { // else every product would count as lost
		return done, fmt.Errorf("rebuild ledger: products_dir %w", err)
	}
	s := k.Salvage()
	if err := s.collect(ctx); err != nil {
		return done, fmt.Errorf("rebuild ledger: %w", err)
	}
	for dataset, g := range s.grids {
		if err := book.SetGrid(ctx, dataset, g); err != nil {
			return done, err
		}
	}
	for _, f := range s.Found() {
		added, err := book.Restore(ctx, f)
		if err != nil {
			return done, err
		}
		if !added {
			continue
		}
		done.Granules++
		switch f.State {
		case ledger.Stored:
			done.Products++
		case ledger.Quarantined:
			done.SetAside++
		default:
			done.Waiting++
		}
	}
	if err := book.RecallVotes(ctx); err != nil {
		return done, err
	}
	done.Lost, done.Orphans = s.lost, s.orphans()
	return done, book.BeginJournal(ctx, k.Now())
}

// SuspectPath returns the file that marks a ledger in which damage was met while
// it was in use: the next opening checks it whole.
func SuspectPath(path string) string { return path + ".suspect" }

// Suspected reports whether a ledger has that mark.
func Suspected(path string) bool {
	_, err := os.Stat(SuspectPath(path))
	return err == nil
}

// journalPause is how often the journal is brought up to date. At worst so much
// is lost with a ledger, and found again on the disk and the archives.
const journalPause = 10 * time.Second

// Keep writes the journal until ctx is cancelled. First it checks the whole
// ledger, beside the work: damage ends the service, and the next start rebuilds
// the ledger.
func (k Keeper) Keep(ctx context.Context, book *ledger.Ledger) error {
	tick := time.NewTicker(journalPause)
	defer tick.Stop()
	err := book.Check(ctx)
	for {
		if errors.Is(err, ledger.ErrDamaged) {
			return errors.Join(err, os.WriteFile(SuspectPath(k.State.Ledger()), nil, 0o644))
		}
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("journal not written", "err", err, "retry_in", journalPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err = book.WriteJournal(ctx)
	}
}

// closeLimit is how long a stop waits for the journal: the entries of the last
// seconds take no time, and any that are left follow after the next start.
const closeLimit = 5 * time.Second

// Close brings the journal up to date and closes the ledger.
func (k Keeper) Close(ctx context.Context, book *ledger.Ledger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err := errors.Join(book.WriteJournal(ctx), book.Close()); err != nil {
		k.Log.Warn("ledger not closed well", "err", err)
	}
}

// sortFound puts revisions into the order in which they were made, so that sinks
// get them in that order.
func sortFound(all []ledger.Found) {
	slices.SortStableFunc(all, func(a, b ledger.Found) int {
		if a.Dataset == b.Dataset && a.Name == b.Name {
			return a.Revision - b.Revision
		}
		return a.Recorded.Compare(b.Recorded)
	})
}
