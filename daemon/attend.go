package daemon

import (
	"context"

	"lacuna/daemon/supervise"
	"lacuna/ledger"
	"lacuna/ops"
)

// attendants returns the stages beside the work: the alarms, the backfills that
// operators ask for and the journal of the ledger.
func (d *Daemon) attendants(book, look *ledger.Ledger) ([]supervise.Stage, error) {
	hook, err := ops.NewHook(d.cfg.Alarms, ops.HookParts{
		Status: d.pages().Status(look), Memory: d.cfg.state().Alarms(), Now: d.parts.Now, Log: d.log,
		Machine: machine(),
	})
	if err != nil {
		return nil, err
	}
	return []supervise.Stage{
		supervise.Lasting("alarms", nil, hook.Run),
		supervise.Lasting("backfills", nil, func(ctx context.Context) error { return d.Station().Backfills(ctx, book, d.wake) }),
		supervise.Lasting("journal of the ledger", nil, func(ctx context.Context) error { return d.books().Keep(ctx, book) }),
	}, nil
}

// wake has the worker of a dataset look for work at once, rather than at its next
// tick.
func (d *Daemon) wake(dataset string) {
	select {
	case d.wakes[dataset] <- struct{}{}:
	default: // it is about to look anyway
	}
}
