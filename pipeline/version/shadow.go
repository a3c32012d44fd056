package version

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// A Shadow is a time in which champion and challenger both fill, and the
// champion is published: days that came after both were made.
type Shadow struct {
	Series               samples.Series // begins some weeks before Since
	Since                time.Time
	Settings             Settings
	Backend              backends.Backend
	Champion, Challenger Parts
}

// Judge lets both fill the days since. A challenger has won at the gate before
// it comes here, so it need not win beyond chance once more: it must not be
// worse, nor do anything else that the gate refuses.
func (q Shadow) Judge(ctx context.Context) (Ruling, error) {
	held, err := q.Series.Since(q.Since)
	if err != nil {
		return Ruling{}, fmt.Errorf("shadow: %w", err)
	}
	cfg := samples.DefaultOverlays(q.Settings.Imputer.Side)
	cfg.Count = q.Settings.Judging.Overlays
	overlays, err := held.Overlays(cfg)
	if err != nil {
		return Ruling{}, fmt.Errorf("shadow: %w", err)
	}
	exam, err := evaluate.NewExam(held, impute.Surroundings{Days: held, Analyser: analyserOf(held, impute.ServingOI)}, overlays, q.Settings.Judging.Mode)
	if err != nil {
		return Ruling{}, fmt.Errorf("shadow: %w", err)
	}
	runner, err := impute.NewRunner(q.Backend, q.Settings.Runner)
	if err != nil {
		return Ruling{}, fmt.Errorf("shadow: %w", err)
	}
	defer runner.Close()
	g := Gate{Rule: q.Settings.Rule}
	g.Low, g.High = rangeSeen(overlays, q.Settings.Judging.Margin)
	var sides [2]Side
	for i, files := range []Parts{q.Champion, q.Challenger} {
		c, err := LoadCandidate(files, runner, held)
		if err != nil {
			return Ruling{}, fmt.Errorf("shadow: %w", err)
		}
		if c.model.Design().Extras.Background {
			c.Close()
			return Ruling{}, errors.New("shadow: a network that is given backgrounds cannot be shadowed; promote it by hand")
		}
		sides[i], err = g.judge(ctx, exam, Entrant{Method: c.Method("version", exam, held)}, nil)
		c.Close()
		if err != nil {
			return Ruling{}, fmt.Errorf("shadow: %w", err)
		}
	}
	return g.shadowed(sides[0], sides[1]), nil
}

// shadowed decides after a shadow.
func (g Gate) shadowed(champion, challenger Side) Ruling {
	r := Ruling{Champion: &champion, Challenger: challenger}
	r.Decision = g.Rule.Decide(skill.Contest{Challenger: skill.Entrant{Summary: challenger.Verdict.Summary}})
	// The rule saw the challenger alone; the champion is dealt with here.
	r.Decision.Reasons = slices.DeleteFunc(r.Decision.Reasons, func(reason string) bool { return strings.Contains(reason, "no champion") })
	before, now := champion.Verdict.Summary.MSE, challenger.Verdict.Summary.MSE
	if before == nil || now == nil {
		g.add(&r.Decision, false, "there is no score of the days since")
		return r
	}
	g.add(&r.Decision, *now <= *before, "its mean square error on the days since is %.4g, the champion's %.4g", *now, *before)
	if challenger.Outside > champion.Outside {
		g.add(&r.Decision, false, "%d filled cells lie outside of what was seen, of the champion's %d", challenger.Outside, champion.Outside)
	}
	return r
}

// rangeSeen returns the range of the observed anomalies with a margin.
func rangeSeen(overlays []samples.Overlay, margin float64) (low, high float32) {
	for _, o := range overlays {
		for i, v := range o.Values {
			if o.Visible[i] || o.Scored[i] {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	wider := float32(margin) * (high - low)
	return low - wider, high + wider
}
