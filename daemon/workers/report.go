package workers

import (
	"context"
	"sync"
	"time"

	"lacuna/daemon/jobs"
)

// Report is what a worker says of itself.
type Report struct {
	Worker  string    `json:"worker"`
	Started time.Time `json:"started"`
	Dataset string    `json:"dataset,omitempty"` // of the job in hand; empty: it waits
	Granule string    `json:"granule,omitempty"`
	Job     string    `json:"in_hand,omitempty"`
	Since   time.Time `json:"since,omitzero"`  // when the job in hand was begun
	Phase   string    `json:"phase,omitempty"` // of a training in hand
	Step    int       `json:"step,omitempty"`  // of so many Steps of the job, or of its phase
	Steps   int       `json:"steps,omitempty"`
	Share   float64   `json:"share"` // of them that is done, 0..1
	Done    int       `json:"done"`
	Failed  int       `json:"failed"`
	Seconds float64   `json:"seconds"`          // spent on jobs that were done
	Trains  bool      `json:"trains,omitempty"` // it takes trainings and no fills
	Queues  []int32   `json:"queues,omitempty"` // of one that trains: its partitions
	Left    bool      `json:"left,omitempty"`
}

// reportPause is how often a worker reports, and reportsMissed after how many of them
// it counts as gone.
const (
	reportPause   = 5 * time.Second
	reportsMissed = 6
)

type reporter struct {
	mu    sync.Mutex
	state Report
}

func (r *reporter) begin(id string, m jobs.Message, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Job, r.state.Dataset, r.state.Granule, r.state.Since, r.state.Share = id, m.Dataset, m.Granule, now, 0
}

func (r *reporter) progress(phase string, done, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Phase, r.state.Step, r.state.Steps = phase, done, total
	if total > 0 {
		r.state.Share = float64(done) / float64(total)
	}
}

func (r *reporter) end(result jobs.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = Report{Worker: r.state.Worker, Started: r.state.Started, Done: r.state.Done, Failed: r.state.Failed, Seconds: r.state.Seconds}
	switch {
	case err == nil && result.Failed == "":
		r.state.Done++
		r.state.Seconds += result.Seconds
	case err == nil:
		r.state.Failed++
	}
}

func (r *reporter) now() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// keepReporting reports until ctx is cancelled.
func (w *Worker) keepReporting(ctx context.Context) {
	tick := time.NewTicker(reportPause)
	defer tick.Stop()
	for {
		now := w.report.now()
		if w.Trains {
			now.Trains, now.Queues = true, w.queue.partitions()
		}
		if err := w.produce(ctx, w.Config.results(), "worker", now); err != nil && ctx.Err() == nil {
			w.Log.Warn("the coordinator cannot be told how this worker is", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// leave reports that the worker ends. It waits for a moment only: a record that was
// sent into a network that has gone is not given up by the client before it is closed.
func (w *Worker) leave(ctx context.Context) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	last := w.report.now()
	last.Left = true
	told := make(chan error, 1)
	go func() { told <- w.produce(ctx, w.Config.results(), "worker", last) }()
	select {
	case err := <-told:
		if err != nil {
			w.Log.Debug("the coordinator was not told that this worker ends", "err", err)
		}
	case <-ctx.Done():
		w.Log.Debug("the coordinator was not told that this worker ends", "err", ctx.Err())
	}
}
