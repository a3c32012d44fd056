package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/internal/durable"
	"lacuna/ledger/layout"
)

// Backup writes a snapshot of the ledger to a file while others work on it:
// they do not wait, and each of their transactions is in the copy wholly or not
// at all. The copy has been checked and is on the disk when Backup returns nil;
// until then file is unchanged. It is compact, and can replace the ledger as it
// is.
func (l *Ledger) Backup(ctx context.Context, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back ledger up to %s: %w", file, err)
		}
	}()
	file, err = filepath.Abs(file)
	if err != nil {
		return err
	}
	if file == l.path {
		return errors.New("that is the ledger itself; give another file")
	}
	staging, err := os.MkdirTemp(filepath.Dir(file), ".ledger-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	staged := filepath.Join(staging, filepath.Base(file))
	if err := l.copyTo(ctx, staged); err != nil {
		return err
	}
	if err := durable.Sync(staged); err != nil {
		return err
	}
	if err := os.Rename(staged, file); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(file))
}

// FormerLayout returns where a ledger of an older layout is kept when it is
// brought to the newest: with it, an older program can be gone back to.
func FormerLayout(path string, layout int) string { return fmt.Sprintf("%s.layout-%d", path, layout) }

// keepFormer copies a ledger of an older layout before it is changed.
func (l *Ledger) keepFormer(ctx context.Context) error {
	var have int
	if err := l.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("read layout version: %w", err)
	}
	if have == 0 || have >= len(layout.Steps()) {
		return nil
	}
	return l.Backup(ctx, FormerLayout(l.path, have))
}

// copyTo writes a copy and checks it, on connections of its own, so that nobody
// waits for it.
func (l *Ledger) copyTo(ctx context.Context, path string) error {
	from, err := sql.Open("sqlite", dataSource(l.path))
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := from.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return damage(err)
	}
	to, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return err
	}
	// Closing brings the copy's own log into it, so that it is one file.
	return errors.Join(check(ctx, to), to.Close())
}

// Size returns the bytes of a ledger on the disk, with its write-ahead log; 0
// where there is no ledger.
func Size(path string) int64 {
	total := int64(0)
	for _, ending := range []string{"", "-wal"} {
		if info, err := os.Stat(path + ending); err == nil {
			total += info.Size()
		}
	}
	return total
}
