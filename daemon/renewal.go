package daemon

import (
	"context"
	"fmt"
	"slices"

	"lacuna/daemon/fill"
	"lacuna/daemon/retrain"
	"lacuna/daemon/supervise"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
)

// renewal keeps the models of the datasets current: a scheduler for each,
// one of them at work at a time, and the champions that fill. Without a model
// store there is none of it.
type renewal struct {
	schedulers []*retrain.Scheduler
	models     *fill.Models // nil: no dataset is filled by a model
	engine     *engine.Engine
}

// openRenewal makes the schedulers of all datasets. It starts nothing; the models
// are loaded with the first granule.
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

// openModels makes what chooses the fillers where a dataset may be filled by a
// model. The engine is opened with the first model; without one the daemon
// fills by optimal interpolation, and says so.
func (r *renewal) openModels(d *Daemon) {
	if !slices.ContainsFunc(d.cfg.Datasets, Dataset.byModel) {
		return
	}
	parts := fill.ModelParts{Log: d.log, Open: func() (infer.Device, error) {
		e, err := engine.Open(d.cfg.Train.Engine, d.cfg.Train.Libraries(), d.log)
		if err != nil {
			return infer.Device{}, err
		}
		r.engine = e
		return infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, nil
	}}
	if d.cfg.Train.Store != "" {
		parts.Store = modelstore.New(d.cfg.Train.Store, d.parts.Now)
	}
	var err error
	if parts.Starters, err = starters.List(context.Background()); err != nil {
		d.log.Warn("the starter models cannot be used", "err", err) // a bug of the build: champions and interpolation serve
	}
	r.models = fill.NewModels(parts)
}

// close frees the models. No worker may be running.
func (r *renewal) close() {
	if r.models != nil {
		r.models.Close()
	}
	if r.engine != nil {
		r.engine.Finalize()
	}
}

// hold pauses every training until the returned function is called: they share
// the device with whatever is filled.
func (r *renewal) hold() (release func()) {
	var releases []func()
	for _, s := range r.schedulers {
		releases = append(releases, s.Hold())
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// news returns what becomes of the model of a dataset, for people.
func (r *renewal) news(dataset string) string {
	if r == nil {
		return ""
	}
	for _, s := range r.schedulers {
		if s.Dataset.Name == dataset {
			return s.News()
		}
	}
	return ""
}

// method says what fills a dataset: what filled its last granule, else what is
// to.
func (r *renewal) method(set Dataset) string {
	if r != nil {
		if choice, ok := r.models.Chosen(set.Name); ok {
			return choice.String()
		}
	}
	return fill.Method(set.Fill.Method)
}

// stages returns the trainings.
func (r *renewal) stages() []supervise.Stage {
	var all []supervise.Stage
	for _, s := range r.schedulers {
		all = append(all, supervise.Lasting("training of "+s.Dataset.Name, nil, s.Run))
	}
	return all
}

// checkModels returns what is wrong with datasets that are to be filled by a
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
