package daemon

import (
	"context"

	"lacuna/ledger"
	"lacuna/ops"
)

// attendants returns what runs beside the work: the alarms, the backfills
// that operators ask for and the journal of the ledger.
func (d *Daemon) attendants(ctx context.Context, book *ledger.Ledger) ([]func() error, error) {
	hook, err := ops.NewHook(d.cfg.Alarms, ops.HookParts{
		Status: d.statusOf(book), Memory: d.cfg.state().Alarms(), Now: d.parts.Now, Log: d.log,
		Machine: machine(),
	})
	if err != nil {
		return nil, err
	}
	return []func() error{
		func() error { return hook.Run(ctx) },
		func() error { return d.backfills(ctx, book) },
		func() error { return d.keepBooks(ctx, book) },
	}, nil
}
