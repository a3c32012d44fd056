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
		MSE: Difference{Mean: -0.02, Relative: -0.1, Interval: Interval{Low: -0.03, High: -0.01}, P: 0.001, Base: 0.2, Samples: 100, Days: 31, Blocks: 20},
	}
}

func TestChallengerMustWinOnEveryCount(t *testing.T) {
	same := Difference{Base: 0.2, Samples: 100, Blocks: 20, P: 1} // no difference at all
	for _, tt := range []struct {
		name    string
		edit    func(*Contest)
		against string // part of the one reason against; empty: promoted
	}{
		{name: "all is well", edit: func(*Contest) {}},
		{name: "no champion", edit: func(c *Contest) { c.Champion, c.MSE = nil, Difference{} }},
		{
			name: "better by chance",
			edit: func(c *Contest) { c.MSE.P, c.MSE.Interval.High = 0.2, 0.005 }, against: "10 % less error than the champion on 31 days, between 15 % less and 2.5 % more with 95 % confidence",
		},
		{
			name: "better by an interval of few days",
			edit: func(c *Contest) { c.MSE.P = 0.08 }, against: "5.0 to 15 % less with 95 % confidence; but days as few make so large a difference by chance with a probability of 8.0 %",
		},
		{
			name: "no better than the starter",
			edit: func(c *Contest) { c.Champion.Name, c.MSE.Interval.High = "the starter", 0.01 }, against: "10 % less error than the starter on 31 days",
		},
		{
			name: "worse for sure",
			edit: func(c *Contest) { c.MSE.Mean, c.MSE.Interval = 0.02, Interval{Low: 0.01, High: 0.03} }, against: "10 % more error than the champion on 31 days, 5.0 to 15 % more with 95 % confidence",
		},
		{
			name: "the same network, and surer with reason",
			edit: func(c *Contest) {
				c.SameNetwork, c.CRPS, c.MSE = true, &Difference{Mean: -0.01, Base: 0.2, Interval: Interval{Low: -0.02, High: -0.005}, P: 0.001, Blocks: 20}, same
			},
		},
		{
			name:    "the same network and the same calibration",
			edit:    func(c *Contest) { c.SameNetwork, c.CRPS, c.MSE = true, &same, same },
			against: "0.0 % more CRPS than the champion, 0.0 to 0.0 % more with 95 % confidence, by the same network",
		},
		{
			name: "the same network about a worse mean map",
			edit: func(c *Contest) {
				c.SameNetwork, c.CRPS = true, &Difference{Mean: -0.01, Base: 0.2, Interval: Interval{Low: -0.02, High: -0.005}, P: 0.001, Blocks: 20}
				c.MSE.Mean, c.MSE.Interval = 0.02, Interval{Low: 0.01, High: 0.03}
			}, against: "10 % more error than the champion on 31 days, 5.0 to 15 % more",
		},
		{
			name: "another network is not judged by its CRPS",
			edit: func(c *Contest) {
				c.CRPS = &Difference{Mean: -0.01, Base: 0.2, Interval: Interval{Low: -0.02, High: -0.005}, P: 0.001, Blocks: 20}
				c.MSE = same
			}, against: "0.0 % more error than the champion",
		},
		{name: "not compared", edit: func(c *Contest) { c.MSE.Blocks = 0 }, against: "cannot be compared: one of them left cells out"},
		{name: "seams", edit: func(c *Contest) { *c.Challenger.Summary.CBGDError = 0.051 }, against: "|CBGD-1|"},
		{name: "seams not measured", edit: func(c *Contest) { c.Challenger.Summary.CBGDError = nil }, against: "seams"},
		{
			name: "too sure of itself",
			edit: func(c *Contest) { c.Challenger.Summary.Gaussian.Coverage[0].Share = 0.84 }, against: "intervals of sigma hold 84.0 % of the truth, must hold 85 to 95 %",
		},
		{
			name: "too shy",
			edit: func(c *Contest) { c.Challenger.Summary.Gaussian.Coverage[0].Share = 0.96 }, against: "intervals of sigma",
		},
		{name: "says nothing of its error", edit: func(c *Contest) { c.Challenger.Summary.Gaussian = nil }, against: "no uncertainty"},
		{
			name: "members too narrow", edit: func(c *Contest) {
				c.Challenger.Summary.Ensemble = &Calibration{Coverage: []Coverage{{Nominal: 0.9, Share: 0.6}}}
			}, against: "intervals of the members",
		},
		{name: "not finite", edit: func(c *Contest) { c.Challenger.Summary.NonFinite = 1 }, against: "1 scored cells got no finite value"},
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
				c.OverInterpolation = &Difference{Mean: 0.02, Base: 0.2, Interval: Interval{Low: 0.01, High: 0.03}, P: 1, Blocks: 20}
			}, against: "10 % more error than optimal interpolation",
		},
		{name: "first, and better than interpolation", edit: func(c *Contest) { c.Champion, c.OverInterpolation = nil, &c.MSE }},
		{
			name: "first, and as good as interpolation",
			edit: func(c *Contest) {
				c.Champion = nil
				c.OverInterpolation = &Difference{Mean: -0.001, Base: 0.2, Interval: Interval{Low: -0.01, High: 0.008}, P: 0.4, Blocks: 20}
			}, against: "0.5 % less error than optimal interpolation, between 5.0 % less and 4.0 % more",
		},
		{name: "other overlays", edit: func(c *Contest) { c.Champion.Summary.Pixels++ }, against: "not asked the same"},
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

// Too few days say nothing against a challenger, and nothing for it: that must
// not read like a defeat, nor like figures that were measured.
func TestAChallengerThatCannotBeJudgedIsNotRefused(t *testing.T) {
	for _, champion := range []bool{true, false} {
		c := won()
		c.MSE, c.TooFew = Difference{}, &TooFewDays{Days: 8, Blocks: 3}
		if !champion {
			c.Champion = nil
		}
		d := DefaultRule().Decide(c)
		if d.Promote || !d.Unjudged {
			t.Errorf("promote %v, unjudged %v", d.Promote, d.Unjudged)
		}
		if want := "against: it could not be judged: 8 days judge"; !strings.HasPrefix(d.Reasons[0], want) {
			t.Errorf("%q, want %q first", d.Reasons, want)
		}
		for _, r := range d.Reasons[1:] {
			if strings.HasPrefix(r, "against: ") || strings.Contains(r, "p = ") {
				t.Errorf("it has the further reason %q", r)
			}
		}
	}
}

func TestEnoughDaysAreThoseThatPairedAccepts(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for step := 1; step <= 12; step++ {
		for n := 1; n <= 40; n++ {
			days, a, b := make([]time.Time, n), make([]Loss, n), make([]Loss, n)
			for i := range days {
				days[i] = start.AddDate(0, 0, i*step)
				a[i], b[i] = Loss{Day: days[i], Sum: float64(i % 3), Pixels: 2}, Loss{Day: days[i], Sum: 1, Pixels: 2}
			}
			o := DefaultBootstrap()
			o.Draws = 1
			_, err := o.Paired(a, b)
			if got := o.Enough(days); got != (err == nil) {
				t.Fatalf("%d days, every %d: enough %v, and paired: %v", n, step, got, err)
			}
		}
	}
}
