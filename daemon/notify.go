package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lacuna/ledger"
)

// vitals are the signs of life of the stages, for the watchdog of the service
// manager. A stage that waits for work lives; one that is at work must show
// now and then that it gets on.
type vitals struct {
	now func() time.Time

	mu     sync.Mutex // guards all pulses
	pulses []*pulse
}

// pulse is the sign of life of one stage. A nil pulse is felt by nobody.
type pulse struct {
	vitals *vitals
	stage  string
	limit  time.Duration // longest silence at work
	last   time.Time     // sign of life while at work; zero: it waits
}

// pulse adds a stage, which waits at first. Of nil vitals it is nil.
func (v *vitals) pulse(stage string, limit time.Duration) *pulse {
	if v == nil {
		return nil
	}
	p := &pulse{vitals: v, stage: stage, limit: limit}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pulses = append(v.pulses, p)
	return p
}

// beat says that the stage is at work and gets on.
func (p *pulse) beat() {
	if p != nil {
		p.set(p.vitals.now())
	}
}

// rest says that the stage waits for work, or has ended.
func (p *pulse) rest() {
	if p != nil {
		p.set(time.Time{})
	}
}

// silent reports whether the stage is at work and has been silent for too long.
func (p *pulse) silent() bool {
	if p == nil {
		return false
	}
	now := p.vitals.now()
	p.vitals.mu.Lock()
	defer p.vitals.mu.Unlock()
	return !p.last.IsZero() && now.Sub(p.last) > p.limit
}

// name returns the name of the stage.
func (p *pulse) name() string {
	if p == nil {
		return "unwatched stage"
	}
	return p.stage
}

func (p *pulse) set(t time.Time) {
	p.vitals.mu.Lock()
	defer p.vitals.mu.Unlock()
	p.last = t
}

// hung names a stage that is at work and has been silent for too long; empty:
// all is well.
func (v *vitals) hung() string {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pulses {
		if !p.last.IsZero() && now.Sub(p.last) > p.limit {
			return p.stage
		}
	}
	return ""
}

// workSilence is the longest that a worker may be silent between the signs of
// life that it gives with every file read and every field filled, beyond the
// limit on decoding: a field of the largest basin takes half a minute.
const workSilence = 15 * time.Minute

// dispatchSilence is what a dispatcher may take beyond the limits of a delivery
// and the longest pause after failures: time for the ledger, which is a
// database on a disk that may be busy.
const dispatchSilence = 2 * time.Minute

// watch tells the service manager how the service is until the function that
// it returns is called.
func (d *Daemon) watch(ctx context.Context, book *ledger.Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	d.supervisor.Ready(d.statusLine(ctx, book))
	go func() {
		defer close(ended)
		d.supervisor.Watch(ctx, d.vitals.hung, func() string { return d.statusLine(ctx, book) })
	}()
	return func() {
		cancel()
		<-ended
	}
}

// statusLineLimit bounds how long the line waits for the ledger: a ping must
// not come late for the sake of a figure.
const statusLineLimit = 5 * time.Second

// statusLine is the state of the service in one line.
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
	for _, c := range counts {
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
