package year

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// Week is the error of the products of a week, as a share of the variance of the sea
// before the year.
type Week struct {
	Week     int     `json:"week"`
	Champion string  `json:"champion"`
	Error    float64 `json:"error"`  // of the champion of the week
	Frozen   float64 `json:"frozen"` // of the champion at the change of sensor, had it stayed
}

// Promotion compares a new champion with the one before, on the days after it was
// made.
type Promotion struct {
	Week    int              `json:"week"`
	Version string           `json:"version"`
	Over    string           `json:"over"`
	Error   skill.Difference `json:"error"` // of the new champion less that of the one before
}

// Harmful reports whether the errors of the new champion are larger beyond chance.
func (p Promotion) Harmful() bool { return p.Error.Interval.Low > 0 }

// Result is the year in figures.
type Result struct {
	ChangeWeek int         `json:"change_week"`
	Tuned      []Tuned     `json:"tuned"`
	Weeks      []Week      `json:"weeks"`
	Promotions []Promotion `json:"promotions"`

	Before float64 `json:"before"` // error in the weeks before the change
	// Early is the recovery after two fine-tunes that knew the new sensor, in all weeks
	// that follow; Late that of the last champion, in the weeks after the year.
	Early Recovery `json:"early"`
	Late  Recovery `json:"late"`
}

// Recovery is the loss of skill by a change of sensor, and what became of it, as
// errors on the same days.
type Recovery struct {
	Week    int     `json:"week"`    // from which on it is measured
	Control float64 `json:"control"` // of the champion at the change, had the new sensor no bias
	Frozen  float64 `json:"frozen"`  // of the champion at the change
	Renewed float64 `json:"renewed"` // of the champion of Week
}

// Share returns the share of the lost skill that was recovered.
func (r Recovery) Share() float64 { return (r.Frozen - r.Renewed) / (r.Frozen - r.Control) }

// judge measures every champion on all days of the year.
func (y *yearRun) judge(ctx context.Context, all []Tuned) (Result, error) {
	r := Result{ChangeWeek: y.changeWeek(), Tuned: all}
	losses := map[string][]skill.Loss{} // by version
	champion := ""
	serving := make([]string, y.Weeks)
	for week, t := range all {
		if t.Promoted {
			if err := y.compare(ctx, champion, t.Version, losses); err != nil {
				return r, err
			}
			if champion != "" {
				p, err := y.promotion(t, champion, losses)
				if err != nil {
					return r, err
				}
				r.Promotions = append(r.Promotions, p)
			}
			champion = t.Version
		}
		serving[week] = champion
	}
	control, err := y.control(ctx, y.frozen(serving))
	if err != nil {
		return r, err
	}
	return y.tell(r, serving, losses, control)
}

// frozen returns the champion at the change of sensor.
func (y *yearRun) frozen(serving []string) string {
	return serving[min(max(y.changeWeek()-1, 0), len(serving)-1)]
}

// control returns the losses of a version on the days of a year whose new sensor has
// no bias: the sea and the gaps are the same, so that no other loss is taken for one
// by the bias.
func (y *yearRun) control(ctx context.Context, version string) ([]skill.Loss, error) {
	twin := *y
	twin.Sea.Change.Bias, twin.Sea.Change.Gain = 0, 0
	var err error
	if twin.series, err = seriesOf(twin.Config); err != nil || version == "" {
		return nil, err
	}
	losses := map[string][]skill.Loss{}
	err = twin.compare(ctx, "", version, losses)
	return losses[version], err
}

// week returns the time at which a week begins.
func (y *yearRun) week(n int) time.Time { return y.day(y.FirstDays + y.WeekDays*n) }

// compare adds the losses of a version on all days of the year, beside those of the
// champion before; empty: there was none.
func (y *yearRun) compare(ctx context.Context, champion, challenger string, losses map[string][]skill.Loss) error {
	if champion == "" {
		champion = challenger
	}
	var parts [2]version.Parts
	for i, id := range []string{champion, challenger} {
		v, err := y.store.Load(id)
		if err != nil {
			return err
		}
		if parts[i], err = retrain.Parts(v); err != nil {
			return err
		}
	}
	settings := version.DefaultSettings("tiny", false)
	settings.Imputer.Side, settings.Judging.Overlays = y.Side, 0
	ruling, err := version.Shadow{
		Series: y.series, Since: y.day(y.FirstDays), Settings: settings, Backend: y.engine, Champion: parts[0], Challenger: parts[1],
	}.Judge(ctx)
	if err != nil {
		return err
	}
	losses[challenger] = ruling.Challenger.Verdict.Losses.Squared
	return nil
}

// promotion compares a new champion with the one before on the days that follow.
func (y *yearRun) promotion(t Tuned, before string, losses map[string][]skill.Loss) (Promotion, error) {
	from, to := y.week(t.Week), y.week(t.Week).AddDate(0, 0, promotionDays)
	b := skill.DefaultBootstrap()
	b.BlockDays = 5 // there are eight weeks
	d, err := b.Paired(within(losses[t.Version], from, to), within(losses[before], from, to))
	if err != nil {
		return Promotion{}, fmt.Errorf("promotion of week %d: %w", t.Week, err)
	}
	return Promotion{Week: t.Week, Version: t.Version, Over: before, Error: d}, nil
}

// promotionDays is for how long a promotion is followed, and for how long before the
// change of sensor errors are what they usually are.
const promotionDays = 56

// within returns the losses of days from a time to before another.
func within(all []skill.Loss, from, to time.Time) []skill.Loss {
	var some []skill.Loss
	for _, l := range all {
		if !l.Day.Before(from) && l.Day.Before(to) {
			some = append(some, l)
		}
	}
	return some
}

// mean returns the mean loss of a pixel.
func mean(losses []skill.Loss) float64 {
	sum, pixels := 0.0, 0.0
	for _, l := range losses {
		sum, pixels = sum+l.Sum, pixels+l.Pixels
	}
	return sum / max(pixels, 1)
}

// tell adds the errors of the weeks, and the share of the lost skill that was won
// back.
func (y *yearRun) tell(r Result, serving []string, losses map[string][]skill.Loss, control []skill.Loss) (Result, error) {
	at := func(version string, from, to int) float64 {
		return mean(within(losses[version], y.week(from), y.week(to)))
	}
	frozen := y.frozen(serving)
	if frozen == "" {
		return r, errors.New("no model was promoted before the sensor changed: there is nothing to lose")
	}
	sum, n := 0.0, 0
	for week, champion := range serving {
		if champion == "" {
			continue
		}
		w := Week{Week: week, Champion: champion, Error: at(champion, week, week+1), Frozen: at(frozen, week, week+1)}
		r.Weeks = append(r.Weeks, w)
		if week < r.ChangeWeek && week >= r.ChangeWeek-max(promotionDays/y.WeekDays, 1) {
			sum, n = sum+w.Error, n+1
		}
	}
	r.Before = sum / float64(max(n, 1))
	knew := -1
	for i, t := range r.Tuned {
		if t.Learned > 0 && i > 0 && r.Tuned[i-1].Learned > 0 {
			knew = t.Week
			break
		}
	}
	if knew < 0 {
		return r, errors.New("no two fine-tunes knew the new sensor: the year ends too soon after its change")
	}
	recovery := func(champion string, from, to int) Recovery {
		return Recovery{
			Week: from, Frozen: at(frozen, from, to), Renewed: at(champion, from, to), Control: mean(within(control, y.week(from), y.week(to))),
		}
	}
	end := y.Weeks + max(promotionDays/y.WeekDays, 1)
	r.Early, r.Late = recovery(serving[knew], knew, y.Weeks), recovery(serving[y.Weeks-1], y.Weeks, end)
	return r, nil
}
