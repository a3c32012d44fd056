package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// Identity tells a state from every other. It lasts through a rebuilding: it
// is in the ledger and in a file beside it.
type Identity struct {
	State string    `json:"state"`
	Epoch int       `json:"epoch"` // raised whenever the state takes over what was another's
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"` // it took over; empty with the first
}

// identityPath returns the file of the identity beside a ledger. Its name does
// not begin with that of the ledger, so that it stays where that is removed
// with all that belongs to it.
func identityPath(path string) string { return filepath.Join(filepath.Dir(path), "identity.json") }

// Identity returns who the state is: what the ledger says, or where it was
// made anew the file beside it, or else fresh, which it is from then on.
func (l *Ledger) Identity(ctx context.Context, fresh Identity) (Identity, error) {
	known, err := query(ctx, l.db, func(row scanner) (i Identity, err error) {
		return i, row.Scan(&i.State, &i.Epoch, (*moment)(&i.Since), &i.Why)
	}, "SELECT state, epoch, since, why FROM identity WHERE epoch = (SELECT max(epoch) FROM identity)")
	if err != nil {
		return Identity{}, fmt.Errorf("look up identity: %w", err)
	}
	beside, err := loadIdentity(l.path)
	if err != nil {
		return Identity{}, fmt.Errorf("look up identity: %w", err)
	}
	switch {
	case len(known) == 0 && beside.State == "":
		return fresh, l.SetIdentity(ctx, fresh)
	case len(known) == 0, beside.State == known[0].State && beside.Epoch > known[0].Epoch: // the ledger is the older copy
		return beside, l.SetIdentity(ctx, beside)
	case beside.Epoch != known[0].Epoch || beside.State != known[0].State:
		return known[0], saveIdentity(l.path, known[0])
	}
	return known[0], nil
}

// ReadIdentity returns who the state of a ledger is, by the file beside it,
// without opening it; the zero Identity where there is none yet.
func ReadIdentity(path string) (Identity, error) { return loadIdentity(path) }

// SetIdentity records who the state is from an epoch on: in the ledger, in the
// journal and in the file beside it.
func (l *Ledger) SetIdentity(ctx context.Context, i Identity) error {
	if i.State == "" || i.Epoch < 1 {
		return fmt.Errorf("record identity: %+v names no state and epoch", i)
	}
	_, err := l.db.ExecContext(ctx, `INSERT INTO identity (epoch, state, since, why) VALUES (?, ?, ?, ?)
		ON CONFLICT (epoch) DO UPDATE SET state = excluded.state, since = excluded.since, why = excluded.why`,
		i.Epoch, i.State, text(i.Since), i.Why)
	if err == nil {
		err = saveIdentity(l.path, i)
	}
	if err == nil {
		// A line without a dataset: whoever rebuilds from the journal passes over it.
		err = appendFacts(l.path+journalEnding, []Fact{{Recorded: i.Since, Identity: &i}})
	}
	if err != nil {
		return fmt.Errorf("record identity: %w", err)
	}
	return nil
}

func loadIdentity(path string) (i Identity, err error) {
	content, err := os.ReadFile(identityPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, nil
	}
	if err == nil && json.Unmarshal(content, &i) != nil {
		return Identity{}, nil // the ledger has it too
	}
	return i, err
}

func saveIdentity(path string, i Identity) error {
	content, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return renameio.WriteFile(identityPath(path), append(content, '\n'), 0o644)
}

// Compared reports whether a sink was compared with the ledger as a whole in
// an epoch. Then what has changed there since LastStored is all that can have
// been said behind the ledger's back.
func (l *Ledger) Compared(ctx context.Context, sink string, epoch int) (bool, error) {
	var n int
	err := l.db.QueryRowContext(ctx, "SELECT count(*) FROM compared WHERE sink = ? AND epoch = ?", sink, epoch).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look up comparison with %s: %w", sink, err)
	}
	return n > 0, nil
}

// SetCompared records that a sink was compared with the ledger.
func (l *Ledger) SetCompared(ctx context.Context, sink string, epoch int, now time.Time) error {
	_, err := l.db.ExecContext(ctx, `INSERT INTO compared (sink, epoch, at) VALUES (?, ?, ?)
		ON CONFLICT (sink) DO UPDATE SET epoch = excluded.epoch, at = excluded.at`, sink, epoch, text(now))
	if err != nil {
		return fmt.Errorf("record comparison with %s: %w", sink, err)
	}
	return nil
}

// LastStored returns when the latest product was stored that the ledger knows
// of; zero: none was. Of a ledger that was restored from a copy it is before
// the copy was made, and so before all that it does not know.
func (l *Ledger) LastStored(ctx context.Context) (at time.Time, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT coalesce(max(stored), '') FROM publication").Scan((*moment)(&at))
	if err != nil {
		return time.Time{}, fmt.Errorf("look up the latest product: %w", err)
	}
	return at, nil
}
