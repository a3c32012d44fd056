package skill

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// won is a contest that the challenger wins on every count.
func won() Contest {
	entrant := func(mse, cbgd, covers float64, latency time.Duration) Entrant {
		return Entrant{Latency: latency, Summary: Summary{
			Samples: 100, Pixels: 5000, MSE: &mse, CBGDError: &cbgd,
			Gaussian: &Calibration{Coverage: []Coverage{{Nominal: 0.9, Share: covers}}},
		}}
	}
	champion := entrant(0.2, 0.03, 0.9, time.Second)
	return Contest{
		Champion: &champion, Challenger: entrant(0.18, 0.04, 0.89, 1200*time.Millisecond),
		MSE: Difference{Mean: -0.02, Relative: -0.1, Interval: Interval{Low: -0.03, High: -0.01}, P: 0.001, Samples: 100, Blocks: 20},
	}
}

func TestChallengerMustWinOnEveryCount(t *testing.T) {
	for _, tt := range []struct {
		name    string
		edit    func(*Contest)
		against string // part of the one reason against; empty: promoted
	}{
		{name: "all is well", edit: func(*Contest) {}},
		{name: "no champion", edit: func(c *Contest) { c.Champion, c.MSE = nil, Difference{} }},
		{
			name: "better by chance",
			edit: func(c *Contest) { c.MSE.P, c.MSE.Interval.High = 0.2, 0.005 }, against: "MSE changes",
		},
		{
			name: "worse for sure",
			edit: func(c *Contest) { c.MSE.Mean, c.MSE.Interval = 0.02, Interval{Low: 0.01, High: 0.03} }, against: "MSE changes",
		},
		{name: "not compared", edit: func(c *Contest) { c.MSE.Blocks = 0 }, against: "cannot be compared: fewer than 10 days judge"},
		{name: "seams", edit: func(c *Contest) { *c.Challenger.Summary.CBGDError = 0.051 }, against: "|CBGD-1|"},
		{name: "seams not measured", edit: func(c *Contest) { c.Challenger.Summary.CBGDError = nil }, against: "seams"},
		{
			name: "too sure of itself",
			edit: func(c *Contest) { c.Challenger.Summary.Gaussian.Coverage[0].Share = 0.84 }, against: "intervals of the sigma",
		},
		{
			name: "too shy",
			edit: func(c *Contest) { c.Challenger.Summary.Gaussian.Coverage[0].Share = 0.96 }, against: "intervals of the sigma",
		},
		{name: "says nothing of its error", edit: func(c *Contest) { c.Challenger.Summary.Gaussian = nil }, against: "no uncertainty"},
		{
			name: "members too narrow", edit: func(c *Contest) {
				c.Challenger.Summary.Ensemble = &Calibration{Coverage: []Coverage{{Nominal: 0.9, Share: 0.6}}}
			}, against: "intervals of the members",
		},
		{name: "not finite", edit: func(c *Contest) { c.Challenger.Summary.NonFinite = 1 }, against: "not finite"},
		{name: "slow", edit: func(c *Contest) { c.Challenger.Latency = 2 * time.Second }, against: "the champion 1s"},
		{name: "speed unknown", edit: func(c *Contest) { c.Challenger.Latency = 0 }, against: "the champion 1s"},
		{name: "better than interpolation", edit: func(c *Contest) { c.OverInterpolation = &c.MSE }},
		{
			name: "as good as interpolation",
			edit: func(c *Contest) {
				c.OverInterpolation = &Difference{Mean: 0.001, Interval: Interval{Low: -0.01, High: 0.012}, P: 0.6, Blocks: 20}
			},
		},
		{
			name: "better than the champion, worse than interpolation",
			edit: func(c *Contest) {
				c.OverInterpolation = &Difference{Mean: 0.02, Interval: Interval{Low: 0.01, High: 0.03}, P: 1, Blocks: 20}
			}, against: "against optimal interpolation",
		},
		{name: "first, and better than interpolation", edit: func(c *Contest) { c.Champion, c.OverInterpolation = nil, &c.MSE }},
		{
			name: "first, and as good as interpolation",
			edit: func(c *Contest) {
				c.Champion = nil
				c.OverInterpolation = &Difference{Mean: -0.001, Interval: Interval{Low: -0.01, High: 0.008}, P: 0.4, Blocks: 20}
			}, against: "against optimal interpolation",
		},
		{name: "other overlays", edit: func(c *Contest) { c.Champion.Summary.Pixels++ }, against: "pixels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := won()
			tt.edit(&c)
			d := DefaultRule().Decide(c)
			against := slices.DeleteFunc(slices.Clone(d.Reasons), func(r string) bool { return strings.HasPrefix(r, "ok: ") })
			if tt.against == "" {
				if !d.Promote || len(against) > 0 {
					t.Errorf("not promoted: %q", d.Reasons)
				}
				return
			}
			if d.Promote || len(against) != 1 || !strings.Contains(against[0], tt.against) {
				t.Errorf("promote %v with %q against, want only %q", d.Promote, against, tt.against)
			}
		})
	}
}

func TestLatencyLimitHoldsWithoutAChampion(t *testing.T) {
	r := DefaultRule()
	r.LatencyLimit = time.Second
	c := won()
	c.Champion = nil
	if d := r.Decide(c); d.Promote {
		t.Errorf("1.2 s under a limit of 1 s is promoted: %q", d.Reasons)
	}
}
