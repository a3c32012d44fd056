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
	"lacuna/publish/netcdf"
)

// Explained is what covariates say of the fields of a job. The zero value: nothing.
type Explained struct {
	Drift   []infer.Drift
	Names   string         // of the covariates that are used, for the product
	Inputs  []netcdf.Input // their files for the fields of the granule
	Lacking []string       // those that are used, and have no map of the granule's last field
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

// Explain returns what covariates say of a job by the regression of its constants: of
// the fields of its window or, to weigh a model on them, of all its days.
func Explain(ctx context.Context, job Job, c *covariates.Covariates, all bool) (Explained, error) {
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
		if slices.ContainsFunc(in.Times, own) {
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
}
