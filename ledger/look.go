package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// lookers is the number of calls that a look answers at a time: one that reads a
// year need not hold up one that reads a line.
const lookers = 2

// Look opens connections of their own to the file for those who only read, such as
// pages. They do not stand in line behind a walk through a table or a transaction,
// and see all that was committed before they asked. A call that would change the
// file fails. The caller closes the look before the ledger.
func (l *Ledger) Look(ctx context.Context) (*Ledger, error) {
	db, err := sql.Open("sqlite", dataSource(l.path)+"&_pragma=query_only(1)")
	if err != nil {
		return nil, fmt.Errorf("look into ledger %s: %w", l.path, err)
	}
	db.SetMaxOpenConns(lookers + 1) // one keeps the stamp
	db.SetMaxIdleConns(lookers + 1)
	look := &Ledger{db: prepare(db), path: l.path}
	if look.stamps, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("look into ledger %s: %w", l.path, err), look.Close())
	}
	return look, nil
}

// Stamp returns a number that is another one after each change of the file, by
// whomever: what was read after a stamp holds as long as the stamp is the same. Only a
// look has stamps.
func (l *Ledger) Stamp(ctx context.Context) (stamp int64, err error) {
	if l.stamps == nil {
		return 0, errors.New("only a look into the ledger has stamps")
	}
	// SQLite tells a connection whether another one has committed. This one changes nothing.
	if err := l.stamps.QueryRowContext(ctx, "PRAGMA data_version").Scan(&stamp); err != nil {
		return 0, fmt.Errorf("stamp of the ledger: %w", err)
	}
	return stamp, nil
}
