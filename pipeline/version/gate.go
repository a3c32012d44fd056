package version

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/skill"
)

// A Gate decides whether a challenger replaces the champion.
type Gate struct {
	Rule skill.Rule
	// Low and High are the range that answers must lie in, in the normalised
	// anomalies of the exam.
	Low, High float32
	// Interpolation is optimal interpolation as it was set for the exam; nil: with
	// its default constants and its own sigma.
	Interpolation *Interpolation
	// Served is the exam as optimal interpolation sees it where it serves, with the part
	// that covariates explain; nil: as everybody does.
	Served *evaluate.Exam
	// SameNetwork says that champion and challenger are one network.
	SameNetwork bool
	floor       *evaluate.Method // optimal interpolation with its answers; nil: it is asked
}

// An Entrant is a method at the gate.
type Entrant struct {
	Name    string // of what fills now, with an article; empty: the champion
	Method  evaluate.Method
	Latency time.Duration // time for one window; 0: not measured
	Faults  []string      // found by its self-test, a sentence each
	// Served says that it departs from the optimal interpolation that serves, as a starter
	// does, and not from one of its own.
	Served bool
}

// Side is how an entrant did.
type Side struct {
	Verdict        evaluate.Verdict `json:"verdict"`
	LatencySeconds float64          `json:"latency_seconds"`
	Outside        int              `json:"outside"` // cells outside of the physical range

	answer []float32 // to the case that is shown
}

// A Ruling is the decision of the gate and the scores that it rests on.
type Ruling struct {
	Challenger Side              `json:"challenger"`
	Champion   *Side             `json:"champion,omitempty"`
	MSE        *skill.Difference `json:"mse_difference,omitempty"`
	CRPS       *skill.Difference `json:"crps_difference,omitempty"`
	// Interpolation is how optimal interpolation did, InterpolationBy what it was
	// set to, and OverInterpolation the challenger's MSE less its, with the CRPS beside.
	Interpolation         *Side             `json:"interpolation,omitempty"`
	InterpolationBy       *Interpolation    `json:"interpolation_by,omitempty"`
	OverInterpolation     *skill.Difference `json:"over_interpolation,omitempty"`
	OverInterpolationCRPS *skill.Difference `json:"over_interpolation_crps,omitempty"`
	Decision              skill.Decision    `json:"decision"`
	Scene                 *Scene            `json:"scene,omitempty"`
}

// Decide asks both about the same exam, and optimal interpolation besides. A
// challenger that cannot answer is refused; a champion that cannot is an error,
// because the two cannot be compared.
func (g Gate) Decide(ctx context.Context, exam *evaluate.Exam, challenger Entrant, champion *Entrant, progress func(done, total int)) (Ruling, error) {
	r := Ruling{InterpolationBy: g.Interpolation}
	var contest skill.Contest
	floor, err := g.judge(ctx, exam, Entrant{Method: g.interpolation(cmp.Or(g.Served, exam)), Served: true}, progress)
	if err != nil {
		return r, fmt.Errorf("judge interpolation: %w", err)
	}
	r.Interpolation = &floor
	if champion != nil {
		side, err := g.judge(ctx, exam, *champion, progress)
		if err != nil {
			return r, fmt.Errorf("judge the champion: %w", err)
		}
		r.Champion = &side
		contest.Champion = &skill.Entrant{Name: champion.Name, Summary: side.Verdict.Summary, Latency: champion.Latency}
	}
	side, err := g.judge(ctx, exam, challenger, progress)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Decision = skill.Decision{Reasons: []string{"against: the challenger gives no answer: " + err.Error()}}
		return r, nil
	}
	r.Challenger = side
	r.Scene = sceneOf(exam, floor.answer, side.answer, "optimal interpolation")
	if champion != nil {
		r.Scene = sceneOf(exam, r.Champion.answer, side.answer, cmp.Or(champion.Name, "the champion"))
	}
	contest.Challenger = skill.Entrant{Summary: side.Verdict.Summary, Latency: challenger.Latency}
	over, overCRPS, unpaired := side.Verdict.Against(floor.Verdict)
	if errors.As(unpaired, &contest.TooFew) {
		unpaired = nil // the rule says it
	} else if unpaired == nil {
		contest.OverInterpolation, r.OverInterpolation = &over, &over
		contest.OverInterpolationCRPS, r.OverInterpolationCRPS = overCRPS, overCRPS
	}
	if champion != nil {
		mse, crps, err := side.Verdict.Against(r.Champion.Verdict)
		if err != nil {
			// There are too few days, or pixels that are not finite are left out of
			// one side only and the two cannot be paired. The rule says so by itself.
			contest.MSE = skill.Difference{}
			_ = errors.As(err, &contest.TooFew)
		} else {
			contest.MSE, contest.CRPS, r.MSE, r.CRPS = mse, crps, &mse, crps
		}
	}
	contest.SameNetwork = g.SameNetwork
	r.Decision = g.Rule.Decide(contest)
	if g.Interpolation != nil {
		g.add(&r.Decision, true, "%s", g.Interpolation)
	}
	if unpaired != nil {
		g.add(&r.Decision, false, "it cannot be told from optimal interpolation: %v", unpaired)
	}
	if side.Outside > 0 {
		g.add(&r.Decision, false, "%d filled cells lie outside %.3g to %.3g, the range of the training values with a margin", side.Outside, g.Low, g.High)
	}
	for _, fault := range challenger.Faults {
		g.add(&r.Decision, false, "%s", fault)
	}
	return r, nil
}

// interpolation returns the method that a challenger has to better.
func (g Gate) interpolation(exam *evaluate.Exam) evaluate.Method {
	if g.floor != nil {
		return *g.floor
	}
	if g.Interpolation == nil {
		return exam.Interpolation()
	}
	return g.Interpolation.Method(exam)
}

// add appends a reason in the words of the rule.
func (g Gate) add(d *skill.Decision, ok bool, format string, args ...any) {
	mark := "ok: "
	if !ok {
		mark, d.Promote = "against: ", false
	}
	d.Reasons = append(d.Reasons, mark+fmt.Sprintf(format, args...))
}

// judge scores one entrant and counts the cells that it fills outside of the
// range.
func (g Gate) judge(ctx context.Context, exam *evaluate.Exam, e Entrant, progress func(done, total int)) (Side, error) {
	side := Side{LatencySeconds: e.Latency.Seconds()}
	var err error
	if e.Served {
		exam = cmp.Or(g.Served, exam)
	}
	pictured := shown(exam)
	side.Verdict, err = exam.Judge(ctx, e.Method, func(i int, a evaluate.Answer) {
		o := exam.Overlay(i)
		if i == pictured {
			side.answer = slices.Clone(a.Mean)
		}
		for cell, sea := range o.Sea {
			if sea && !o.Visible[cell] && !(a.Mean[cell] >= g.Low && a.Mean[cell] <= g.High) {
				side.Outside++
			}
		}
	}, progress)
	return side, err
}

// Against returns the reasons that speak against a promotion, without their
// mark.
func Against(d skill.Decision) []string {
	var out []string
	for _, r := range d.Reasons {
		if text, ok := strings.CutPrefix(r, "against: "); ok {
			out = append(out, text)
		}
	}
	return out
}
