package version

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Interpolation is optimal interpolation as the gate judges it: with constants
// and a calibration from the same days as those of the network beside it.
type Interpolation struct {
	Constants []parts.Constants `json:"constants"` // of each grid
	Tuned     bool              `json:"tuned"`     // false: they are the default ones
	// Tuning is its MSE with constants tuned on training days less that with the
	// default ones, on the overlays that choose; nil: nothing could be tuned.
	Tuning      *skill.Difference  `json:"tuning,omitempty"`
	Calibration impute.Calibration `json:"calibration"` // factors on sigma, from the overlays that choose
	// Covariates are what other variables say of the days; nil: they have none.
	Covariates *covariate.Regression `json:"covariates,omitempty"`
}

// Method returns it as a method for an exam on days of the same grids.
func (n Interpolation) Method(exam *evaluate.Exam) evaluate.Method {
	plain := exam.InterpolationBy(func(place int, oi classical.OI) classical.OI { return n.Constants[place].Of(oi) })
	return evaluate.Method{Name: plain.Name, Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		answers, err := plain.Fill(ctx, cases)
		for i := range answers {
			calibrate(answers[i].Sigma, cases[i].Inputs, n.Calibration)
		}
		return answers, err
	}}
}

// String says what was judged, for people.
func (n Interpolation) String() string {
	which := "default constants, because too little can be hidden to tune others"
	if n.Tuning != nil {
		which = fmt.Sprintf("default constants, because those tuned on training days change its MSE by %+.1f %% on the days that choose, no gain beyond chance", 100*n.Tuning.Relative)
	}
	if n.Tuned {
		which = fmt.Sprintf("constants tuned on training days, which change its MSE by %+.1f %% on the days that choose", 100*n.Tuning.Relative)
	}
	text := fmt.Sprintf("optimal interpolation has %s, and a sigma calibrated on %d cells of those", which, n.Calibration.Cases)
	switch {
	case n.Covariates.Any() && n.Covariates.Gain != nil:
		text += fmt.Sprintf("; it knows %s, which save %v of its squared error", n.Covariates.Names(), *n.Covariates.Gain)
	case n.Covariates.Any():
		text += "; it knows " + n.Covariates.Names()
	case n.Covariates != nil:
		text += "; no covariate pays for it"
	}
	return text
}

// Files of the checkpoint folder that keep the Interpolation that networks depart from,
// and the one that knows covariates.
const interpolationFile, explainedFile = "interpolation.json", "interpolation-covariates.json"

// interpolation tunes optimal interpolation on the training days and calibrates it
// on the overlays that choose. Tuned constants serve where they are better there
// beyond chance: they are those of the analysis that the network departs from, and
// of the optimal interpolation that it is judged against, which may know covariates too.
func (r *run) interpolation(ctx context.Context) (Interpolation, error) {
	if r.analysis != nil {
		return *r.analysis, nil
	}
	n, err := r.findInterpolation(ctx, interpolationFile, r.train, r.chooseSide)
	if err == nil {
		r.analysis = &n
	}
	return n, err
}

// findInterpolation does so for the two sides, and keeps the result in a file.
func (r *run) findInterpolation(ctx context.Context, file string, train samples.Train, choose samples.HeldOut) (Interpolation, error) {
	var n Interpolation
	if known, err := r.folder.load(file, &n); known || err != nil {
		return n, err
	}
	exam, err := evaluate.NewExam(choose, impute.Surroundings{Days: choose}, r.choosing, r.s.Judging.Mode)
	if err != nil {
		return n, err
	}
	plain := Interpolation{Constants: defaultConstants(choose)}
	if inherited := r.parentConstants(); inherited != nil {
		plain = Interpolation{Constants: inherited, Tuned: true}
	}
	answers, before, err := judgeAll(ctx, exam, plain.Method(exam), r.tellBackground)
	if err != nil {
		return n, fmt.Errorf("judge interpolation: %w", err)
	}
	n = plain
	tuned, err := r.tunedConstants(ctx, train)
	if err != nil && !errors.Is(err, classical.ErrNoOverlays) {
		return n, fmt.Errorf("tune interpolation: %w", err)
	}
	if err == nil {
		better, after, err := judgeAll(ctx, exam, Interpolation{Constants: tuned}.Method(exam), r.tellBackground)
		if err != nil {
			return n, fmt.Errorf("judge interpolation: %w", err)
		}
		if d, _, err := after.Against(before); err == nil {
			n.Tuning = &d
			if d.Blocks > 0 && d.Interval.High < 0 {
				n.Constants, n.Tuned, answers = tuned, true, better
			}
		}
	}
	var cases []impute.Case
	for i, a := range answers {
		cases = append(cases, evaluate.Cases(r.choosing[i], a)...)
	}
	if n.Calibration, err = impute.Calibrate(cases, r.s.Judging.Calibration); err != nil {
		return n, fmt.Errorf("calibrate interpolation: %w", err)
	}
	return n, r.folder.save(file, n)
}

// judgeAll returns the answers of a method to all cases of an exam, and its verdict.
func judgeAll(ctx context.Context, exam *evaluate.Exam, m evaluate.Method, tell func(done, total int)) ([]evaluate.Answer, evaluate.Verdict, error) {
	answers := make([]evaluate.Answer, exam.Cases())
	v, err := exam.Judge(ctx, m, func(i int, a evaluate.Answer) { answers[i] = a }, tell)
	return answers, v, err
}

func defaultConstants(of interface{ Places() []*samples.Place }) []parts.Constants {
	var out []parts.Constants
	for _, p := range of.Places() {
		out = append(out, constantsOf(classical.DefaultOI(p.Grid)))
	}
	return out
}

// parentConstants returns those that the parent was made with, where it is of the
// same place; nil: it has none. A fine-tune begins with its weights, which depart
// from an analysis by them.
func (r *run) parentConstants() []parts.Constants {
	s, err := r.parentScaling()
	if err != nil || s == nil || s.Constants == nil {
		return nil
	}
	return []parts.Constants{*s.Constants}
}

func constantsOf(oi classical.OI) parts.Constants {
	return parts.Constants{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: oi.Nugget}
}

// tunedConstants tunes those of every grid on windows of training days.
func (r *run) tunedConstants(ctx context.Context, train samples.Train) ([]parts.Constants, error) {
	var out []parts.Constants
	for place := range train.Places() {
		oi, _, err := TuneInterpolation(ctx, train, place, r.own, r.s.Judging.Mode, min(r.s.Judging.Choosing, TuningWindows), stream(r.s, "interpolation"))
		if err != nil {
			return nil, err
		}
		out = append(out, constantsOf(oi))
	}
	return out, nil
}

// TuningWindows is the number of windows that settles the constants of optimal
// interpolation: five times as many did no better on held-out chlorophyll.
const TuningWindows = 120

// TuneInterpolation tunes optimal interpolation for a place of the training days:
// on at most so many windows among refs, under the gaps of other training days, with
// the days around that a mode shows. It sees what a network learns from.
func TuneInterpolation(ctx context.Context, train samples.Train, place int, refs []samples.Ref, mode impute.Mode, windows int, s noise.Stream) (classical.OI, classical.Score, error) {
	p := train.Places()[place]
	own := slices.DeleteFunc(slices.Clone(refs), func(ref samples.Ref) bool { return train.Place(ref.Day) != p })
	patches := spreadPatches(own, windows, train.Cut)
	split, err := partition.Empirical(train).Partition(ctx, patches, s)
	if err != nil {
		return classical.OI{}, classical.Score{}, err
	}
	past, future := mode.Window()
	const most = 25 // cells of a window: errors of neighbours are alike, so that more windows tell more
	days := make([]classical.Hidden, len(patches))
	for i, patch := range patches {
		h := classical.Hidden{Truth: patch.Values}
		h.Series, h.Target = train.Around(patch.Ref, split[i].Context, past, future)
		for cell, asked := range split[i].Query {
			if asked {
				h.Cells = append(h.Cells, int32(cell))
			}
		}
		s.Rand(uint64(i)).Shuffle(len(h.Cells), func(a, b int) { h.Cells[a], h.Cells[b] = h.Cells[b], h.Cells[a] })
		h.Cells = h.Cells[:min(len(h.Cells), most)]
		days[i] = h
	}
	return classical.TuneOn(ctx, days, classical.DefaultOI(p.Grid))
}
