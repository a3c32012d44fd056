package daemon

import (
	"context"
	"fmt"
	"time"

	"lacuna/ledger"
)

// workSilence is the longest time between two beats of a worker, beyond the limit
// on decoding. It beats with every file read and as fields are filled: a field of
// the largest basin takes half a minute.
const workSilence = 15 * time.Minute

// watch sends the status line and the watchdog's pings to the service manager
// until stop is called.
func (d *Daemon) watch(ctx context.Context, book *ledger.Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	d.supervisor.Ready(d.statusLine(ctx, book))
	go func() {
		defer close(ended)
		d.supervisor.Watch(ctx, d.heartbeats.Hung, func() string { return d.statusLine(ctx, book) })
	}()
	return func() {
		cancel()
		<-ended
	}
}

// statusLineLimit bounds the wait for the ledger: a ping must not be late because
// of a figure in the line.
const statusLineLimit = 5 * time.Second

// statusLine returns the state of the service in one line.
func (d *Daemon) statusLine(ctx context.Context, book *ledger.Ledger) string {
	ctx, cancel := context.WithTimeout(ctx, statusLineLimit)
	defer cancel()
	counts, err := book.Counts(ctx)
	if err != nil {
		return "the ledger does not answer"
	}
	backlogs, err := book.Backlogs(ctx)
	if err != nil {
		return "the ledger does not answer"
	}
	queued, done, aside, waiting := 0, 0, 0, 0
	for _, c := range d.ofDatasets(counts) {
		switch c.State {
		case ledger.Fetched, ledger.Filled:
			queued += c.Granules
		case ledger.Stored, ledger.Announced:
			done += c.Granules
		case ledger.Quarantined:
			aside += c.Granules
		}
	}
	for _, b := range backlogs {
		waiting += b.Waiting
	}
	return fmt.Sprintf("%d datasets: %d products, %d granules to fill, %d set aside; %d deliveries wait",
		len(d.cfg.Datasets), done, queued, aside, waiting)
}
