package version

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"lacuna/pipeline/parts"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Evaluation is the content of a version's evaluation.json: the trainings, the
// scores of challenger and champion, and the decision.
type Evaluation struct {
	Mode        impute.Mode            `json:"mode,omitempty"`
	Cases       int                    `json:"cases,omitempty"`    // number of overlays that judged
	Choosing    int                    `json:"choosing,omitempty"` // number of overlays that chose and calibrated
	Prior       *PriorReport           `json:"prior,omitempty"`
	Strength    *masks.Strength        `json:"strength,omitempty"`
	Queries     *partition.LowestQuery `json:"queries,omitempty"`
	Reliability *ReliabilityScore      `json:"reliability,omitempty"`
	Covariates  *covariate.Kept        `json:"covariates,omitempty"` // what each brings the imputer; nil: it sees none
	Reports     Reports                `json:"reports"`
	Pools       []partition.PoolUse    `json:"pools,omitempty"`
	Ruling      *Ruling                `json:"ruling,omitempty"`
	Members     *evaluate.Verdict      `json:"members,omitempty"` // verdict on the calibrated members, on a part of the cases
	Means       *Means                 `json:"means,omitempty"`   // of the ensembles that the verdict on members is about
	Values      Values                 `json:"values"`
	Months      Seasons                `json:"months,omitempty"`   // the values by season
	Coverage    Seasons                `json:"coverage,omitempty"` // observed share of windows of training days
}

// makeCalibration fits factors on sigma, and on the spread of members, so that
// intervals have their nominal coverage on the overlays that choose.
func (r *run) makeCalibration(ctx context.Context) error {
	data, err := r.folder.read(PartCalibration.checkpoint())
	if err != nil {
		return err
	}
	if data == nil {
		c, err := r.calibrations(ctx)
		if err != nil {
			return err
		}
		if data, err = json.Marshal(c); err != nil {
			return err
		}
		if err := r.folder.write(PartCalibration.checkpoint(), data); err != nil {
			return err
		}
	}
	r.parts[PartCalibration] = data
	return nil
}

// centreCases is for how many of them members are drawn, at most, to see which mean
// errs less: the two are a tenth apart or more.
const centreCases = 32

func (r *run) calibrations(ctx context.Context) (parts.Calibration, error) {
	var c parts.Calibration
	var cases []impute.Case        // of the one-step mean
	var oneStep, own []impute.Case // of both means, where members are drawn
	members := (*impute.Members)(nil)
	if data := r.parts[PartMembers]; data != nil {
		var err error
		if members, err = impute.LoadMembers(data, r.model); err != nil {
			return c, err
		}
		defer members.Close()
	}
	candidate := Candidate{model: r.model, members: members}
	for first := 0; first < len(r.choosing); first += r.s.Runner.Batch {
		r.hooks.Progress(Progress{Phase: PhaseCalibration, Step: first, Steps: len(r.choosing)})
		end := min(first+r.s.Runner.Batch, len(r.choosing))
		some := r.choosing[first:end]
		in, err := r.inputsThatChoose(ctx, first, end)
		if err != nil {
			return c, err
		}
		said, err := r.model.Predict(ctx, in)
		if err != nil {
			return c, err
		}
		var targets []impute.Target
		for i, o := range some {
			cases = append(cases, evaluate.Cases(o, evaluate.Answer{Mean: said[i].Mean, Sigma: said[i].Sigma})...)
			if members != nil && first+i < min(r.s.Judging.MemberCases, centreCases) {
				targets = append(targets, judged(in[i], said[i], first+i))
			}
		}
		drawn, err := candidate.draw(ctx, targets, r.s.Judging)
		if err != nil {
			return c, err
		}
		for i := range targets {
			oneStep = append(oneStep, evaluate.Cases(some[i], evaluate.Answer{Mean: said[i].Mean, Sigma: said[i].Sigma})...)
			own = append(own, evaluate.Cases(some[i], evaluate.Answer{Mean: meanOf(drawn[i]), Sigma: said[i].Sigma})...)
		}
	}
	var err error
	if c.Calibration, err = impute.Calibrate(cases, r.s.Judging.Calibration); err != nil || members == nil {
		return c, err
	}
	centre := impute.OneStep
	if squares(own) < squares(oneStep) {
		centre, cases = impute.MembersMean, own
	}
	m, err := impute.CalibrateMembers(cases, r.s.Judging.Calibration)
	m.Centre = centre
	c.Members = &m
	return c, err
}

// judge asks champion and challenger about the same overlays.
func (r *run) judge(ctx context.Context) error {
	delete(r.parts, PartScaling) // the parent's
	if s := scalingOf(r.train); s != nil {
		if r.analysis != nil && r.analysis.Tuned {
			s.Constants = &r.analysis.Constants[0] // there is one grid only
		}
		s.Covariates, s.Levels = r.channels, r.levels
		if r.queries != nil {
			s.Query = queryShares(r.queries[0]) // there is one grid only
		}
		if r.s.Only == OnlyCalibration { // its network was asked as that of the parent
			before, err := r.parentScaling()
			if err != nil {
				return fmt.Errorf("read the %s of the parent: %w", PartScaling, err)
			}
			if before != nil {
				s.Query = before.Query
			}
		}
		data, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("write the %s: %w", PartScaling, err)
		}
		r.parts[PartScaling] = data
	}
	// The decision is kept under the name of the champion that it was about.
	kept := "ruling-" + r.req.incumbent().fingerprint() + ".json"
	var before Evaluation
	known, err := r.folder.load(kept, &before)
	if err != nil {
		return err
	}
	if known {
		r.eval = before
		return nil
	}
	if err := r.contest(ctx); err != nil {
		return err
	}
	r.eval.Mode, r.eval.Cases, r.eval.Choosing = r.s.Judging.Mode, len(r.judging), len(r.choosing)
	r.eval.Values, r.eval.Months = r.values()
	r.eval.Coverage = coverageOf(r.train, r.s.Imputer.Side)
	return r.folder.save(kept, r.eval)
}

// setExam sets the exam of the gate.
func (r *run) setExam(context.Context) (err error) {
	r.exam, err = evaluate.NewExam(r.judgeSide, r.aroundJudge, r.judging, r.s.Judging.Mode)
	return err
}

// interpolateExam sets the exam and has optimal interpolation sit it, which takes
// processors only. The analyses that networks depart from there are made with it.
func (r *run) interpolateExam(ctx context.Context) error {
	if err := r.setExam(ctx); err != nil {
		return err
	}
	floor := evaluate.Remembered(r.analysis.Method(r.exam))
	r.floor = &floor
	_, err := r.exam.Judge(ctx, floor, nil, nil)
	return err
}

func (r *run) contest(ctx context.Context) error {
	if err := r.examined.or(ctx, r.setExam); err != nil {
		return err
	}
	exam := r.exam
	var err error
	tell := func(done, total int) { r.hooks.Progress(Progress{Phase: PhaseGate, Step: done, Steps: total}) }
	gate := Gate{Rule: r.s.Rule, Low: r.low, High: r.high}
	var champion *Entrant
	var served *Candidate
	if serving := r.req.incumbent(); serving != nil {
		if served, err = LoadCandidate(serving, r.runner, r.judgeSide); err != nil {
			return fmt.Errorf("load the champion: %w", err)
		}
		defer served.Close()
		gate.SameNetwork = bytes.Equal(serving[PartImputer], r.parts[PartImputer])
		champion = &Entrant{Method: served.Method("champion", exam, r.judgeSide)}
		if r.req.Champion == nil {
			champion.Name, champion.Served = "the starter model", true
		}
	}
	candidate, err := LoadCandidate(r.parts, r.runner, r.judgeSide)
	if err != nil {
		return fmt.Errorf("load the version that was just made: %w", err)
	}
	defer candidate.Close()
	challenger := Entrant{Method: candidate.Method("challenger", exam, r.judgeSide)}
	if challenger.Faults, err = r.selfTest(ctx, candidate); err != nil {
		return err
	}
	if r.analysis != nil {
		for _, c := range []*Candidate{candidate, served} {
			if c != nil {
				c.asked(r.analysis.Constants[0])
			}
		}
	}
	racers := []clocked{{candidate, &challenger}}
	if r.req.Champion != nil { // a starter is quick because it is small, which is no reference
		racers = append(racers, clocked{served, champion})
	}
	if err := r.race(ctx, racers...); err != nil {
		return err
	}
	interpolation, err := r.interpolation(ctx)
	if err != nil {
		return err
	}
	if interpolation, gate.Served, err = r.explain(ctx, interpolation, exam); err != nil {
		return fmt.Errorf("fit covariates: %w", err)
	}
	gate.Interpolation = &interpolation
	if gate.Served == exam { // else it knows covariates too
		gate.floor = r.floor
	}
	ruling, err := gate.Decide(ctx, exam, challenger, champion, tell)
	if err != nil {
		return err
	}
	gate.judgeLevels(&ruling, r.levels, unknownLevels(r.req, r.levels))
	gate.add(&ruling.Decision, true, "%s", r.split.describe())
	if r.eval.Covariates != nil {
		for _, v := range r.eval.Covariates.Judged {
			gate.add(&ruling.Decision, true, "covariate %v", v)
		}
	}
	r.eval.Ruling = &ruling
	return r.judgeMembers(ctx, candidate)
}

// clocked is a candidate whose time is taken for an entrant.
type clocked struct {
	*Candidate
	entrant *Entrant
}

// race takes the times of candidates by turns, so that other work on the machine
// slows all of them.
func (r *run) race(ctx context.Context, all ...clocked) error {
	const rounds = 3
	for range rounds {
		for _, c := range all {
			took, err := c.Latency(ctx, r.scoring[0], r.hooks.Now)
			if err != nil {
				return fmt.Errorf("time a candidate: %w", err)
			}
			if c.entrant.Latency == 0 || took < c.entrant.Latency {
				c.entrant.Latency = took
			}
		}
	}
	return nil
}

// selfTest compares the imputer that was loaded from its file with the one in
// memory on one window, and runs the reliability network once.
func (r *run) selfTest(ctx context.Context, loaded *Candidate) ([]string, error) {
	var faults []string
	window := r.scoring[:1]
	want, err := r.model.Predict(ctx, window)
	if err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	got, err := loaded.model.Predict(ctx, window)
	if err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	const tolerance = 1e-4 // in standard deviations; the same program gives the same bits
	if d := largestDifference(want[0].Mean, got[0].Mean); !(d <= tolerance) {
		faults = append(faults, fmt.Sprintf("the model that was saved and loaded answers differently by %.3g", d))
	}
	if data := r.parts[PartReliability]; data != nil {
		rel, err := impute.LoadReliability(data, r.runner)
		if err != nil {
			return append(faults, "the reliability network does not load: "+err.Error()), nil
		}
		defer rel.Close()
		p, err := rel.Probability(ctx, window[0])
		if err != nil {
			return nil, fmt.Errorf("self-test: %w", err)
		}
		for _, v := range p {
			if !(v >= 0 && v <= 1) {
				return append(faults, fmt.Sprintf("the reliability network says %v, which is no probability", v)), nil
			}
		}
	}
	return faults, nil
}

func largestDifference(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return d
		}
		worst = max(worst, d)
	}
	return worst
}

// judgeMembers scores the ensemble on a part of the cases. It does not decide:
// whether members are published depends on their coverage, where they serve.
func (r *run) judgeMembers(ctx context.Context, c *Candidate) error {
	if c.members == nil {
		return nil
	}
	some := r.judging[:min(r.s.Judging.MemberCases, len(r.judging))]
	exam, err := evaluate.NewExam(r.judgeSide, r.aroundJudge, some, r.s.Judging.Mode)
	if err != nil {
		return err
	}
	var means Means
	verdict, err := exam.Judge(ctx, c.Ensemble("members", exam, r.judgeSide, r.s.Judging, &means), nil, func(done, total int) {
		r.hooks.Progress(Progress{Phase: PhaseGate, Step: done, Steps: total})
	})
	if err != nil {
		return fmt.Errorf("judge the members: %w", err)
	}
	r.eval.Members, r.eval.Means = &verdict, means.mean()
	return nil
}

// values returns the statistics of the training values.
func (r *run) values() (Values, Seasons) {
	var all []samples.Series
	for _, p := range r.train.Places() {
		first, end := p.Days()
		place := samples.Series{}
		for day := first; day < end; day++ {
			whole := samples.Ref{Day: day, Window: samples.Window{Height: p.Grid.Height(), Width: p.Grid.Width()}}
			values := r.train.Cut(whole).Values
			for cell, v := range values {
				values[cell] = p.Scaling.Inverse(v, cell)
			}
			place.Days = append(place.Days, samples.Day{Time: r.train.Time(day), Values: values})
		}
		all = append(all, place)
	}
	return valuesOf(all...)
}

// outcome puts everything together.
func (r *run) outcome() (Outcome, error) {
	out := Outcome{
		Parts: r.parts, Evaluation: r.eval, Queries: r.queries, Transform: r.train.Transform(), Scaling: scalingOf(r.train),
		Calendars: r.split.calendars, Days: r.split.Days, Beside: r.split.beside,
	}
	if r.eval.Ruling != nil {
		out.Decision = r.eval.Ruling.Decision
	} else {
		out.Decision = skill.Decision{Reasons: []string{"against: only the prior was trained, which fills nothing by itself: there was nothing to judge"}}
	}
	data, err := json.MarshalIndent(r.eval, "", " ")
	if err != nil {
		return out, fmt.Errorf("write the %s: %w", PartEvaluation, err)
	}
	out.Parts[PartEvaluation] = data
	for _, part := range []Part{PartPrior, PartImputer, PartMembers, PartReliability} {
		if data := out.Parts[part]; data != nil {
			f, err := netfile.Decode(data)
			if err != nil {
				return out, err
			}
			out.Networks = append(out.Networks, Network{Part: part, Backbone: f.Config.Backbone, Size: f.Config.Size, Weights: len(f.Weights)})
		}
	}
	return out, nil
}
