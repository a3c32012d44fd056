package ops

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Fleet are the workers that fill the granules of a daemon on other machines.
type Fleet struct {
	Workers         []FleetWorker `json:"workers"`
	UnderWay        int           `json:"under_way"`        // jobs that were sent and have no result
	Trainings       int           `json:"trainings"`        // those of them that are trainings
	WaitingLive     int64         `json:"waiting_live"`     // jobs of the live lane that no worker has finished
	WaitingBackfill int64         `json:"waiting_backfill"` // and of the backfill
	Counted         time.Time     `json:"counted,omitzero"` // when those were counted; zero: not yet
	Done            int           `json:"done"`             // jobs since the daemon started
	Failed          int           `json:"failed"`           // those that could not be done
	Dead            int           `json:"dead"`             // those of them that were given up after several tries
}

// FleetWorker is one of them.
type FleetWorker struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Dataset string    `json:"dataset,omitempty"` // of the job in hand; empty: it waits for one
	Granule string    `json:"granule,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the job in hand was begun
	Share   float64   `json:"share"`          // of the job in hand that is done, 0..1
	Done    int       `json:"done"`           // jobs since it started
	Failed  int       `json:"failed"`
	Trains  bool      `json:"trains,omitempty"` // it takes trainings and no fills
	Seconds float64   `json:"seconds_each"`     // mean time of a job; 0: not known
}

// fleetAlarms returns the alarms about workers.
func fleetAlarms(f *Fleet) (all []Alarm) {
	if f == nil {
		return nil
	}
	if f.UnderWay > 0 && len(f.Workers) == 0 {
		all = append(all, Alarm{
			Name: "workers", Summary: fmt.Sprintf("%d jobs wait, and no worker has reported", f.UnderWay),
			Remedy: "start some: 'systemctl start lacuna-worker@1', or 'lacuna worker --config FILE'; the log of one that runs says why it cannot reach the brokers",
		})
	}
	if f.Trainings > 0 && !slices.ContainsFunc(f.Workers, func(w FleetWorker) bool { return w.Trains }) {
		all = append(all, Alarm{
			Name: "trainers", Summary: fmt.Sprintf("%d trainings wait, and no worker that trains has reported", f.Trainings),
			Remedy: "start one on a machine with a GPU, with workers.train in its configuration; or take workers.train out of the daemon's, which then trains itself",
		})
	}
	if f.Dead > 0 {
		all = append(all, Alarm{
			Name: "dead", Summary: fmt.Sprintf("%d jobs were given up since the daemon started", f.Dead),
			Remedy: "the topic of dead letters has their reasons; their granules were filled otherwise or are in quarantine, see 'lacuna quarantine list'",
		})
	}
	return all
}

// fleetCollector shows a Fleet as metrics.
type fleetCollector struct{ workers, busy, waiting, underWay, jobs *prometheus.Desc }

func newFleetCollector(desc func(name, help string, labels ...string) *prometheus.Desc) fleetCollector {
	return fleetCollector{
		workers:  desc("workers", "Workers that report to this coordinator."),
		busy:     desc("workers_busy", "Those of them that have a job in hand."),
		waiting:  desc("jobs_waiting", "Jobs of a lane that no worker has finished: the lag of their consumer group, to scale workers by.", "lane"),
		underWay: desc("jobs_under_way", "Jobs that this coordinator has sent and that have no result yet."),
		jobs:     desc("jobs_total", "Jobs with a result since the start: done, failed, or dead where they were given up.", "outcome"),
	}
}

func (c fleetCollector) all() []*prometheus.Desc {
	return []*prometheus.Desc{c.workers, c.busy, c.waiting, c.underWay, c.jobs}
}

func (c fleetCollector) collect(gauge func(*prometheus.Desc, float64, ...string), counter func(*prometheus.Desc, float64, ...string), f *Fleet) {
	if f == nil {
		return
	}
	busy := 0
	for _, w := range f.Workers {
		if w.Granule != "" {
			busy++
		}
	}
	gauge(c.workers, float64(len(f.Workers)))
	gauge(c.busy, float64(busy))
	if !f.Counted.IsZero() {
		gauge(c.waiting, float64(f.WaitingLive), "live")
		gauge(c.waiting, float64(f.WaitingBackfill), "backfill")
	}
	gauge(c.waiting, float64(f.Trainings), "train")
	gauge(c.underWay, float64(f.UnderWay))
	counter(c.jobs, float64(f.Done), "done")
	counter(c.jobs, float64(f.Failed-f.Dead), "failed")
	counter(c.jobs, float64(f.Dead), "dead")
}
