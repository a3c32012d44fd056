package ledger

import (
	"context"
	"database/sql"
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
	if err == nil {
		db.SetMaxOpenConns(lookers)
		db.SetMaxIdleConns(lookers)
		err = db.PingContext(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("look into ledger %s: %w", l.path, err)
	}
	return &Ledger{db: db, path: l.path}, nil
}
