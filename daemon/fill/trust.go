package fill

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
	"lacuna/publish/netcdf"
)

// tellTrust says in a product how far the model of the job was followed. Where it
// was not, the product is one of optimal interpolation, and is called so.
func (job Job) tellTrust(p *netcdf.Product) {
	if job.Trust == nil {
		return
	}
	p.Trust = &netcdf.Trust{Model: job.Model.Name(), Weight: job.Trust.Weight, Days: job.Trust.Days}
	network := "a neural network that was trained on gappy maps elsewhere"
	if job.Scaling != nil {
		network = elsewhere(job.Scaling)
	}
	switch w := job.Trust.Weight; {
	case w == 0:
		p.Model, p.Method = "oi", methodPhrase["oi"]
	case w < 1:
		p.Method = fmt.Sprintf("%s and, for %.2f of the way from there, by %s, as far as %d scored days of this dataset say", methodPhrase["oi"], w, network, job.Trust.Days)
	}
}

// elsewhere returns a network that is scaled by the days of a dataset in words.
func elsewhere(s *LocalScaling) string {
	return fmt.Sprintf("a neural network that was trained on gappy maps of the same quantity elsewhere and scaled by %d days of this dataset", s.Days)
}

// caveats returns what does not hold of the job's product.
func (job Job) caveats() []string {
	var all []string
	if job.Model == nil || job.Trust != nil && job.Trust.Weight == 0 {
		return nil
	}
	if text := job.Fill.Unjudged(); text != "" {
		all = append(all, text)
	}
	if job.Fill.Details && !job.Model.Reliable(job.Granule.Fields[0].Grid) {
		all = append(all, "no reliability is given: model "+job.Model.Name()+" has no map of it for this grid")
	}
	return all
}

// follows returns in words how far a model is followed.
func follows(t skill.Trust) string {
	switch {
	case t.Weight > 0:
		return fmt.Sprintf("followed to %.2f of its way, from %d scored days", t.Weight, t.Days)
	case t.Days < skill.TrustDays:
		return fmt.Sprintf("not followed yet: that takes %d scored days, and there are %d", skill.TrustDays, t.Days)
	}
	return fmt.Sprintf("not followed: %d scored days do not show that it betters optimal interpolation", t.Days)
}

// Overlay splits the observations of truth by the gaps of one of other fields. key
// selects the field, so that the same granule always has the same overlay, and
// granules of successive days have different ones. It returns false where no
// field hides enough cells and leaves enough visible.
func Overlay(truth field.Field, others []field.Field, key string) (visible, hidden field.Mask, ok bool) {
	var lenders []field.Field
	for _, f := range others {
		if f.Grid.Same(truth.Grid) && !f.Time.Equal(truth.Time) {
			lenders = append(lenders, f)
		}
	}
	hash := fnv.New64a()
	hash.Write([]byte(key))
	start := hash.Sum64()
	for i := range lenders {
		lender := lenders[(start+uint64(i))%uint64(len(lenders))]
		visible, hidden = make(field.Mask, len(truth.Values)), make(field.Mask, len(truth.Values))
		for c := range truth.Values {
			if truth.Observed(c) {
				visible[c] = lender.Observed(c)
				hidden[c] = !visible[c]
			}
		}
		if skill.Usable(visible, hidden) {
			return visible, hidden, true
		}
	}
	return nil, nil, false
}

// Hide returns a field without its hidden cells.
func Hide(f field.Field, hidden field.Mask) field.Field {
	f.Values = slices.Clone(f.Values)
	for c, h := range hidden {
		if h {
			f.Values[c] = field.NaN()
		}
	}
	return f
}

// DepartureOf returns what an analysis that was scored says of its model: hidden
// are the cells of truth that it did not see.
func DepartureOf(a infer.Analysis, truth field.Field, hidden field.Mask, tr field.Transform) skill.Departure {
	values := make([]float32, len(truth.Values))
	tr.Forward(values, truth.Values)
	return skill.DepartureOf(truth.Time, values, a.Apart.Interpolated.Mean, a.Apart.Modelled.Mean, hidden)
}

// Known returns the fields that the scaling of a model for the job may be learned
// from: all of its days or, in near-real-time, those before its granule.
func (job Job) Known() []field.Field {
	first, _ := field.Span(job.Granule.Fields)
	return slices.DeleteFunc(job.fields(), func(f field.Field) bool {
		return job.Fill.Future() == 0 && len(job.Granule.Fields) == 1 && !f.Time.Before(first)
	})
}

// weighedDays is how many days Weigh scores: more than enough for a first weight,
// at a price of some forty fields.
const weighedDays = 20

// Weigh scores the model of a job that has no scored days: its own days and those
// of its history are filled under the gaps of others, by the model and by optimal
// interpolation, the scaling learned from the other days. With fewer days than a
// trust takes nothing is scored.
func Weigh(ctx context.Context, job Job, progress func(done, total int)) ([]skill.Departure, error) {
	days := job.fields()
	filler, err := infer.New(job.Fill, job.Model)
	if err != nil || len(days) < skill.TrustDays {
		return nil, err
	}
	var scored []skill.Departure
	n := min(weighedDays, len(days))
	for k := range n {
		d, ok, err := job.weighOne(ctx, filler, days, k*len(days)/n)
		if err != nil {
			return nil, fmt.Errorf("weigh the model on %s: %w", days[k*len(days)/n].Time.Format(time.DateOnly), err)
		}
		if ok {
			scored = append(scored, d)
		}
		progress(k+1, n)
	}
	return scored, nil
}

// Trusted returns how far the model of the job is followed by days that were
// scored: all of them or, in near-real-time, those before its granule.
func (job Job) Trusted(days []skill.Departure) skill.Trust {
	before, last := field.Span(job.Granule.Fields)
	if job.Fill.Future() > 0 || !before.Equal(last) {
		before = time.Unix(1<<40, 0)
	}
	return skill.Trusted(days, before)
}

// fields returns the fields of the job and its history on its grid that have an
// observation, in order of time, each time once.
func (job Job) fields() []field.Field {
	grid := job.Granule.Fields[0].Grid
	var all []field.Field
	for _, g := range append([]ingest.Granule{job.Granule}, job.History...) {
		for _, f := range g.Fields {
			same := func(other field.Field) bool { return other.Time.Equal(f.Time) }
			if f.Grid.Same(grid) && f.ObservedMask().Count() > 0 && !slices.ContainsFunc(all, same) {
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b field.Field) int { return a.Time.Compare(b.Time) })
	return all
}

// weighOne scores one of the days; it returns false where no other day has gaps
// for it.
func (job Job) weighOne(ctx context.Context, filler *infer.Filler, days []field.Field, at int) (skill.Departure, bool, error) {
	truth, tr := days[at], job.Granule.Transform
	others := slices.Concat(days[:at], days[at+1:])
	_, hidden, ok := Overlay(truth, others, truth.Time.String())
	if !ok {
		return skill.Departure{}, false, nil
	}
	scene := infer.Scene{
		Frames: []field.Field{Hide(truth, hidden)}, History: others, Sea: job.Sea, Transform: tr, Constants: job.Constants,
		Trust: &infer.Trust{Apart: true},
	}
	if job.Scaling != nil {
		if job.Fill.Future() == 0 {
			others = days[:at]
		}
		learned, err := LearnLocalScaling(others, job.Sea, tr)
		if err != nil {
			return skill.Departure{}, false, nil //nolint:nilerr // too few days before this one to scale the model by: it tells nothing
		}
		scene.Scaling = &learned.Scaling
	}
	filled, err := filler.Fill(ctx, scene, nil)
	if err != nil {
		return skill.Departure{}, false, err
	}
	for c := range hidden { // land is not filled, even where the sensor gave a value
		hidden[c] = hidden[c] && filled[0].Flags[c]&infer.Interpolated != 0
	}
	return DepartureOf(filled[0], truth, hidden, tr), true, nil
}
