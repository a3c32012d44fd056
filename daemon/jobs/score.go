package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
)

// Scores are those of a filled day, on cells whose truth the method did not see.
type Scores struct {
	Method    string  `json:"method"`
	MSE       float64 `json:"mse"` // in variances of the field
	Bias      float64 `json:"bias"`
	Covered90 float64 `json:"covered90"` // share of the truths inside the 90 % interval
	Pixels    int     `json:"pixels"`
}

// Score is what a scored day says.
type Score struct {
	Scores
	Evidence []Evidence `json:"evidence"`
}

// Evidence is what a scored day says of the sigmas of a method and, where a model has
// still to show that it can be followed, of the way from optimal interpolation to it.
type Evidence struct {
	Plain     bool             `json:"plain,omitempty"` // of optimal interpolation, beside the model of the job
	Day       skill.ScoredDay  `json:"day"`
	Departure *skill.Departure `json:"departure,omitempty"`
	Means     *Means           `json:"means,omitempty"` // nil: there is one only
}

// Means are the mean squared errors of the two means of a model on a day.
type Means struct {
	Day     time.Time `json:"day"`
	OneStep float64   `json:"one_step"`
	Members float64   `json:"members"`
	Pixels  int       `json:"pixels"`
}

// ErrNoOverlay says that no day around a granule has gaps that hide enough of its
// cells and leave enough of them visible.
var ErrNoOverlay = errors.New("no day around it has gaps that hide enough of its cells and leave enough visible")

// Overlaid returns the cells of the job's last field that the gaps of another day
// leave and hide; key chooses the day. The error is ErrNoOverlay where there is none.
func Overlaid(job fill.Job, key string) (visible, hidden field.Mask, err error) {
	visible, hidden, ok := fill.Overlay(job.Granule.Fields[len(job.Granule.Fields)-1], fieldsIn(job.History), key)
	if !ok {
		return nil, nil, ErrNoOverlay
	}
	return visible, hidden, nil
}

// ScoreDay hides a part of the job's last field under the gaps of another day, fills
// it, and scores that.
func ScoreDay(ctx context.Context, job fill.Job, key string, progress func(done, total int)) (Score, error) {
	visible, hidden, err := Overlaid(job, key)
	if err != nil {
		return Score{}, err
	}
	whole := job.Granule
	scale, err := ScaleOf(whole.Transform, job.History)
	if err != nil {
		return Score{}, err
	}
	last := len(whole.Fields) - 1
	truth := whole.Fields[last]
	job.Granule.Fields = slices.Clone(whole.Fields)
	job.Granule.Fields[last] = fill.Hide(truth, hidden)
	outcome, err := fill.Analyse(ctx, job, progress)
	if err != nil {
		return Score{}, err
	}
	a := outcome.Analyses[last]
	value := make([]float32, len(a.Value))
	whole.Transform.Forward(value, a.Value)
	for c := range hidden { // land is not filled and not scored, even where the sensor gave a value
		hidden[c] = hidden[c] && a.Flags[c]&infer.Interpolated != 0
	}
	t := Trial{Truth: truth, Visible: visible, Scored: hidden, Value: value, Sigma: a.Sigma}
	scores, err := scale.Score(outcome.Product.Model, t)
	if err != nil {
		return Score{}, err
	}
	return Score{Scores: scores, Evidence: evidenceOf(a, scale, t)}, nil
}

// evidenceOf returns what an analysis that was scored says of the method and, where
// it is kept apart, of optimal interpolation and the model by themselves.
func evidenceOf(a infer.Analysis, scale Scale, t Trial) []Evidence {
	if a.Apart == nil {
		if a.Own != nil {
			t.Sigma = a.Own
		}
		return []Evidence{{Day: skill.ScoreDay(scale.sample(t)), Means: scale.means(a.Means, t)}}
	}
	day := func(mean, sigma []float32) skill.ScoredDay {
		t.Value, t.Sigma = mean, sigma
		return skill.ScoreDay(scale.sample(t))
	}
	plain, model := a.Apart.Interpolated, a.Apart.Modelled
	departure := fill.DepartureOf(a, t.Truth, t.Scored, scale.Transform)
	return []Evidence{{Plain: true, Day: day(plain.Mean, plain.Sigma)}, {Day: day(model.Mean, model.Sigma), Departure: &departure, Means: scale.means(a.Means, t)}}
}

// fieldsIn returns the fields of granules.
func fieldsIn(gs []ingest.Granule) []field.Field {
	var all []field.Field
	for _, g := range gs {
		all = append(all, g.Fields...)
	}
	return all
}

// Trial is a field with the cells that a method saw, the cells that are scored,
// and the method's values and sigmas in the space of the transform.
type Trial struct {
	Truth           field.Field // in physical units
	Visible, Scored field.Mask
	Value, Sigma    []float32
}

// Scale is the unit in which the errors of a granule are measured.
type Scale struct {
	field.Normalisation
	Transform field.Transform
}

// ScaleOf returns the mean and standard deviation of granules, in the space of the
// transform.
func ScaleOf(tr field.Transform, of []ingest.Granule) (Scale, error) {
	var all [][]float32
	for _, f := range fieldsIn(of) {
		values := make([]float32, len(f.Values))
		tr.Forward(values, f.Values)
		all = append(all, values)
	}
	n, err := field.NormalisationOf(field.Summarise(all...))
	return Scale{Normalisation: n, Transform: tr}, err
}

// Score returns the scores of trials of one method.
func (s Scale) Score(method string, trials ...Trial) (Scores, error) {
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
		return Scores{}, errors.Join(errors.New("none of its cells can be scored"), scored)
	}
	out := Scores{Method: method, MSE: *sum.MSE, Bias: *sum.Bias, Pixels: sum.Pixels}
	if sum.Gaussian != nil {
		out.Covered90, _ = sum.Gaussian.Covers(nominal)
	}
	return out, nil
}

// means returns the errors of the two means of a model in a trial; nil where there
// is one only, or no pixel to score.
func (s Scale) means(of *infer.Means, t Trial) *Means {
	if of == nil {
		return nil
	}
	out := Means{Day: t.Truth.Time}
	truth := make([]float32, len(t.Truth.Values))
	s.Transform.Forward(truth, t.Truth.Values)
	for c, scored := range t.Scored {
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

func finite(x float32) bool { return x-x == 0 }

// sample returns a trial in normalised units.
func (s Scale) sample(t Trial) skill.Sample {
	n := len(t.Truth.Values)
	x := skill.Sample{
		Day: t.Truth.Time, Height: t.Truth.Grid.Height(), Width: t.Truth.Grid.Width(), Visible: t.Visible, Scored: t.Scored,
		Truth: make([]float32, n), Mean: make([]float32, n), Sigma: make([]float32, n),
		Physical: skill.Physical{Normalisation: s.Normalisation, Transform: s.Transform},
	}
	s.Transform.Forward(x.Truth, t.Truth.Values)
	s.Forward(x.Truth, x.Truth)
	s.Forward(x.Mean, t.Value)
	for c, sigma := range t.Sigma {
		x.Sigma[c] = sigma / float32(s.Std)
	}
	return x
}
