package version

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// atPresent returns q with all days at the level of the present, and the changes of
// level by which those before were moved: those that the parent knows, and others that
// the days show. One mean map is then that of all days, and the old ones teach and
// judge what the sea of then would look like now. Series of several places are left as
// they are: a version of them has no mean map.
func (q Request) atPresent() (Request, []samples.Level) {
	if len(q.Series) != 1 {
		return q, nil
	}
	calendars := q.calendars()
	levels := q.Series[0].Levels(calendars[0], q.Parent.levels(q.Series[0]))
	if len(levels) == 0 {
		return q, nil
	}
	// The calendar is that of all days, those of an unknown level among them.
	q.Series, q.Calendars = []samples.Series{q.Series[0].AtPresent(levels)}, calendars
	return q, levels
}

// levels returns the changes of level that a version of the place of s knows.
func (p Parts) levels(s samples.Series) []samples.Level {
	known, err := parts.DecodeScaling(p[PartScaling])
	if err != nil || !known.Fits(s.Grid, s.Transform) {
		return nil
	}
	return known.Levels
}

// newLevel reports whether the days show a change of level that the parent does not
// know.
func (r *run) newLevel() bool {
	known := r.req.Parent.levels(r.req.Series[0])
	return slices.ContainsFunc(r.levels, func(l samples.Level) bool { return !slices.ContainsFunc(known, l.Same) })
}

// luck is how much less a fine-tune must err on the days that choose to be taken for
// better there, of 1: the error of two short ones differs by as much.
const luck = 0.03

// orParent returns the fine-tuned network, or the parent's as it was where that errs
// no more, but for luck, on the days that choose. What the parent has learned holds at
// the new level too, and the ups and downs of a few steps would hide from the gate what
// the level brings. The next fine-tune learns again.
func (r *run) orParent(ctx context.Context, tuned *impute.Model, report train.Report, weights []float32) (saver, train.Report, error) {
	before, err := r.score(ctx, weights)
	if err == nil && report.Score != nil && *report.Score < (1-luck)*before {
		return tuned, report, nil
	}
	tuned.Close()
	if err != nil {
		return nil, report, err
	}
	report.Score, report.ScoreStep = &before, 0
	parent, err := impute.NewModel(r.runner, r.s.Imputer.Design, r.s.Imputer, weights)
	return parent, report, err
}

// unknownLevels returns the changes of level that the champion knows and a training
// does not, though it has days from before: these are not what the champion is for.
func unknownLevels(q Request, levels []samples.Level) []samples.Level {
	if len(q.Series) != 1 || len(q.Series[0].Days) == 0 {
		return nil
	}
	first := samples.DateOf(q.Series[0].Days[0].Time)
	return slices.DeleteFunc(slices.Clone(q.Champion.levels(q.Series[0])), func(l samples.Level) bool {
		return l.Since <= first || slices.ContainsFunc(levels, l.Same)
	})
}

// judgeLevels adds to a ruling on days that were moved to the level of the present how
// the challenger did on those that were not: it must not err more there beyond chance,
// drawn day by day since they are few. Nobody is promoted before that can be told: it
// shows whether the level is as it was taken to be.
func (g Gate) judgeLevels(r *Ruling, levels, unknown []samples.Level) {
	for _, l := range unknown {
		g.add(&r.Decision, false, "the champion knows that the level of the data changed by %+.2g on %v, which these days do not show: they cannot be compared on the days before", l.By, l.Since)
	}
	if len(levels) == 0 {
		return
	}
	last := levels[len(levels)-1]
	text := fmt.Sprintf("the level of the data changed by %+.2g on %v: the days before are judged as if they had the level of now", last.By, last.Since)
	other, name := r.Interpolation, "optimal interpolation"
	if r.Champion != nil {
		other, name = r.Champion, "the champion"
	}
	boot := skill.DefaultBootstrap()
	boot.BlockDays = 1
	d, err := boot.Paired(lossesSince(r.Challenger, last.Since), lossesSince(*other, last.Since))
	var few *skill.TooFewDays
	switch {
	case errors.As(err, &few):
		r.Decision.Unjudged = r.Decision.Unjudged || r.Decision.Promote
		g.add(&r.Decision, false, "%s; of the days since %d can judge, which is too few: wait for more", text, few.Days)
	case err != nil:
		g.add(&r.Decision, false, "%s; it cannot be compared with %s on the days since: %v", text, name, err)
	default:
		g.add(&r.Decision, d.Interval.Low <= 0, "%s; on those since it has %s", text, d.Words("error", name, boot.Confidence))
	}
}

// lossesSince returns the losses from a day on.
func lossesSince(s Side, since samples.Date) []skill.Loss {
	return slices.DeleteFunc(slices.Clone(s.Verdict.Losses.Squared), func(l skill.Loss) bool { return samples.DateOf(l.Day) < since })
}
