package skill

import (
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
	// OverInterpolation is the challenger's MSE less that of optimal
	// interpolation with the same information; nil: they were not compared.
	OverInterpolation *Difference
	// OverInterpolationCRPS is the same of the CRPS.
	OverInterpolationCRPS *Difference
}

// A Decision is the outcome of a contest with every reason for it.
type Decision struct {
	Promote bool     `json:"promote"`
	Reasons []string `json:"reasons"`
}

// Decide returns whether the challenger replaces the champion. It needs finite
// output, calibrated intervals and acceptable latency; against a champion it
// must also be better in MSE beyond chance, with no worse seams, on the same
// pixels, and no worse than optimal interpolation. Without a champion, optimal
// interpolation fills, and it has to be beaten beyond chance. In CRPS nobody may
// be worse than it beyond chance.
func (r Rule) Decide(c Contest) Decision {
	j := judge{decision: Decision{Promote: true}}
	r.judgeAlone(&j, c.Challenger)
	if c.Champion != nil {
		r.judgeAgainst(&j, *c.Champion, c)
	} else {
		j.say(true, "there is no champion to beat")
	}
	if d := c.OverInterpolation; d != nil {
		ok := r.better(*d)
		if c.Champion != nil {
			ok = d.Blocks > 0 && d.Interval.Low <= 0
		}
		j.say(ok, "against optimal interpolation %s", change(*d))
	}
	if d := c.OverInterpolationCRPS; d != nil {
		j.say(d.Blocks > 0 && d.Interval.Low <= 0, "against optimal interpolation CRPS changes by %+.4g (%+.1f %%), between %+.4g and %+.4g",
			d.Mean, 100*d.Relative, d.Interval.Low, d.Interval.High)
	}
	return j.decision
}

// better reports whether an MSE is lower beyond chance.
func (r Rule) better(d Difference) bool {
	return d.Blocks > 0 && d.P <= 1-r.Confidence && d.Mean < 0 && d.Interval.High < 0
}

// change formats a difference in MSE.
func change(d Difference) string {
	return fmt.Sprintf("MSE changes by %+.4g (%+.1f %%), between %+.4g and %+.4g, p = %.4f",
		d.Mean, 100*d.Relative, d.Interval.Low, d.Interval.High, d.P)
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
	j.say(e.Summary.Pixels > 0 && e.Summary.MSE != nil, "%d pixels were scored", e.Summary.Pixels)
	j.say(e.Summary.NonFinite == 0, "%d scored pixels are not finite", e.Summary.NonFinite)
	for _, kind := range []struct {
		name string
		*Calibration
	}{{"sigma", e.Summary.Gaussian}, {"members", e.Summary.Ensemble}} {
		if share, known := kind.Covers(nominal90); known {
			j.say(share >= r.CoverageLow && share <= r.CoverageHigh, "90 %% intervals of the %s cover %.3f, must cover %.2f to %.2f",
				kind.name, share, r.CoverageLow, r.CoverageHigh)
		}
	}
	if e.Summary.Gaussian == nil && e.Summary.Ensemble == nil {
		j.say(false, "no uncertainty was scored")
	}
	if r.LatencyLimit > 0 {
		j.say(e.Latency > 0 && e.Latency <= r.LatencyLimit, "one map takes %v, limit %v", e.Latency, r.LatencyLimit)
	}
}

// nominal90 is the probability of the intervals in products.
const nominal90 = 0.9

// judgeAgainst compares the challenger with the champion.
func (r Rule) judgeAgainst(j *judge, champion Entrant, c Contest) {
	a, b := champion.Summary, c.Challenger.Summary
	if c.MSE.Blocks == 0 {
		j.say(false, "champion and challenger cannot be compared: fewer than %d days judge, or one of them left pixels out", LeastDays)
		return
	}
	j.say(a.Samples == b.Samples && a.Pixels == b.Pixels && b.Samples == c.MSE.Samples,
		"champion and challenger have %d and %d samples, %d and %d pixels, %d samples compared",
		a.Samples, b.Samples, a.Pixels, b.Pixels, c.MSE.Samples)
	j.say(r.better(c.MSE), "%s", change(c.MSE))
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
		j.say(c.Challenger.Latency > 0 && c.Challenger.Latency <= limit, "one map takes %v, the champion %v, up to %v is accepted",
			c.Challenger.Latency, champion.Latency, limit)
	}
}
