package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/retrain"
	"lacuna/daemon/supervise"
	"lacuna/daemon/trainjob"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
)

// renewal are the models of the datasets: the champions that fill them, and a
// scheduler for each dataset that trains new ones, one training at a time. Without
// a model store there are no schedulers.
type renewal struct {
	schedulers []*retrain.Scheduler
	models     *fill.Models     // nil: no dataset is filled by a model
	engines    []*engine.Engine // that were opened; a lost one too, until the end
}

// openRenewal makes the schedulers of all datasets, and the models. It starts no
// training and loads no model: the first granule does that.
func (d *Daemon) openRenewal(book *ledger.Ledger) *renewal {
	r := &renewal{}
	turn := make(chan struct{}, 1)
	for _, set := range d.cfg.Datasets {
		if s := d.scheduler(set, book); s != nil && len(d.parts.Program) > 0 {
			s.Turn = turn
			r.schedulers = append(r.schedulers, s)
		}
	}
	r.openModels(d)
	return r
}

// openModels makes the models, where a dataset may be filled by one. The engine is
// opened with the first model; without an engine the daemon fills by optimal
// interpolation, and logs the reason.
func (r *renewal) openModels(d *Daemon) {
	if !slices.ContainsFunc(d.cfg.Datasets, Dataset.byModel) {
		return
	}
	cfg := d.cfg.Train.Libraries()
	parts := fill.ModelParts{
		Log: d.log, Speeds: d.cfg.state().Speeds(), Now: d.parts.Now,
		Open:    func() (infer.Device, error) { return r.opened(engine.OpenOrStandIn(d.cfg.Train.Engine, cfg, d.log)) },
		StandIn: func(lost error) (infer.Device, error) { return r.opened(engine.StandIn(lost, cfg, d.log)) },
	}
	if d.cfg.Train.Store != "" {
		parts.Store = modelstore.New(d.cfg.Train.Store, d.parts.Now)
	}
	var err error
	if parts.Starters, err = starters.List(context.Background()); err != nil {
		d.log.Warn("the starter models cannot be used", "err", err) // a bug of the build, which does not stop champions and interpolation
	}
	r.models = fill.NewModels(parts)
}

// trainBy has the trainings done by workers, where the coordination says so.
func (r *renewal) trainBy(turn *coordination, d *Daemon) {
	if turn == nil || !turn.cfg.Train {
		return
	}
	for _, s := range r.schedulers {
		s.Remote = &trainjob.Remote{
			Fleet: turn.fleet, Folder: turn.folder, Dataset: s.Dataset.Name, Store: modelstore.New(d.cfg.Train.Store, d.parts.Now),
			Sent: d.cfg.state().SentTraining(s.Dataset.Name), Log: s.Log,
		}
	}
}

// opened returns an engine as the device of models, and keeps it to be closed.
func (r *renewal) opened(e *engine.Engine, err error) (infer.Device, error) {
	if err != nil {
		return infer.Device{}, err
	}
	r.engines = append(r.engines, e)
	device := infer.Device{Backend: e, GPU: engine.OnGPU(e.Kind), Try: e.Try}
	if e.Away != nil {
		device.Away = e.Away.Error()
	}
	return device, nil
}

// version returns the version of a model that is loaded; nil: none has that name.
func (r *renewal) version(model string) *modelstore.Version {
	if r.models == nil {
		return nil
	}
	return r.models.Version(model)
}

// close frees the models. No worker may be running.
func (r *renewal) close() {
	if r.models != nil {
		r.models.Close()
	}
	for _, e := range r.engines {
		e.Finalize()
	}
}

// Hold pauses every training until release is called, because trainings and
// filling share the device.
func (r *renewal) Hold() (release func()) { return r.each((*retrain.Scheduler).Hold) }

// HoldInTurn is Hold for work that can wait, see retrain.Process.
func (r *renewal) HoldInTurn() (release func()) { return r.each((*retrain.Scheduler).HoldInTurn) }

func (r *renewal) each(hold func(*retrain.Scheduler) func()) (release func()) {
	var releases []func()
	for _, s := range r.schedulers {
		releases = append(releases, hold(s))
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// Owed returns for how long work that can wait leaves the machine to a training.
func (r *renewal) Owed() (most time.Duration) {
	for _, s := range r.schedulers {
		most = max(most, s.Owed())
	}
	return most
}

// method returns the method of a dataset in words: the one of its last granule,
// else the configured one.
func (r *renewal) method(set Dataset) string {
	if r != nil {
		if choice, ok := r.models.Chosen(set.Name); ok {
			return choice.String()
		}
	}
	if m := set.Fill.Method; m != infer.MethodAuto && m != infer.MethodModel {
		return fill.Method(m)
	}
	return "" // the next granule decides
}

// away says why models run without the GPU that train.engine names; empty: they do
// not.
func (r *renewal) away() string {
	if r == nil {
		return ""
	}
	return r.models.Away()
}

// stages returns the schedulers as stages.
func (r *renewal) stages() []supervise.Stage {
	var all []supervise.Stage
	for _, s := range r.schedulers {
		all = append(all, supervise.Lasting("training of "+s.Dataset.Name, nil, s.Run))
	}
	return all
}

// checkModels returns the faults of datasets that are configured to be filled by a
// model.
func (c Config) checkModels() []fault {
	var all []fault
	for i, set := range c.Datasets {
		if set.Fill.Method == infer.MethodModel && c.Train.Store == "" {
			all = append(all, faultsOf(fmt.Sprintf("$.datasets[%d].fill", i),
				fmt.Errorf("method is %q, but train.store is empty: name the folder of the model store", infer.MethodModel))...)
		}
	}
	return all
}
