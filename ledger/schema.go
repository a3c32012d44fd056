package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"lacuna/ledger/layout"
)

// migrate brings db to the newest layout, one transaction a step. A file from
// a newer program is left as it is.
func migrate(ctx context.Context, db *sql.DB) error {
	var have int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("read layout version: %w", err)
	}
	steps := layout.Steps()
	if have > len(steps) {
		return fmt.Errorf("file has layout %d and this program knows up to %d; use the newer lacuna that wrote it", have, len(steps))
	}
	for i, step := range steps[have:] {
		if err := apply(ctx, db, step, have+i+1); err != nil {
			return fmt.Errorf("bring file to layout %d: %w", have+i+1, err)
		}
	}
	return nil
}

func apply(ctx context.Context, db *sql.DB, step string, version int) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return err
		}
		// The pragma takes no parameters; version is a number of ours.
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
}
