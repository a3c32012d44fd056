package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lacuna/ledger/layout"
)

// Join opens a ledger beside the process that works on it, for commands that
// read and for requests of one transaction, such as QueueReplay: SQLite keeps
// such writers apart. It takes no lock, so the state of granules is not to be
// changed through it. It makes no file and changes no layout.
func Join(ctx context.Context, path string) (*Ledger, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("join ledger %s: %w", path, err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("join ledger: %w; it is made by the first lacuna run or once", err)
	}
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return nil, fmt.Errorf("join ledger %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	want := len(layout.Steps())
	have, err := settledLayout(ctx, db, path, want)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join ledger %s: %w", path, err), db.Close())
	}
	if have != want {
		return nil, errors.Join(fmt.Errorf("join ledger %s: file has layout %d and this program %d; start the daemon of this version once",
			path, have, want), db.Close())
	}
	return &Ledger{db: prepare(db), path: path}, nil
}

// settledLayout returns the layout of the file. A process that has just begun
// to work on it may be laying it out still, step by step; it is waited for.
func settledLayout(ctx context.Context, db *sql.DB, path string, want int) (int, error) {
	const patience, pause = 10 * time.Second, 20 * time.Millisecond
	for began := time.Now(); ; {
		var have int
		if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
			return 0, err
		}
		if _, working := Holder(path); have >= want || !working || time.Since(began) > patience {
			return have, nil
		}
		select {
		case <-ctx.Done():
			return have, ctx.Err()
		case <-time.After(pause):
		}
	}
}
