package skill

import (
	"cmp"
	"fmt"
	"time"
)

// A Rule says when a challenger replaces the champion. It is a pure function of
// the measurements: the same contest has the same outcome anywhere.
type Rule struct {
	Confidence    float64       // confidence that the MSE is lower
	CBGDSlack     float64       // allowed increase of |CBGD - 1|
	CoverageLow   float64       // least coverage of the 90 % intervals
	CoverageHigh  float64       // largest coverage of the 90 % intervals
	LatencyFactor float64       // largest latency in units of the champion's
	LatencyLimit  time.Duration // largest latency whatever the champion's; 0: no limit
}

// DefaultRule returns the default rule.
func DefaultRule() Rule {
	return Rule{
		Confidence:    0.95,
		CBGDSlack:     0.02,
		CoverageLow:   0.85,
		CoverageHigh:  0.95,
		LatencyFactor: 1.5, // a larger network of the next size up is about twice as slow
	}
}

// An Entrant is a model in a contest: its scores and the time it takes for
// one map.
type Entrant struct {
	Name    string // of what fills now, with an article; empty: the champion
	Summary Summary
	Latency time.Duration // 0: not measured
}

// A Contest is champion and challenger on the same overlays.
type Contest struct {
	Champion   *Entrant // nil: no champion yet
	Challenger Entrant
	// MSE is the challenger's less the champion's, by Bootstrap.Paired; not
	// read without a champion.
	MSE Difference
	// CRPS is the same of the CRPS; nil: it was not scored.
	CRPS *Difference
	// SameNetwork says that champion and challenger are one network, with another
	// calibration: the CRPS decides.
	SameNetwork bool
	// OverInterpolation is the challenger's MSE less that of optimal
	// interpolation with the same information; nil: they were not compared.
	OverInterpolation *Difference
	// OverInterpolationCRPS is the same of the CRPS.
	OverInterpolationCRPS *Difference
	// TooFew says that no difference can be told from chance; nil: it can.
	TooFew *TooFewDays
}

// A Decision is the outcome of a contest with every reason for it, those that
// compare first.
type Decision struct {
	Promote bool `json:"promote"`
	// Unjudged is set where nobody could tell whether the challenger is better,
	// which says nothing against it.
	Unjudged bool     `json:"unjudged,omitempty"`
	Reasons  []string `json:"reasons"`
}

// Decide returns whether the challenger replaces the champion. It needs finite
// output, calibrated intervals and acceptable latency; against a champion it
// must also be better in MSE beyond chance, or in CRPS where it is the same network,
// with no worse seams, on the same pixels, and no worse than optimal interpolation. Without a champion, optimal
// interpolation fills, and it has to be beaten beyond chance. In CRPS nobody may
// be worse than it beyond chance.
func (r Rule) Decide(c Contest) Decision {
	j := judge{decision: Decision{Promote: true, Unjudged: c.TooFew != nil}}
	switch {
	case c.TooFew != nil:
		j.say(false, "it could not be judged: %v", c.TooFew)
	case c.Champion != nil:
		r.compare(&j, c)
	}
	if d := c.OverInterpolation; d != nil {
		ok := r.better(*d)
		if c.Champion != nil {
			ok = d.Blocks > 0 && d.Interval.Low <= 0
		}
		note := r.chance(*d)
		if ok {
			note = ""
		}
		j.say(ok, "%s%s", d.Words("error", "optimal interpolation", r.Confidence), note)
	}
	if d := c.OverInterpolationCRPS; d != nil {
		j.say(d.Blocks > 0 && d.Interval.Low <= 0, "%s", d.Words("CRPS", "optimal interpolation", r.Confidence))
	}
	if c.Champion == nil {
		j.say(true, "there is no champion to beat")
	} else {
		r.judgeBeside(&j, *c.Champion, c.Challenger)
	}
	r.judgeAlone(&j, c.Challenger)
	return j.decision
}

// better reports whether an MSE is lower beyond chance.
func (r Rule) better(d Difference) bool {
	return d.Blocks > 0 && d.P <= 1-r.Confidence && d.Mean < 0 && d.Interval.High < 0
}

// chance says that a difference may be chance where its interval does not: with few
// blocks of days the two are not the same.
func (r Rule) chance(d Difference) string {
	if d.P <= 1-r.Confidence || !(d.Interval.High < 0) {
		return ""
	}
	return fmt.Sprintf("; but days as few make so large a difference by chance with a probability of %s %%", perCent(100*d.P))
}

// A judge collects reasons; a single one against is enough to refuse.
type judge struct {
	decision Decision
}

func (j *judge) say(ok bool, format string, args ...any) {
	j.decision.Promote = j.decision.Promote && ok
	mark := "ok: "
	if !ok {
		mark = "against: "
	}
	j.decision.Reasons = append(j.decision.Reasons, mark+fmt.Sprintf(format, args...))
}

// judgeAlone checks the requirements that do not depend on a champion.
func (r Rule) judgeAlone(j *judge, e Entrant) {
	if e.Summary.Pixels > 0 && e.Summary.MSE != nil {
		j.say(true, "%d cells were scored", e.Summary.Pixels)
	} else {
		j.say(false, "no cell was scored")
	}
	if e.Summary.NonFinite > 0 {
		j.say(false, "%d scored cells got no finite value", e.Summary.NonFinite)
	}
	for _, kind := range []struct {
		name string
		*Calibration
	}{{"sigma", e.Summary.Gaussian}, {"the members", e.Summary.Ensemble}} {
		if share, known := kind.Covers(nominal90); known {
			j.say(share >= r.CoverageLow && share <= r.CoverageHigh, "the 90 %% intervals of %s hold %.1f %% of the truth, must hold %.0f to %.0f %%",
				kind.name, 100*share, 100*r.CoverageLow, 100*r.CoverageHigh)
		}
	}
	if e.Summary.Gaussian == nil && e.Summary.Ensemble == nil {
		j.say(false, "no uncertainty was scored")
	}
	if r.LatencyLimit > 0 {
		j.say(e.Latency > 0 && e.Latency <= r.LatencyLimit, "one map takes %v, limit %v", rounded(e.Latency), r.LatencyLimit)
	}
}

// nominal90 is the probability of the intervals in products.
const nominal90 = 0.9

// compare asks whether the challenger is better than the champion.
func (r Rule) compare(j *judge, c Contest) {
	if c.MSE.Blocks == 0 {
		j.say(false, "champion and challenger cannot be compared: one of them left cells out")
		return
	}
	champion := cmp.Or(c.Champion.Name, "the champion")
	if c.SameNetwork && c.CRPS != nil {
		j.say(r.better(*c.CRPS), "%s, by the same network%s", c.CRPS.Words("CRPS", champion, r.Confidence), r.chance(*c.CRPS))
		j.say(c.MSE.Interval.Low <= 0, "%s", c.MSE.Words("error", champion, r.Confidence))
	} else {
		j.say(r.better(c.MSE), "%s%s", c.MSE.Words("error", champion, r.Confidence), r.chance(c.MSE))
	}
	a, b := c.Champion.Summary, c.Challenger.Summary
	if a.Samples != b.Samples || a.Pixels != b.Pixels || b.Samples != c.MSE.Samples {
		j.say(false, "they were not asked the same: the champion about %d windows with %d cells, the challenger about %d with %d, and %d were compared",
			a.Samples, a.Pixels, b.Samples, b.Pixels, c.MSE.Samples)
	}
}

// judgeBeside holds the challenger's seams and time against the champion's.
func (r Rule) judgeBeside(j *judge, champion, challenger Entrant) {
	a, b := champion.Summary, challenger.Summary
	switch {
	case a.CBGDError == nil:
	case b.CBGDError == nil:
		j.say(false, "the challenger's seams were not measured")
	default:
		j.say(*b.CBGDError <= *a.CBGDError+r.CBGDSlack, "|CBGD-1| goes from %.3f to %.3f, may rise by %.3f",
			*a.CBGDError, *b.CBGDError, r.CBGDSlack)
	}
	if champion.Latency > 0 {
		limit := time.Duration(float64(champion.Latency) * r.LatencyFactor)
		j.say(challenger.Latency > 0 && challenger.Latency <= limit, "one map takes %v, the champion %v, up to %v is accepted",
			rounded(challenger.Latency), rounded(champion.Latency), rounded(limit))
	}
}
