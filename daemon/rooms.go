package daemon

import (
	"context"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/daemon/pages"
	"lacuna/daemon/retrain"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/infer"
)

// byModel reports whether a model may fill a dataset.
func (d Dataset) byModel() bool {
	return d.Fill.Method == infer.MethodModel || d.Fill.Method == infer.MethodAuto
}

// Operate returns the settings of package operate.
func (c Config) Operate() operate.Settings {
	s := operate.Settings{State: c.state(), Products: c.ProductsDir, Publish: c.Publish, Train: c.Train}
	if c.Workers.Type == workers.Kafka {
		s.Ahead = c.Workers.InFlight
	}
	for _, set := range c.Datasets {
		room := operate.Dataset{Dataset: set.intake(), Grid: set.Grid, ByModel: set.byModel(), SkipsEmptyDays: set.EmptyDays == work.SkipEmptyDays}
		if set.Simulate != nil {
			room.Clock = func(now time.Time) time.Time { return set.Simulate.Clock(set.Archive.Dir, now) }
		}
		s.Datasets = append(s.Datasets, room)
	}
	return s
}

// Station returns the parts of the service for operators' commands that need more
// than the ledger.
func (d *Daemon) Station() operate.Station {
	station := operate.Station{
		Settings: d.operate, Archives: d.archives, Keeper: d.books(), Open: d.open, Close: d.books().Close,
		Alarms: d.cfg.Alarms, Machine: machine(), Now: d.parts.Now, Log: d.log,
		Scheduler: func(dataset string, book *ledger.Ledger) *retrain.Scheduler {
			for _, set := range d.cfg.Datasets {
				if set.Name == dataset {
					return d.scheduler(set, book)
				}
			}
			return nil
		},
		Isolation: func(ctx context.Context) (string, error) {
			walls, err := d.reader.Isolation(ctx)
			return walls.String(), err
		},
	}
	if cfg := d.cfg.workers(); cfg.Type == workers.Kafka {
		station.Shared, station.Workers = cfg.SharedDir, cfg.Try
		if cfg.S3 != nil {
			station.Bucket = cfg.TryBucket
		}
	}
	return station
}

// Overview returns the state of the service: from the running daemon, else from
// the ledger.
func (d *Daemon) Overview(ctx context.Context) (pages.Overview, error) {
	return d.pages().Overview(ctx)
}

func (d *Daemon) pages() pages.Pages {
	return pages.Pages{
		Settings: d.operate, ModelStore: d.cfg.Train.Store, Listen: d.cfg.Web.Listen, Limits: d.cfg.Alarms.Limits,
		Machine: machine(), Reader: d.reader.Patient(), Live: live{d}, Troubles: &d.troubles, Join: d.Station().Join, Now: d.parts.Now,
	}
}

// live gives the pages the state of the daemon that its ledger does not hold.
type live struct{ d *Daemon }

func (l live) Ready() bool  { return l.d.ready.Load() }
func (l live) Hung() string { return l.d.heartbeats.Hung() }

func (l live) Unreloaded() string {
	if why := l.d.refused.Load(); why != nil {
		return *why
	}
	return ""
}

func (l live) Refused(sink string) string { return l.d.out.Refused(sink) }

// Fleet returns what the workers report; nil: the daemon fills by itself.
func (l live) Fleet() *ops.Fleet {
	fleet := l.d.fleet.Load()
	if fleet == nil {
		return nil
	}
	s := fleet.State()
	return &ops.Fleet{
		UnderWay: s.UnderWay, Trainings: s.Trainings, WaitingLive: s.Lag.Live, WaitingBackfill: s.Lag.Backfill, Counted: s.Lag.At, Done: s.Done, Failed: s.Failed, Dead: s.Dead,
		Workers: convert.Each(s.Workers, func(r workers.Report) ops.FleetWorker {
			return ops.FleetWorker{
				Name: r.Worker, Started: r.Started, Dataset: r.Dataset, Granule: r.Granule, Since: r.Since, Share: r.Share,
				Done: r.Done, Failed: r.Failed, Trains: r.Trains, Seconds: r.Seconds / float64(max(r.Done, 1)),
			}
		}),
	}
}

func (l live) Method(dataset string) string {
	for _, set := range l.d.cfg.Datasets {
		if set.Name == dataset {
			return l.d.renewal.method(set)
		}
	}
	return ""
}

func (l live) Away() string { return l.d.renewal.away() }

func (l live) Intake(dataset string) *intake.Intake { return l.d.intakes[dataset] }
