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

	"lacuna/internal/durable"
)

// Identity tells a state from every other. It lasts through a rebuilding: it
// is in the ledger and in a file beside it.
type Identity struct {
	State string    `json:"state"`
	Epoch int       `json:"epoch"` // raised at every takeover
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"` // reason of the takeover; empty in the first epoch
}

// identityPath returns the file of the identity beside a ledger. Its name does
// not begin with the name of the ledger, so that removing ledger.db* leaves it.
func identityPath(path string) string { return filepath.Join(filepath.Dir(path), "identity.json") }

// Identity returns the identity of the state: from the ledger, or after a
// rebuild from the file beside it, or else fresh, which it keeps from then on.
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

// ReadIdentity returns the identity from the file beside a ledger, without
// opening the ledger; the zero Identity where there is none yet.
func ReadIdentity(path string) (Identity, error) { return loadIdentity(path) }

// SetIdentity records the identity of the state: in the ledger, in the journal
// and in the file beside it.
func (l *Ledger) SetIdentity(ctx context.Context, i Identity) error {
	if i.State == "" || i.Epoch < 1 {
		return fmt.Errorf("record identity: %+v lacks a state or an epoch", i)
	}
	_, err := l.db.ExecContext(ctx, `INSERT INTO identity (epoch, state, since, why) VALUES (?, ?, ?, ?)
		ON CONFLICT (epoch) DO UPDATE SET state = excluded.state, since = excluded.since, why = excluded.why`,
		i.Epoch, i.State, text(i.Since), i.Why)
	if err == nil {
		err = saveIdentity(l.path, i)
	}
	if err == nil {
		// A line without a dataset: a rebuild from the journal skips it.
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
	return durable.WriteFile(identityPath(path), append(content, '\n'), 0o644)
}

// Compared reports whether all of a sink was compared with the ledger in an
// epoch. If so, only changes there since LastStored can be unknown to the
// ledger.
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

// LastStored returns the time at which the latest product was stored; zero:
// none was. In a ledger restored from a backup it lies before the backup, and
// so before everything that the ledger does not know.
func (l *Ledger) LastStored(ctx context.Context) (at time.Time, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT coalesce(max(stored), '') FROM publication").Scan((*moment)(&at))
	if err != nil {
		return time.Time{}, fmt.Errorf("look up the latest product: %w", err)
	}
	return at, nil
}
