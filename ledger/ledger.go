package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"lacuna/internal/durable"

	_ "modernc.org/sqlite" // the driver that sql.Open is asked for
)

// Ledger is an open ledger file. It is safe for concurrent use; calls take
// turns.
type Ledger struct {
	db     *prepared // one connection: transactions never meet
	path   string
	lock   *lock
	ends   []func() error // called by Close
	stamps *sql.Conn      // of a look: the connection that says whether the file has changed
}

// Open opens the ledger at path, made if absent, brings it to the newest
// layout and checks it. Where another process has it open, the error wraps
// ErrLocked and names that process.
func Open(ctx context.Context, path string) (*Ledger, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	if err := durable.MakeFolders(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make folder of ledger: %w", err)
	}
	held, err := takeLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	l := &Ledger{path: path, lock: held}
	if err := l.open(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), l.Close())
	}
	return l, nil
}

// AtClose adds a function that Close calls, such as one that releases another
// lock of the same process.
func (l *Ledger) AtClose(end func() error) { l.ends = append(l.ends, end) }

// Close releases the file and its lock.
func (l *Ledger) Close() error {
	var err error
	if l.stamps != nil {
		err = l.stamps.Close()
	}
	if l.db != nil {
		err = errors.Join(err, l.db.Close())
	}
	for _, end := range l.ends {
		err = errors.Join(err, end())
	}
	l.ends = nil
	return errors.Join(err, l.lock.release())
}

func (l *Ledger) open(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return err
	}
	l.db = prepare(db)
	db.SetMaxOpenConns(1)
	if err := checkBriefly(ctx, db); err != nil {
		return fmt.Errorf("%w; put a backup in its place, or move it away to begin anew from the archives", err)
	}
	if err := l.keepFormer(ctx); err != nil {
		return err
	}
	return migrate(ctx, db)
}

// dataSource names the file and the settings of its connection.
//
// synchronous(FULL): with less, a power cut takes back steps that were
// reported as done, and a product would be made again under a revision that
// the world has seen. busy_timeout covers people who look into the file.
// cache_size: 512 KiB a connection instead of 2 MiB. The kernel has the pages
// too, and SQLite's allocator rounds each of its own up to 8 KiB, so that four
// connections held 16 MiB after an hour of granules and grew until then.
func dataSource(path string) string {
	pragmas := url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "cache_size(-512)"},
		"_txlock": {"immediate"},
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
}

// transact runs work in one transaction, which is on the disk when transact
// returns nil, and has no effect where it returns an error.
func transact(ctx context.Context, db beginner, work func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback() // the first error counts; uncommitted work is undone at the next opening at the latest
		return err
	}
	return tx.Commit()
}
