package scenes

import (
	"context"
	"fmt"
	"math"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/samples"
)

// typicalCoverage is the observed share of the sea that suits a picture: enough
// to recognise the sea, and enough left to fill.
const typicalCoverage = 0.4

// Picture fills a day with its real gaps and draws it: before, after, the
// uncertainty and up to two members. A zero day means the judged day with the
// most typical coverage. label names the variable with its unit.
func (c Config) Picture(ctx context.Context, sub Subject, day time.Time, label string) (chart.Maps, error) {
	s := sub.Series
	targets, scaling, err := c.targets(s)
	if err != nil {
		return chart.Maps{}, err
	}
	at := typicalDay(s, targets)
	if !day.IsZero() {
		if at = find(s, day); at < 0 {
			return chart.Maps{}, fmt.Errorf("there is no %s in the series", day.Format(time.DateOnly))
		}
	}
	sc := scene{Scene: infer.Scene{Frames: []field.Field{physicalField(s, s.Days[at])}, Sea: s.Sea, Transform: s.Transform}}
	sc.surround(sub, scaling)
	a, err := fillIn(ctx, sub, sc, sub.Fill.Network.WindowCells)
	if err != nil {
		return chart.Maps{}, err
	}
	return sheet(sub, s.Days[at], sc, a, label), nil
}

// typicalDay returns the day whose coverage is nearest to typicalCoverage.
func typicalDay(s samples.Series, days []int) int {
	best, least := 0, math.Inf(1)
	for _, d := range days {
		if off := math.Abs(share(s, s.Days[d]) - typicalCoverage); off < least {
			best, least = d, off
		}
	}
	return best
}

func share(s samples.Series, d samples.Day) float64 {
	seen := 0
	for _, v := range d.Values {
		if v == v { // not NaN
			seen++
		}
	}
	return float64(seen) / float64(max(s.Sea.Count(), 1))
}

func find(s samples.Series, day time.Time) int {
	for i, d := range s.Days {
		if d.Time.UTC().Format(time.DateOnly) == day.UTC().Format(time.DateOnly) {
			return i
		}
	}
	return -1
}

// sheet lays out the maps of an analysis.
func sheet(sub Subject, d samples.Day, sc scene, a infer.Analysis, label string) chart.Maps {
	after := transformed(sc, a.Value)
	values := chart.Range(d.Values, after)
	values.Label, values.Log10 = label, sc.Transform.Log10
	sigma := chart.Range(a.Sigma)
	sigma.Low, sigma.Label = 0, "1 sigma"
	if sc.Transform.Log10 {
		sigma.Label = "1 sigma, decades"
	}
	m := chart.Maps{
		Title:   d.Time.UTC().Format(time.DateOnly) + ", gaps filled",
		Caption: fmt.Sprintf("%.0f %% of the sea was seen; filled by %s; %s", 100*share(sub.Series, d), sub.name(), sub.Series.Grid),
		Grid:    sub.Series.Grid, Sea: sub.Series.Sea, Columns: 3,
		Panels: []chart.Panel{
			{Title: "as it was seen", Values: d.Values, Scale: values},
			{Title: "gaps filled", Values: after, Scale: values},
			{Title: "uncertainty", Values: a.Sigma, Scale: sigma},
		},
	}
	for k, member := range a.Members {
		if k < 2 {
			m.Panels = append(m.Panels, chart.Panel{Title: fmt.Sprintf("member %d", k+1), Values: transformed(sc, member), Scale: values})
		}
	}
	return m
}

func (s Subject) name() string {
	if s.Model != nil {
		return s.Model.Name()
	}
	return s.Fill.Method
}
