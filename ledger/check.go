package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrDamaged says that the file is not a consistent database.
var ErrDamaged = errors.New("file is damaged")

// openCheckLimit bounds the check for damage at an opening. A small ledger is
// checked in that time; of a larger one only the beginning, and Check reads the
// rest beside the work. A start may take a second in all.
const openCheckLimit = 250 * time.Millisecond

// Check reads the whole file and reports inconsistencies as ErrDamaged. It has
// a connection of its own, so nobody waits for it.
func (l *Ledger) Check(ctx context.Context) error {
	db, err := sql.Open("sqlite", dataSource(l.path))
	if err != nil {
		return fmt.Errorf("check ledger %s: %w", l.path, err)
	}
	defer db.Close()
	if err := check(ctx, db); err != nil {
		return fmt.Errorf("check ledger %s: %w", l.path, err)
	}
	return nil
}

// checkBriefly is check, cut off after openCheckLimit.
func checkBriefly(ctx context.Context, db *sql.DB) error {
	brief, cancel := context.WithTimeout(ctx, openCheckLimit)
	defer cancel()
	err := check(brief, db)
	if brief.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrDamaged) {
		return nil // nothing found so far
	}
	return err
}

// check reads the file and reports inconsistencies.
func check(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(5)") // five faults tell as much as five thousand
	if err != nil {
		return damage(err)
	}
	defer rows.Close()
	var faults []string
	for rows.Next() {
		var fault string
		if err := rows.Scan(&fault); err != nil {
			return damage(err)
		}
		if fault != "ok" {
			faults = append(faults, fault)
		}
	}
	if err := rows.Err(); err != nil {
		return damage(err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(faults, ", "))
	}
	return nil
}

// damage marks the errors of SQLite about an unreadable file as ErrDamaged.
func damage(err error) error {
	const corrupt, notADatabase = 11, 26 // SQLITE_CORRUPT, SQLITE_NOTADB; extended codes have them in the low byte
	var coded interface{ Code() int }
	if errors.As(err, &coded) && (coded.Code()&0xff == corrupt || coded.Code()&0xff == notADatabase) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
