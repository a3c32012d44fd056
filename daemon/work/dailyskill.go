package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
	"lacuna/publish"
)

// score computes a score that is due: of a granule filled once more under the gaps
// of another day, or of an earlier product on the cells that a replacement
// reveals. A score that fails is recorded with the reason, and not tried again.
func (w *Worker) score(ctx context.Context, due ledger.DueSkill) error {
	s, err := w.scene(ctx, due.Granule, false)
	var got ledger.Skill
	if err == nil {
		switch due.Kind {
		case ledger.Revealed:
			got, err = w.scoreRevealed(ctx, due.Scored, s)
		default:
			got, err = w.scoreOverlay(ctx, due.Granule, s)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Log.Debug("granule not scored", "granule", due.Granule.Name, "kind", due.Kind, "why", err)
		return w.Books.SkipSkill(ctx, due.ID, err.Error(), w.Now())
	}
	w.Log.Debug("granule scored", "granule", due.Granule.Name, "kind", due.Kind, "mse", got.MSE, "pixels", got.Pixels)
	return w.Books.EndSkill(ctx, due.ID, got, w.Now())
}

// errNoOverlay says that no day around a granule has gaps that hide enough of its
// cells and leave enough of them visible.
var errNoOverlay = errors.New("no day around it has gaps that hide enough of its cells and leave enough visible")

// scoreOverlay hides a part of the granule's last field under the gaps of another
// day and fills it from earlier days only, as the first product was.
func (w *Worker) scoreOverlay(ctx context.Context, g ledger.Granule, s scene) (ledger.Skill, error) {
	last := len(s.granule.Fields) - 1
	truth := s.granule.Fields[last]
	s.history = upTo(s.history, truth.Time)
	visible, hidden, ok := fill.Overlay(truth, fieldsIn(s.history), g.SHA256)
	if !ok {
		return ledger.Skill{}, errNoOverlay
	}
	scale, err := scaleOf(s.granule.Transform, s.history)
	if err != nil {
		return ledger.Skill{}, err
	}
	shown := s.granule
	shown.Fields = slices.Clone(s.granule.Fields)
	shown.Fields[last] = fill.Hide(truth, hidden)
	settings := w.set.paced(g.Lane, len(s.granule.Fields), w.pressed) // as what is published
	settings.Members = 0
	outcome, job, err := w.analyse(ctx, fill.Job{
		Dataset: w.set.Name, Granule: shown, History: s.history, Sea: s.sea, Fill: settings,
		Revision: g.Revision, Created: g.Recorded, Credits: w.cfg.Credits, Scored: true,
	})
	if err != nil {
		return ledger.Skill{}, err
	}
	a := outcome.Analyses[last]
	value := make([]float32, len(a.Value))
	s.granule.Transform.Forward(value, a.Value)
	for c := range hidden { // land is not filled and not scored, even where the sensor gave a value
		hidden[c] = hidden[c] && a.Flags[c]&infer.Interpolated != 0
	}
	t := trial{truth: truth, visible: visible, scored: hidden, value: value, sigma: a.Sigma}
	got, err := scale.score(outcome.Product.Model, t)
	if err != nil {
		return got, err
	}
	if err := w.keepEvidence(job, a, scale, t); err != nil {
		w.Log.Warn("scored day not kept, products are calibrated without it", "granule", g.Name, "err", err)
	}
	return got, nil
}

// keepEvidence keeps what a scored day says of the sigmas of what filled it and,
// where a model has still to show that it can be followed, of each by itself and of
// the way from optimal interpolation to the model.
func (w *Worker) keepEvidence(job fill.Job, a infer.Analysis, scale scale, t trial) error {
	if a.Apart == nil {
		if a.Own != nil {
			t.sigma = a.Own
		}
		return w.keepScored(scored{job: job, day: skill.ScoreDay(scale.sample(t)), means: scale.means(a.Means, t)})
	}
	day := func(mean, sigma []float32) skill.ScoredDay {
		t.value, t.sigma = mean, sigma
		return skill.ScoreDay(scale.sample(t))
	}
	plain, model := a.Apart.Interpolated, a.Apart.Modelled
	departure := fill.DepartureOf(a, t.truth, t.scored, scale.transform)
	return w.keepScored(scored{job: interpolated(job), day: day(plain.Mean, plain.Sigma)},
		scored{job: job, day: day(model.Mean, model.Sigma), departure: &departure, means: scale.means(a.Means, t)})
}

// fieldsIn returns the fields of granules.
func fieldsIn(gs []ingest.Granule) []field.Field {
	var all []field.Field
	for _, g := range gs {
		all = append(all, g.Fields...)
	}
	return all
}

// upTo returns the granules without a field later than t.
func upTo(gs []ingest.Granule, t time.Time) []ingest.Granule {
	var past []ingest.Granule
	for _, g := range gs {
		if _, last := field.Span(g.Fields); !last.After(t) {
			past = append(past, g)
		}
	}
	return past
}

// scoreRevealed scores an earlier product on the cells that it had filled and that
// the replacement of its granule shows.
func (w *Worker) scoreRevealed(ctx context.Context, before ledger.Publication, s scene) (ledger.Skill, error) {
	old, err := w.readProduct(ctx, before.File, s.granule)
	if err != nil {
		return ledger.Skill{}, fmt.Errorf("the earlier product cannot be read: %w", err)
	}
	var told publish.Product
	if err := json.Unmarshal([]byte(before.Body), &told); err != nil {
		return ledger.Skill{}, fmt.Errorf("read the description of the earlier product: %w", err)
	}
	scale, err := scaleOf(s.granule.Transform, append([]ingest.Granule{s.granule}, s.history...))
	if err != nil {
		return ledger.Skill{}, err
	}
	trials := make([]trial, len(old))
	for i, f := range s.granule.Fields {
		t := trial{
			truth: f, visible: make(field.Mask, len(f.Values)), scored: make(field.Mask, len(f.Values)),
			value: old[i].value, sigma: old[i].sigma,
		}
		for c := range f.Values {
			t.scored[c] = f.Observed(c) && old[i].filled[c]
			t.visible[c] = f.Observed(c) && !t.scored[c]
		}
		trials[i] = t
	}
	return scale.score(told.Model, trials...)
}

// trial is a field with the cells that a method saw, the cells that are scored,
// and the method's values and sigmas in the space of the transform.
type trial struct {
	truth           field.Field // in physical units
	visible, scored field.Mask
	value, sigma    []float32
}

// scale is the unit in which the errors of a granule are measured.
type scale struct {
	field.Normalisation
	transform field.Transform
}

// scaleOf returns the mean and standard deviation of granules, in the space of the
// transform.
func scaleOf(tr field.Transform, of []ingest.Granule) (scale, error) {
	var all [][]float32
	for _, f := range fieldsIn(of) {
		values := make([]float32, len(f.Values))
		tr.Forward(values, f.Values)
		all = append(all, values)
	}
	n, err := field.NormalisationOf(field.Summarise(all...))
	return scale{Normalisation: n, transform: tr}, err
}

// score returns the scores of trials of one method.
func (s scale) score(method string, trials ...trial) (ledger.Skill, error) {
	const nominal = 0.9
	scores := skill.NewScores(skill.Options{Bootstrap: skill.DefaultBootstrap()})
	var scored error
	for _, t := range trials {
		if err := scores.Add(s.sample(t)); err != nil {
			scored = err
		}
	}
	sum := scores.Summary()
	if sum.MSE == nil || sum.Bias == nil {
		return ledger.Skill{}, errors.Join(errors.New("none of its cells can be scored"), scored)
	}
	out := ledger.Skill{Method: method, MSE: *sum.MSE, Bias: *sum.Bias, Pixels: sum.Pixels}
	if sum.Gaussian != nil {
		out.Covered90, _ = sum.Gaussian.Covers(nominal)
	}
	return out, nil
}

// means returns the errors of the two means of a model in a trial; nil where there
// is one only, or no pixel to score.
func (s scale) means(of *infer.Means, t trial) *scoredMeans {
	if of == nil {
		return nil
	}
	out := scoredMeans{Day: t.truth.Time}
	truth := make([]float32, len(t.truth.Values))
	s.transform.Forward(truth, t.truth.Values)
	for c, scored := range t.scored {
		if !scored || !finite(of.OneStep[c]) || !finite(of.Members[c]) || !finite(truth[c]) {
			continue
		}
		a, b := float64(of.OneStep[c]-truth[c])/s.Std, float64(of.Members[c]-truth[c])/s.Std
		out.OneStep, out.Members, out.Pixels = out.OneStep+a*a, out.Members+b*b, out.Pixels+1
	}
	if out.Pixels == 0 {
		return nil
	}
	out.OneStep, out.Members = out.OneStep/float64(out.Pixels), out.Members/float64(out.Pixels)
	return &out
}

// sample returns a trial in normalised units.
func (s scale) sample(t trial) skill.Sample {
	n := len(t.truth.Values)
	x := skill.Sample{
		Day: t.truth.Time, Height: t.truth.Grid.Height(), Width: t.truth.Grid.Width(), Visible: t.visible, Scored: t.scored,
		Truth: make([]float32, n), Mean: make([]float32, n), Sigma: make([]float32, n),
		Physical: skill.Physical{Normalisation: s.Normalisation, Transform: s.transform},
	}
	s.transform.Forward(x.Truth, t.truth.Values)
	s.Forward(x.Truth, x.Truth)
	s.Forward(x.Mean, t.value)
	for c, sigma := range t.sigma {
		x.Sigma[c] = sigma / float32(s.Std)
	}
	return x
}
