package skill

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFairCRPSIsThePairwiseFormula(t *testing.T) {
	members, y := []float64{0.3, -1.2, 2.0, 0.9, 0.9}, 0.5
	near(t, "CRPS", CRPSEnsemble(members, y), 0.14, exact) // by hand: 0.84 - 14/20
	if !slices.Equal(members, []float64{0.3, -1.2, 2.0, 0.9, 0.9}) {
		t.Error("the members were reordered")
	}
	near(t, "CRPS of one member", CRPSEnsemble([]float64{2}, 5), 3, exact)
}

// TestFairCRPSDoesNotDependOnTheSizeOfTheEnsemble holds every size against
// the expected score of the standard normal, 1/√π.
func TestFairCRPSDoesNotDependOnTheSizeOfTheEnsemble(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range []int{2, 4, 16} {
		const draws = 12000
		sum, members := 0.0, make([]float64, m)
		for range draws {
			for k := range members {
				members[k] = rng.NormFloat64()
			}
			sum += CRPSEnsemble(members, rng.NormFloat64())
		}
		near(t, "mean CRPS", sum/draws, 1/math.SqrtPi, 0.02)
	}
}

// tallied is the number of truths in a tally.
const tallied = 12000

// drawTally tallies truths that come from the same Gaussian as the members,
// or from one that is wider by the given factor.
func drawTally(members int, wider float64) *Calibration {
	rng := rand.New(rand.NewPCG(3, uint64(members)))
	t := newTally(members, false)
	x := make([]float64, members)
	for range tallied {
		centre := 10 * rng.Float64()
		for k := range x {
			x[k] = centre + rng.NormFloat64()
		}
		t.addMembers(x, centre+wider*rng.NormFloat64())
	}
	return t.calibration()
}

func TestPerfectEnsembleIsCalibratedAtAnySize(t *testing.T) {
	// 0.016 is three and a half standard errors of a share of 12000.
	for _, m := range []int{4, 8, 19, 50} {
		c := drawTally(m, 1)
		near(t, "spread/skill", *c.SpreadSkill, 1, 0.02)
		for _, v := range c.Coverage {
			near(t, "coverage", v.Share, v.Nominal, 0.016)
		}
		for _, n := range c.Histogram {
			near(t, "rank", n, tallied/float64(m+1), 6*math.Sqrt(tallied/float64(m+1)))
		}
	}
}

func TestNarrowEnsembleShowsInEveryScore(t *testing.T) {
	c := drawTally(20, 2)
	if *c.SpreadSkill > 0.6 || *c.SpreadSkill < 0.4 {
		t.Errorf("spread/skill is %v for an ensemble half as wide as the truth", *c.SpreadSkill)
	}
	if share, known := c.Covers(0.9); !known || share > 0.65 {
		t.Errorf("90 %% intervals cover %v", share)
	}
	n := len(c.Histogram)
	if c.Histogram[0] < 3*c.Histogram[n/2] || c.Histogram[n-1] < 3*c.Histogram[n/2] {
		t.Errorf("the rank histogram has no valley: %v", c.Histogram)
	}
}

func TestTiesAreSharedOutAmongRanks(t *testing.T) {
	h := make([]float64, 5)
	addRank(h, []float64{1, 2, 2, 3}, 2)
	addRank(h, []float64{1, 2, 2, 3}, 0)
	addRank(h, []float64{1, 2, 2, 3}, 9)
	addRank(h, []float64{1, 2, 2, 3}, 2.5)
	third := 1.0 / 3
	for r, want := range []float64{1, third, third, third + 1, 1} {
		near(t, "rank", h[r], want, exact)
	}
}

func TestGaussianTallyCountsByHand(t *testing.T) {
	tally := newTally(0, false)
	tally.addGaussian(0, 1, 0.5)  // in all intervals
	tally.addGaussian(0, 1, -1.5) // in the 90 % interval only
	tally.addGaussian(0, 1, 3)    // in none
	c := tally.calibration()
	for k, want := range []float64{1.0 / 3, 1.0 / 3, 2.0 / 3} {
		near(t, "coverage", c.Coverage[k].Share, want, exact)
	}
	near(t, "spread/skill", *c.SpreadSkill, math.Sqrt(3/(0.25+2.25+9)), exact)
	// Φ(0.5) = 0.69, Φ(-1.5) = 0.07, Φ(3) = 0.999
	for bin, want := range map[int]float64{6: 1, 0: 1, 9: 1, 5: 0} {
		near(t, "histogram", c.Histogram[bin], want, 0)
	}
}

func TestSigmaOfZeroIsCountedWithoutNaN(t *testing.T) {
	tally := newTally(0, false)
	tally.addGaussian(1, 0, 1)
	tally.addGaussian(1, 0, 2)
	c := tally.calibration()
	near(t, "CRPS", c.CRPS, 0.5, exact)
	near(t, "coverage", c.Coverage[2].Share, 0.5, exact)
}

func TestBrierByHand(t *testing.T) {
	p, happened := []float64{0.1, 0.1, 0.8, 1}, []bool{false, true, true, true}
	near(t, "Brier", Brier(p, happened), (0.01+0.81+0.04+0)/4, exact)
}

// TestCentredMembersAreScoredForWhatTheyAre draws truths and members from one
// Gaussian and moves the members to the mean: scores must be those of the
// Gaussian itself, whatever the number of members.
func TestCentredMembersAreScoredForWhatTheyAre(t *testing.T) {
	const truths = 60000
	for _, members := range []int{4, 8, 16} {
		r := rand.New(rand.NewPCG(7, uint64(members)))
		tally, x := newTally(members, true), make([]float64, members)
		widen := math.Sqrt(float64(members) / float64(members-1))
		fair := 0.0
		for range truths {
			mean := 0.0
			for i := range x {
				x[i] = r.NormFloat64()
				mean += x[i] / float64(members)
			}
			for i := range x {
				x[i] = widen * (x[i] - mean)
			}
			y := r.NormFloat64()
			fair += CRPSEnsemble(x, y) / truths
			if got, want := tally.addMembers(x, y), CRPSCentred(x, y); math.Abs(got-want) > 1e-12 {
				t.Fatalf("CRPS is %g, alone %g", got, want)
			}
		}
		c := tally.calibration()
		want := 1 / math.SqrtPi // CRPS of a standard Gaussian under its own truths
		if math.Abs(c.CRPS-want) > 0.01 {
			t.Errorf("%d members: CRPS is %.4f, that of the distribution %.4f", members, c.CRPS, want)
		}
		if fair > c.CRPS-0.01 {
			t.Errorf("%d members: the score for independent draws is %.4f and does not flatter, against %.4f", members, fair, c.CRPS)
		}
		if math.Abs(*c.SpreadSkill-1) > 0.02 {
			t.Errorf("%d members: spread/skill is %.3f, want 1", members, *c.SpreadSkill)
		}
		if share, _ := c.Covers(0.9); math.Abs(share-0.9) > 0.01 {
			t.Errorf("%d members: the 90 %% interval covers %.3f", members, share)
		}
	}
}
