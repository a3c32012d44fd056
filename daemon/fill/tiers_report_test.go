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

// TestReportTiers prints how the tiers fast and full of a starter do on the days of
// a sea in their order, calibrated by the days scored before as the service does:
// error, the size of the uncertainty, coverage and CRPS, and the error of the two
// means. Run it with -report -v.
func TestReportTiers(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	for _, sea := range newSeas {
		if !strings.Contains(sea.name, *only) {
			continue
		}
		t.Run(sea.name, func(t *testing.T) {
			g := middle(sea.load(t))
			choose := starterChoice(t, g)
			const history = 20
			days := len(g.Fields) - history
			n := min(*targets, days)
			for _, tier := range []infer.Tier{infer.Fast, infer.Full} {
				r := tierReport{scores: skill.NewScores(skill.Options{Bootstrap: skill.DefaultBootstrap()})}
				for k := range n {
					if err := r.add(t, g, history+k*days/n, tier, choose); err != nil {
						t.Fatal(err)
					}
				}
				t.Logf("%-5s %s", tier, r)
			}
		})
	}
}

// middle returns the middle of a sea: members of it cost seconds each.
func middle(g ingest.Granule) ingest.Granule {
	const side = 64
	h, w := g.Fields[0].Grid.Height(), g.Fields[0].Grid.Width()
	part := newSea{high: min(side, h), wide: min(side, w)}
	part.row, part.col = (h-part.high)/2, (w-part.wide)/2
	for i, f := range g.Fields {
		g.Fields[i] = crop(f, part)
	}
	return g
}

// tierReport are the scores of a tier.
type tierReport struct {
	scored           []skill.ScoredDay
	scores           *skill.Scores
	oneStep, members float64 // sums of squares
	cells            int
}

// add fills a day under the gaps of another, with twenty days before it. The first
// ten days that are scored calibrate only.
func (r *tierReport) add(t *testing.T, g ingest.Granule, day int, tier infer.Tier, choose func(Job) Choice) error {
	t.Helper()
	const history, calibrating = 20, 10
	visible, hidden, ok := hide(g, day)
	if !ok {
		return nil
	}
	truth := g.Fields[day]
	shown := g
	shown.Name, shown.SHA256, shown.Fields = fmt.Sprint(day), fmt.Sprint(day), []field.Field{Hide(truth, hidden)}
	job := Job{Dataset: "new", Granule: shown, Sea: truth.Sea, Fill: infer.DefaultConfig()}
	for d := day - history; d < day; d++ {
		before := g
		before.SHA256, before.Fields = fmt.Sprint(d), g.Fields[d:d+1]
		job.History = append(job.History, before)
	}
	choice := choose(job)
	job.Fill, job.Model, job.Scaling = choice.Fill, choice.Model, choice.Scaling
	if job.Fill.Network.Tier = tier; job.Model == nil {
		return nil // too few days to scale the starter by
	}
	job.Widening = skill.Widen(r.scored, truth.Time)
	outcome, err := Analyse(t.Context(), job, nil)
	if err != nil {
		return err
	}
	a, w := outcome.Analyses[0], truth.Grid.Width()
	forward := func(x []float32) []float32 {
		out := make([]float32, len(x))
		g.Transform.Forward(out, x)
		return out
	}
	for c := range hidden {
		hidden[c] = hidden[c] && a.Flags[c]&infer.Interpolated != 0
	}
	sample := skill.Sample{
		Day: truth.Time, Height: len(visible) / w, Width: w, Truth: forward(truth.Values), Mean: forward(a.Value), Sigma: a.Own, Visible: visible, Scored: hidden,
	}
	r.scored = append(r.scored, skill.ScoreDay(sample))
	if len(r.scored) <= calibrating {
		return nil
	}
	sample.Sigma, sample.Centred = a.Sigma, true
	for _, m := range a.Members {
		sample.Members = append(sample.Members, forward(m))
	}
	for c := range hidden {
		if hidden[c] && a.Means != nil {
			one, own := float64(a.Means.OneStep[c]-sample.Truth[c]), float64(a.Means.Members[c]-sample.Truth[c])
			r.oneStep, r.members, r.cells = r.oneStep+one*one, r.members+own*own, r.cells+1
		}
	}
	return r.scores.Add(sample)
}

func (r tierReport) String() string {
	s := r.scores.Summary()
	text := fmt.Sprintf("%d days, %d pixels: MSE %.5f", s.Days, s.Pixels, *s.MSE)
	for name, c := range map[string]*skill.Calibration{"mean and sigma": s.Gaussian, "members": s.Ensemble} {
		if c != nil {
			covered, _ := c.Covers(0.9)
			text += fmt.Sprintf("; %s: CRPS %.5f, 90 %% covers %.3f, spread/skill %.3f", name, c.CRPS, covered, *c.SpreadSkill)
		}
	}
	if r.cells > 0 {
		text += fmt.Sprintf("; MSE of the one-step mean %.5f, of the members' %.5f", r.oneStep/float64(r.cells), r.members/float64(r.cells))
	}
	return text
}
