package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Found is a revision of a granule as the disk shows it.
type Found struct {
	Fact
	State     State     // Fetched, Quarantined or Stored
	Reason    string    // with Quarantined
	Retracted string    // with Stored: reason of the retraction; empty: not retracted
	Sinks     []string  // with Stored: sinks of the delivery
	At        time.Time // time of the rebuild
}

// restored stands in the history of a granule that a rebuild found on the disk.
const restored State = "restored"

// Restore adds a revision that was found on the disk, or advances the recorded
// one to the state that the disk shows; added is false where the ledger knew
// all of it. It is safe to deliver the product again, because sinks are
// idempotent. A restored revision is not scored.
func (l *Ledger) Restore(ctx context.Context, f Found) (added bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		added, err = restore(ctx, tx, f)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("restore %s revision %d: %w", f.Name, f.Revision, err)
	}
	return added, nil
}

func restore(ctx context.Context, tx *sql.Tx, f Found) (bool, error) {
	there, err := query(ctx, tx, scanGranule, "SELECT "+granuleColumns+" FROM granule WHERE dataset = ? AND name = ? AND revision = ?",
		f.Dataset, f.Name, f.Revision)
	if err != nil {
		return false, err
	}
	var g Granule
	switch {
	case len(there) == 0:
		if g, err = restoreRow(ctx, tx, f); err != nil {
			return false, err
		}
	case (there[0].State == Fetched || there[0].State == Filled) && f.State == Stored:
		g = there[0]
	default:
		return false, nil
	}
	switch f.State {
	case Quarantined:
		_, err = step(ctx, tx, g, move{to: Quarantined, reason: f.Reason, at: f.At})
	case Stored:
		err = restoreProduct(ctx, tx, g, f)
	}
	if err != nil {
		return false, err
	}
	return true, addHistory(ctx, tx, g.ID, Event{State: restored, At: f.At, Note: "from what was on the disk, because the ledger was lost or damaged"})
}

// restoreRow adds the row of a revision, in state Fetched.
func restoreRow(ctx context.Context, tx *sql.Tx, f Found) (Granule, error) {
	o := Object{Dataset: f.Dataset, Name: f.Name, Size: f.Size, ModTime: f.ModTime, ETag: f.ETag, MD5: f.MD5}
	g := Granule{
		Arrival: Arrival{Object: o, SHA256: f.SHA256, SpoolPath: f.SpoolPath, Lane: f.Lane}, Revision: f.Revision, Cause: f.Cause, Why: f.Why, Absent: f.Absent,
	}
	g, err := insert(ctx, tx, g, f.Recorded) // the time that its product carries
	if err != nil {
		return Granule{}, err
	}
	if cmp.Or(f.Cause, FromArchive) == FromArchive && !f.Absent {
		if err := setObject(ctx, tx, o, g.ID); err != nil {
			return Granule{}, err
		}
	}
	if len(f.Times) > 0 {
		if err := setTimes(ctx, tx, g.ID, f.Times); err != nil {
			return Granule{}, err
		}
	}
	return step(ctx, tx, g, move{to: Fetched, at: f.Recorded})
}

// restoreProduct advances a granule to the product on the disk.
func restoreProduct(ctx context.Context, tx *sql.Tx, g Granule, f Found) error {
	p := f.Publication
	g, err := step(ctx, tx, g, move{to: Filled, at: p.Stored})
	if err != nil {
		return err
	}
	err = storeAndQueue(ctx, tx, g.ID, Outgoing{
		Product: p.Product, Sinks: f.Sinks,
		Publication: Publication{Time: p.Time, File: p.File, Size: p.Size, Body: string(p.Body)},
	}, p.Stored)
	if err != nil {
		return err
	}
	if f.Retracted != "" {
		rows, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p WHERE granule = ?`, g.ID)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Why = f.Retracted
			if err := retract(ctx, tx, row, f.Sinks, f.At); err != nil {
				return err
			}
		}
	}
	if len(f.Sinks) > 0 {
		return nil
	}
	g, err = byID(ctx, tx, g.ID)
	if err == nil {
		_, err = step(ctx, tx, g, move{to: Announced, at: f.At}) // no sink is left
	}
	return err
}

// BeginJournal sets the journal of a rebuilt ledger aside, for its rows have
// other numbers, and writes a new one from the ledger. Lines of the old one
// that could not be restored stay there.
func (l *Ledger) BeginJournal(ctx context.Context, now time.Time) error {
	old := l.path + journalEnding
	err := os.Rename(old, old+"-"+now.UTC().Format(damagedLayout))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set journal aside: %w", err)
	}
	if err := os.Remove(l.path + cursorEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set journal aside: %w", err)
	}
	return l.WriteJournal(ctx)
}
