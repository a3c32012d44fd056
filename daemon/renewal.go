package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lacuna/modelstore"
	"lacuna/ops/ledger"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
)

// renewal keeps the models of the datasets current: a training stage for each,
// one of them at work at a time, and the champions that fill. Without a model
// store there is none of it.
type renewal struct {
	stages []*trainStage
	models *Models // nil: no dataset is filled by a model
	engine *engine.Engine
}

// openRenewal makes the stages of all datasets. It starts nothing; the models
// are loaded with the first granule.
func (d *Daemon) openRenewal(book *ledger.Ledger) *renewal {
	r := &renewal{}
	turn := make(chan struct{}, 1)
	for _, set := range d.cfg.Datasets {
		if s := newTrainStage(d.cfg.Train, set, book, d, d.parts.Program); s != nil && len(d.parts.Program) > 0 {
			s.turn = turn
			r.stages = append(r.stages, s)
		}
	}
	r.openModels(d)
	return r
}

// openModels opens the engine where a dataset is filled by a model. Without an
// engine the daemon fills by optimal interpolation, and says so.
func (r *renewal) openModels(d *Daemon) {
	byModel := func(set Dataset) bool { return set.Fill.Method == infer.MethodModel }
	if d.cfg.Train.Store == "" || !slices.ContainsFunc(d.cfg.Datasets, byModel) {
		return
	}
	e, err := engine.Open(d.cfg.Train.Engine, engine.Config{}, d.log)
	if err != nil {
		d.log.Warn("no engine for models, filling by optimal interpolation", "err", err)
		return
	}
	r.engine = e
	r.models = NewModels(modelstore.New(d.cfg.Train.Store, d.parts.Now), infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, d.log)
}

// close frees the models. No worker may be running.
func (r *renewal) close() {
	if r.models != nil {
		r.models.Close()
		r.engine.Finalize()
	}
}

// hold pauses every training until the returned function is called: they share
// the device with whatever is filled.
func (r *renewal) hold() (release func()) {
	var releases []func()
	for _, s := range r.stages {
		releases = append(releases, s.child.hold())
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// news returns what becomes of the model of a dataset, for people.
func (r *renewal) news(dataset string) string {
	for _, s := range r.stages {
		if news := s.news.Load(); s.set.Name == dataset && news != nil {
			return *news
		}
	}
	return ""
}

// method says what fills a dataset now.
func (c Config) method(set Dataset) string {
	if set.Fill.Method != infer.MethodModel {
		return methodPhrase[set.Fill.Method]
	}
	if _, err := modelstore.New(c.Train.Store, time.Now).Champion(set.Name); err != nil {
		return methodPhrase["oi"] + ", until there is a model"
	}
	return methodPhrase[infer.MethodModel]
}

// run returns what runs for as long as the daemon does.
func (r *renewal) run(ctx context.Context) []func() error {
	var all []func() error
	for _, s := range r.stages {
		all = append(all, func() error { return s.run(ctx) })
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
