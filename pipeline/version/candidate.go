package version

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/parts"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// A Candidate is a version as it would serve: its networks with the scaling
// and the calibration that were stored with them.
type Candidate struct {
	model       *impute.Model
	members     *impute.Members // nil: the version has none
	calibration parts.Calibration
	scaling     *samples.Scaling // nil: that of the exam
	// analyser makes the analysis that the networks depart from, as they learned
	// and as they would serve; nil: that of the exam.
	analyser  impute.Analyser
	constants parts.Constants // of analyser
	// channels are those of the version, which has its own constants for each; nil: its
	// network sees no covariates.
	channels impute.Covariates
	list     []samples.Channel
}

// asked says that the exam has analyses with the given constants, so that none has
// to be made twice.
func (c *Candidate) asked(with parts.Constants) {
	if c.constants == with {
		c.analyser = nil
	}
}

// LoadCandidate reads a version. It must fit the transform of the days that it
// is to be judged on. One of another grid, or of several, is judged with the
// scaling of those days, as it would serve there.
func LoadCandidate(files Parts, runner *impute.Runner, on samples.HeldOut) (*Candidate, error) {
	if files[PartImputer] == nil {
		return nil, fmt.Errorf("the version has no %s", PartImputer)
	}
	model, err := impute.Load(files[PartImputer], runner)
	if err != nil {
		return nil, err
	}
	c := &Candidate{model: model}
	if c.calibration, err = parts.DecodeCalibration(files[PartCalibration]); err != nil {
		return nil, fmt.Errorf("read the calibration: %w", err)
	}
	if data := files[PartMembers]; data != nil {
		if c.members, err = impute.LoadMembers(data, model); err != nil {
			return nil, err
		}
	}
	var known []samples.Channel // those of another grid are missing, as where it would serve
	if data := files[PartScaling]; data != nil {
		s, err := parts.DecodeScaling(data)
		if err != nil {
			return nil, fmt.Errorf("read the scaling: %w", err)
		}
		if s.Log10 != on.Transform().Log10 {
			return nil, errors.New("the version was trained with another transform than that of the days it is to be judged on: give days of its own transform")
		}
		if scaling := s.Samples(); len(on.Places()) == 1 && s.Fits(on.Grid(), on.Transform()) {
			c.scaling = &scaling
			c.constants = constantsOf(classical.DefaultOI(on.Grid()))
			if s.Constants != nil {
				c.constants = *s.Constants
			}
			c.analyser = analyserOf(on.Undrifted(), impute.ServingOI, c.constants)
			known = s.Covariates
		}
	}
	if c.list = samples.ChannelsOf(model.Design().Channels(), known); len(c.list) > 0 {
		c.channels = on.Channels(c.list)
	}
	return c, nil
}

// Close frees the memory that the candidate holds on its device.
func (c *Candidate) Close() {
	c.model.Close()
	if c.members != nil {
		c.members.Close()
	}
}

// Method returns the candidate as a method for an exam on the days of on:
// inputs are brought to its own scaling and answers back, and sigma is
// calibrated.
func (c *Candidate) Method(name string, exam *evaluate.Exam, on samples.HeldOut) evaluate.Method {
	return evaluate.Method{Name: name, Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		inputs, maps, err := c.inputs(ctx, cases, exam, on)
		if err != nil {
			return nil, err
		}
		return c.answers(ctx, inputs, maps)
	}}
}

// answers returns the predictions for inputs in the candidate's own scaling.
func (c *Candidate) answers(ctx context.Context, inputs []impute.Inputs, maps []rescaling) ([]evaluate.Answer, error) {
	said, err := c.model.Predict(ctx, inputs)
	if err != nil {
		return nil, err
	}
	out := make([]evaluate.Answer, len(said))
	for i, p := range said {
		calibrate(p.Sigma, inputs[i], c.calibration.Calibration)
		maps[i].back(p.Mean, p.Sigma)
		out[i] = evaluate.Answer{Mean: p.Mean, Sigma: p.Sigma}
	}
	return out, nil
}

// Ensemble returns the members of the candidate as a method, of so many members
// each, about the mean that serves and calibrated. It adds the errors of both
// means to means, unless that is nil.
func (c *Candidate) Ensemble(name string, exam *evaluate.Exam, on samples.HeldOut, j Judging, means *Means) evaluate.Method {
	return evaluate.Method{Name: name, Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		inputs, maps, err := c.inputs(ctx, cases, exam, on)
		if err != nil {
			return nil, err
		}
		said, err := c.model.Predict(ctx, inputs)
		if err != nil {
			return nil, err
		}
		targets := make([]impute.Target, len(cases))
		for i, k := range cases {
			targets[i] = judged(inputs[i], said[i], k.Number)
		}
		drawn, err := c.draw(ctx, targets, j)
		if err != nil {
			return nil, err
		}
		var calibration impute.MembersCalibration
		if c.calibration.Members != nil {
			calibration = *c.calibration.Members
		}
		out := make([]evaluate.Answer, len(cases))
		for i, in := range inputs {
			members := calibration.Recentre(drawn[i], in, said[i], skill.Distances(field.Mask(in.Visible), in.Height, in.Width))
			for _, m := range members {
				maps[i].back(m, nil)
			}
			own := meanOf(drawn[i])
			maps[i].back(own, nil)
			maps[i].back(said[i].Mean, nil)
			if means != nil {
				means.Serves = cmp.Or(calibration.Centre, impute.OneStep)
				means.add(exam.Overlay(cases[i].Number), said[i].Mean, own)
			}
			mean := said[i].Mean
			if calibration.Centre == impute.MembersMean {
				mean = own
			}
			out[i] = evaluate.Answer{Mean: mean, Sigma: spreads(members), Members: members, Centred: true}
		}
		return out, nil
	}}
}

// spreads returns how far members stand from their mean, which is the sigma of the
// product that they are drawn for.
func spreads(members [][]float32) []float32 {
	out := make([]float32, len(members[0]))
	for i := range out {
		_, out[i] = impute.Departure(members, i)
	}
	return out
}

// inputs returns the inputs of the candidate for cases, in its own scaling and with
// its own analysis, and the rescalings to it.
func (c *Candidate) inputs(ctx context.Context, cases []evaluate.Case, exam *evaluate.Exam, on samples.HeldOut) ([]impute.Inputs, []rescaling, error) {
	inputs, maps := make([]impute.Inputs, len(cases)), make([]rescaling, len(cases))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, k := range cases {
		ref := exam.Overlay(k.Number).Ref
		maps[i] = c.rescaling(on, ref)
		group.Go(func() (err error) {
			in := k.Inputs
			in.Covariates = nil // those of the exam are in the order of another network
			if c.channels != nil {
				in.Covariates = c.channels.Cut(ref)
			}
			if c.analyser != nil && c.model.Design().Extras.Analysis && ctx.Err() == nil {
				in.Analysis, in.AnalysisSigma, err = c.analyser.Analyse(ref, in.Visible, exam.Mode())
			}
			inputs[i] = maps[i].inputs(in)
			return err
		})
	}
	return inputs, maps, group.Wait()
}

// judged returns the target of a draw of members: the window of a case number
// with the prediction p.
func judged(in impute.Inputs, p impute.Prediction, number int) impute.Target {
	return impute.Target{Inputs: in, Prediction: p, Stream: noise.New(1, "judged members").Sub(uint64(number))}
}

// draw draws members of windows, all of one size.
func (c *Candidate) draw(ctx context.Context, targets []impute.Target, j Judging) ([][][]float32, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	return c.members.Draw(ctx, targets, j.Members, j.ODE)
}

// Latency returns the shortest of some times that the prediction of one window
// takes: the longer ones measure other work on the machine.
func (c *Candidate) Latency(ctx context.Context, in impute.Inputs, now func() time.Time) (time.Duration, error) {
	const tries = 5
	in.Covariates = nil // as it may be of another network; that takes as long
	shortest := time.Duration(math.MaxInt64)
	for i := range tries + 1 {
		began := now()
		if _, err := c.model.Predict(ctx, []impute.Inputs{in}); err != nil {
			return 0, err
		}
		if i > 0 { // the first may compile
			shortest = min(shortest, now().Sub(began))
		}
	}
	return max(shortest, time.Nanosecond), nil // 0 would mean that nothing was measured
}

// A rescaling leads from the anomalies of an exam to those of a candidate in a
// window: a ↦ a·factor + offset.
type rescaling struct {
	factor float32
	offset []float32 // per cell; nil: nothing to do
}

func (c *Candidate) rescaling(on samples.HeldOut, at samples.Ref) rescaling {
	if c.scaling == nil {
		return rescaling{factor: 1}
	}
	place := on.Place(at.Day)
	exam := place.Scaling
	theirs, own := place.CutMap(exam.Mean, at.Window), place.CutMap(c.scaling.Mean, at.Window)
	r := rescaling{factor: float32(exam.Std / c.scaling.Std), offset: make([]float32, len(own))}
	for i := range own {
		if d := float64(theirs[i]) - float64(own[i]); d == d { // NaN beyond the grid
			r.offset[i] = float32(d / c.scaling.Std)
		}
	}
	return r
}

// inputs returns in with its values in the candidate's anomalies.
func (r rescaling) inputs(in impute.Inputs) impute.Inputs {
	if r.offset == nil {
		return in
	}
	in.Values = r.forward(in.Values, nil)
	in.Last.Value = r.forward(in.Last.Value, in.Last.Freshness)
	in.Next.Value = r.forward(in.Next.Value, in.Next.Freshness)
	in.Background, in.BackgroundSigma = r.forward(in.Background, nil), r.wider(in.BackgroundSigma)
	in.Analysis, in.AnalysisSigma = r.forward(in.Analysis, nil), r.wider(in.AnalysisSigma)
	return in
}

// wider scales standard deviations.
func (r rescaling) wider(sigma []float32) []float32 {
	if sigma == nil {
		return nil
	}
	out := make([]float32, len(sigma))
	for i, s := range sigma {
		out[i] = s * r.factor
	}
	return out
}

// forward scales values, with those of no freshness left at zero.
func (r rescaling) forward(values, freshness []float32) []float32 {
	if values == nil {
		return nil
	}
	out := make([]float32, len(values))
	for i, v := range values {
		if freshness == nil || freshness[i] > 0 {
			out[i] = v*r.factor + r.offset[i]
		}
	}
	return out
}

// back brings an answer to the anomalies of the exam, in place.
func (r rescaling) back(mean, sigma []float32) {
	if r.offset == nil {
		return
	}
	for i := range mean {
		mean[i] = (mean[i] - r.offset[i]) / r.factor
	}
	for i := range sigma {
		sigma[i] /= r.factor
	}
}

// calibrate applies a calibration to the sigmas of a window, in place.
func calibrate(sigma []float32, in impute.Inputs, c impute.Calibration) {
	if len(c.Factors) == 0 {
		return
	}
	distance := skill.Distances(field.Mask(in.Visible), in.Height, in.Width)
	for i := range sigma {
		sigma[i] = c.Apply(sigma[i], float32(distance[i]), in.DayOfYear)
	}
}
