package fill

import (
	"fmt"
	"hash/fnv"
	"slices"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
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
	case t.Days < t.Wanted:
		return fmt.Sprintf("not followed yet: that takes %d scored days, and there are %d", t.Wanted, t.Days)
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
