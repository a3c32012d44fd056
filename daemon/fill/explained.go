package fill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/samples"
	"lacuna/publish/netcdf"
)

// Explained is what covariates say of the fields of a job. The zero value: nothing.
type Explained struct {
	Drift   []infer.Drift
	Names   string         // of the covariates that are used, for the product
	Inputs  []netcdf.Input // their files for the fields of the granule
	Lacking []string       // those that are used, and have no map of the granule's last field
	Unfit   []string       // those that the model uses where it was made, and cannot here

	Maps []infer.Covariate // those that the model sees, for the fields of the granule
}

// Terms returns the maps of covariates as the tuning for a job asks for them; nil where
// there are none.
func (job Job) Terms(c *covariates.Covariates) infer.Covariates {
	if !c.Any() {
		return nil
	}
	return func(ctx context.Context, times []time.Time) ([]covariate.Term, error) {
		a, err := c.Terms(ctx, job.request(times))
		return a.Terms, err
	}
}

// request returns what covariates are asked for a job. A granule that is scored is filled
// as in near real time.
func (job Job) request(times []time.Time) covariates.Request {
	return covariates.Request{
		Grid: job.Granule.Fields[0].Grid, Sea: job.Sea, Times: times, Ahead: job.Fill.Future() > 0 && !job.Scored,
	}
}

// Explain returns what covariates say of a job: by the regression of its constants, of
// the fields of its window or, to weigh a model on them, of all its days; and to its model,
// where that was trained with some.
func Explain(ctx context.Context, job Job, c *covariates.Covariates, all bool) (Explained, error) {
	out, err := explain(ctx, job, c, all)
	if err != nil || job.Model == nil {
		return out, err
	}
	return out, out.show(ctx, job, c)
}

// show adds the maps that the model of a job sees: for the fields of the granule, and in
// whatever mode never of a later date, because none was when it learned.
func (e *Explained) show(ctx context.Context, job Job, c *covariates.Covariates) error {
	grid := job.Granule.Fields[0].Grid
	e.Unfit = job.Model.Elsewhere(grid)
	wanted := job.Model.Covariates(grid)
	if len(wanted) == 0 {
		return nil
	}
	ask := job.request(distinct(field.Times(job.Granule.Fields)))
	ask.Ahead = false
	ask.Units = func(name string) string {
		for _, w := range wanted {
			if of(w.Name, name) {
				return w.Units
			}
		}
		return ""
	}
	var a covariates.Answer
	if c.Any() {
		var err error
		if a, err = c.Terms(ctx, ask); err != nil {
			return err
		}
	}
	last := job.Granule.Fields[len(job.Granule.Fields)-1].Time
	for _, w := range wanted {
		found := false
		for _, t := range a.Terms {
			for i, values := range t.Maps {
				if t.Name != w.Name || values == nil || w.Units != "" && t.Units != w.Units {
					continue
				}
				e.Maps = append(e.Maps, infer.Covariate{Time: ask.Times[i], Name: t.Name, Units: t.Units, Values: values})
				found = found || ask.Times[i].Equal(last)
			}
		}
		if e.Names = joined(e.Names, w.Name); !found && !slices.Contains(e.Lacking, w.Name) {
			e.Lacking = append(e.Lacking, w.Name)
		}
	}
	for _, in := range a.Inputs {
		input := netcdf.Input{Name: in.Name, SHA256: in.SHA256, Role: netcdf.RoleCovariate}
		seen := slices.ContainsFunc(wanted, func(w samples.Covariate) bool { return of(w.Name, in.Covariate) })
		if seen && len(in.Times) > 0 && !slices.Contains(e.Inputs, input) {
			e.Inputs = append(e.Inputs, input)
		}
	}
	return nil
}

// of reports whether a term is that of a covariate, or of its gradient.
func of(term, covariate string) bool {
	return term == covariate || strings.HasPrefix(term, covariate+".")
}

// joined adds a name to a list of names, unless it is there.
func joined(names, name string) string {
	switch {
	case names == "":
		return name
	case slices.Contains(strings.Split(names, ", "), name):
		return names
	}
	return names + ", " + name
}

// explain returns what covariates say by the regression of the constants.
func explain(ctx context.Context, job Job, c *covariates.Covariates, all bool) (Explained, error) {
	if job.Constants == nil || !job.Constants.Covariates.Any() || !c.Any() {
		return Explained{}, nil
	}
	r := job.Constants.Covariates
	near, _ := neighbours(job)
	if all {
		near = job.fields()
	}
	s := classical.Series{Grid: job.Granule.Fields[0].Grid, Sea: job.Sea}
	for _, at := range distinct(field.Times(slices.Concat(job.Granule.Fields, near))) {
		s.Frames = append(s.Frames, classical.Frame{Time: at})
	}
	times := make([]time.Time, len(s.Frames))
	for i, f := range s.Frames {
		times[i] = f.Time
	}
	ask := job.request(times)
	ask.Units = r.Units
	a, err := c.Terms(ctx, ask)
	if err != nil {
		return Explained{}, err
	}
	out := Explained{Names: r.Names()}
	for i, values := range r.Drift(s, a.Terms) {
		if values != nil {
			out.Drift = append(out.Drift, infer.Drift{Time: times[i], Values: values})
		}
	}
	last := job.Granule.Fields[len(job.Granule.Fields)-1].Time
	out.Lacking = r.Lacking(a.Terms, slices.IndexFunc(times, last.Equal))
	for _, in := range a.Inputs {
		own := func(t time.Time) bool {
			return slices.ContainsFunc(job.Granule.Fields, func(f field.Field) bool { return f.Time.Equal(t) })
		}
		if slices.ContainsFunc(in.Times, own) && slices.ContainsFunc(r.Terms, func(t covariate.Coefficient) bool { return of(t.Name, in.Covariate) }) {
			out.Inputs = append(out.Inputs, netcdf.Input{Name: in.Name, SHA256: in.SHA256, Role: netcdf.RoleCovariate})
		}
	}
	return out, nil
}

// distinct returns times in order, each once.
func distinct(times []time.Time) []time.Time {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

// tell notes in a product what covariates had a part in it.
func (e Explained) tell(p *netcdf.Product) {
	p.Covariates = e.Names
	p.Inputs = append(p.Inputs, e.Inputs...)
	if len(e.Lacking) > 0 {
		p.Caveats = append(p.Caveats, fmt.Sprintf("%s: no map of this day is there, and it is filled without", strings.Join(e.Lacking, ", ")))
	}
	if len(e.Unfit) > 0 {
		p.Caveats = append(p.Caveats, fmt.Sprintf("%s: the model uses it on the grid that it was trained on, and fills without here", strings.Join(e.Unfit, ", ")))
	}
}
