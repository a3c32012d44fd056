package fill

import (
	"fmt"
	"strings"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
)

// TestReportTrustOnRealSeas prints what following a starter as far as its evidence
// goes costs and gains, day after day as a service does it, against optimal
// interpolation that is tuned on the days before; run it with -report -v.
func TestReportTrustOnRealSeas(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	for _, sea := range newSeas {
		if !strings.Contains(sea.name, *only) {
			continue
		}
		t.Run(sea.name, func(t *testing.T) {
			g := sea.load(t)
			choose := starterChoice(t, g)
			var run serviceRun
			for at := range g.Fields {
				if err := run.next(t, g, at, choose); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d scored days, weight %.2f at the end | MSE of tuned oi %.5f, starter %+.1f %%, followed as far as trusted %+.1f %% | 90 %% covers %.3f %.3f %.3f",
				len(run.departures), run.weight, run.squares[0]/run.cells, 100*(run.squares[1]/run.squares[0]-1), 100*(run.squares[2]/run.squares[0]-1),
				run.within[0]/run.cells, run.within[1]/run.cells, run.within[2]/run.cells)
		})
	}
}

// A serviceRun scores the days of a sea one after the other, by optimal
// interpolation, the starter, and the starter as far as it is trusted.
type serviceRun struct {
	tunings    Tunings
	departures []skill.Departure
	scored     [2][]skill.ScoredDay
	weight     float64

	squares, within [3]float64
	cells           float64
}

func (r *serviceRun) next(t *testing.T, g ingest.Granule, at int, choose func(Job) Choice) error {
	truth := g.Fields[at]
	first := max(at-90, 0)
	visible, hidden, ok := Overlay(truth, g.Fields[max(at-infer.JudgedPastDays, 0):at], fmt.Sprint(at))
	if !ok {
		return nil
	}
	var history []ingest.Granule
	for d := first; d < at; d++ {
		history = append(history, ingest.Granule{SHA256: fmt.Sprint(d), Fields: g.Fields[d : d+1], Transform: g.Transform})
	}
	shown := g
	shown.SHA256, shown.Fields = fmt.Sprint(at), []field.Field{Hide(truth, hidden)}
	job := Job{Dataset: "new", Granule: shown, History: history, Sea: truth.Sea, Fill: infer.DefaultConfig(), Scored: true}
	before := job
	before.Granule.Fields = nil
	choice := choose(before) // scaled by the days before only
	if choice.Model == nil {
		return nil
	}
	if r.tunings.Due(at) {
		tuned, err := infer.Tune(t.Context(), g.Fields[:at], truth.Sea, g.Transform, job.Fill, nil)
		if err != nil {
			return err
		}
		r.tunings = r.tunings.Add(Tuning{Constants: tuned, Known: at})
	}
	job.Constants = r.tunings.Before(truth.Time)
	trust := skill.Trusted(r.departures, truth.Time, choice.Elsewhere)
	job.Fill, job.Model, job.Scaling, job.Trust = choice.Fill, choice.Model, choice.Scaling, &trust
	job.Interpolated, job.Widening = skill.Widen(r.scored[0], truth.Time), skill.Widen(r.scored[1], truth.Time)
	outcome, err := Analyse(t.Context(), job, nil)
	if err != nil {
		return err
	}
	a := outcome.Analyses[0]
	for c := range hidden {
		hidden[c] = hidden[c] && a.Flags[c]&infer.Interpolated != 0
	}
	want, value := make([]float32, len(hidden)), make([]float32, len(hidden))
	g.Transform.Forward(want, truth.Values)
	g.Transform.Forward(value, a.Value)
	w := truth.Grid.Width()
	far := skill.Distances(visible, len(visible)/w, w)
	sample := skill.Sample{Day: truth.Time, Height: len(visible) / w, Width: w, Truth: want, Visible: visible, Scored: hidden}
	plain, model := a.Apart.Interpolated, a.Apart.Modelled
	for k, e := range []struct{ Mean, Sigma []float32 }{{plain.Mean, plain.Sigma}, {model.Mean, model.Sigma}} {
		factors := []skill.Widening{job.Interpolated, job.Widening}[k].Factors(skill.Unchanged())
		r.tally(k, hidden, want, e.Mean, func(c int) float32 { return e.Sigma[c] * float32(factors.At(far[c])) })
		sample.Mean, sample.Sigma = e.Mean, e.Sigma
		r.scored[k] = append(r.scored[k], skill.ScoreDay(sample))
	}
	r.tally(2, hidden, want, value, func(c int) float32 { return a.Sigma[c] })
	r.cells += float64(hidden.Count())
	r.departures = append(r.departures, DepartureOf(a, truth, hidden, g.Transform))
	r.weight = trust.Weight
	return nil
}

// tally adds the errors of a method on the hidden cells of a day.
func (r *serviceRun) tally(k int, hidden field.Mask, want, mean []float32, sigma func(c int) float32) {
	for c, h := range hidden {
		if !h {
			continue
		}
		off := float64(want[c] - mean[c])
		r.squares[k] += off * off
		if off*off <= 1.6448536*1.6448536*float64(sigma(c)*sigma(c)) {
			r.within[k]++
		}
	}
}
