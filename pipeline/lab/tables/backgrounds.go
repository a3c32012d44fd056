package tables

import (
	"context"
	"fmt"
	"slices"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/version"
)

// surround makes the backgrounds and the analysis that unfinished entries need.
func (r *run) surround(ctx context.Context) error {
	extras, err := r.extras()
	if err != nil {
		return err
	}
	oi := impute.ServingOI(classical.DefaultOI(r.train.Grid()))
	if extras.Analysis && r.around.Analyser == nil {
		r.material.Analyser = version.Analyser(r.train, impute.QuickOI)
		r.around.Analyser = impute.OI{Days: r.held, Settings: oi}
		clear(r.exams) // exams made before have no analysis
	}
	if !extras.Background || r.around.Past != nil {
		return nil
	}
	clear(r.exams)
	return r.makeBackgrounds(ctx, oi)
}

// extras returns the inputs of all entries' networks that have to be made
// beforehand.
func (r *run) extras() (impute.Extras, error) {
	var out impute.Extras
	for _, e := range r.entries {
		var x impute.Extras
		switch {
		case e.done:
		case e.row.trains():
			x = e.row.Network.config(r.s.Train).Design.Extras
		case e.row.By == Stored:
			m, err := impute.Load(r.job.Stored[e.row.Name][version.PartImputer], r.runner)
			if err != nil {
				return out, fmt.Errorf("read the model of row %s: %w", e.row.Name, err)
			}
			x = m.Design().Extras
		}
		out.Background, out.Analysis = out.Background || x.Background, out.Analysis || x.Analysis
	}
	return out, nil
}

func (r *run) makeBackgrounds(ctx context.Context, oi classical.OI) error {
	var learn, ask []int
	for _, ref := range r.refs(r.s.Train.Side) {
		learn = append(learn, ref.Day)
	}
	for _, o := range r.overlays {
		ask = append(ask, o.Day)
	}
	for _, part := range []struct {
		name   string
		from   pack.Side
		days   []int
		future int
		to     *impute.Backgrounds
	}{
		{"train-past", r.train, learn, 0, &r.material.Past},
		{"train-delayed", r.train, learn, samples.NextDays, &r.material.Delayed},
		{"held-past", r.held, ask, 0, &r.around.Past},
		{"held-delayed", r.held, ask, samples.NextDays, &r.around.Delayed},
	} {
		slices.Sort(part.days)
		days := slices.Compact(part.days)
		cfg := samples.BackgroundConfig{PastDays: samples.LastDays, FutureDays: part.future, OI: oi, Workers: r.s.Train.Workers}
		key, err := keyOf(r.dataKey, part.name, days, oi)
		if err != nil {
			return err
		}
		path := r.folder.path(networksFolder, "background-"+key+".gob.gz")
		if *part.to, err = pack.KeepBackgrounds(ctx, path, part.from, days, cfg, r.telling("analysing the days around")); err != nil {
			return fmt.Errorf("backgrounds %s: %w", part.name, err)
		}
	}
	return nil
}
