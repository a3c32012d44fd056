package impute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// overdispersed draws cells whose truth is Gaussian with a sigma of its own
// each. The imputer estimates that sigma well, the eight members badly: they
// are half as wide as they should be.
func overdispersed(n int, seed uint64) (cases []Case, members [][]float32) {
	r := rand.New(rand.NewPCG(seed, 1))
	members = make([][]float32, 8)
	for range n {
		real := math.Exp(0.5 * r.NormFloat64())
		own := 0.5 * real * math.Exp(0.4*r.NormFloat64()) // the members' estimate, half of the truth
		for m := range members {
			members[m] = append(members[m], float32(own*r.NormFloat64()))
		}
		cases = append(cases, Case{Error: float32(real * r.NormFloat64()), Sigma: float32(1.3 * real), DistanceCells: float32(r.IntN(20))})
	}
	return cases, members
}

func TestCalibratedMembersStandAsFarFromTheMeanAsTheTruth(t *testing.T) {
	fit, _ := overdispersed(20000, 1)
	c, err := CalibrateMembers(fit, DefaultCalibration())
	if err != nil {
		t.Fatal(err)
	}
	cases, members := overdispersed(20000, 2)
	n := len(cases)
	p := Prediction{Mean: make([]float32, n), Sigma: make([]float32, n)}
	in, distance := Inputs{Height: 1, Width: n, Visible: make([]bool, n)}, make([]float64, n)
	for i, k := range cases {
		p.Mean[i], p.Sigma[i], distance[i] = 100, k.Sigma, float64(k.DistanceCells)
	}
	out := c.Recentre(members, in, p, distance)
	var spreads, errs, inside float64
	const halfWidth = 1.6448536 // of a Gaussian: how far members stand is not estimated from them
	for i, k := range cases {
		mean, spread := Departure(out, i)
		if math.Abs(float64(mean)-100) > 1e-3 {
			t.Fatalf("members of cell %d stand about %g, want 100", i, mean)
		}
		spreads += float64(spread) * float64(spread)
		errs += float64(k.Error) * float64(k.Error)
		if math.Abs(float64(k.Error)) <= halfWidth*float64(spread) {
			inside++
		}
	}
	if ratio := math.Sqrt(spreads / errs); math.Abs(ratio-1) > 0.05 {
		t.Errorf("members stand %.3f times as far from the mean as the truth", ratio)
	}
	if share := inside / float64(n); math.Abs(share-0.9) > 0.01 {
		t.Errorf("90 %% intervals of the members cover %.3f", share)
	}
}

func TestRecentredMembersKeepVisibleCells(t *testing.T) {
	members := [][]float32{{1, 5, 7}, {3, 5, 9}}
	in := Inputs{Height: 1, Width: 3, Visible: []bool{false, true, false}}
	p := Prediction{Mean: []float32{10, 6, 0}, Sigma: []float32{1, 0, 1}}
	for _, tt := range []struct {
		name string
		c    MembersCalibration
		want [][]float32
	}{
		{"moved only", MembersCalibration{}, [][]float32{{9, 6, -1}, {11, 6, 1}}},
		{"twice as wide", MembersCalibration{Calibration: Calibration{Factors: [][]float32{{2}}}, Ratio: 1}, [][]float32{{8, 6, -2}, {12, 6, 2}}},
		{"as wide as the imputer says", MembersCalibration{Calibration: Calibration{Factors: [][]float32{{3}}}, Share: 1, Ratio: 7}, [][]float32{{7, 6, -3}, {13, 6, 3}}},
		{"about their own mean", MembersCalibration{Calibration: Calibration{Factors: [][]float32{{2}}}, Ratio: 1, Centre: MembersMean}, [][]float32{{0, 6, 6}, {4, 6, 10}}},
	} {
		out := tt.c.Recentre(members, in, p, make([]float64, 3))
		for m := range tt.want {
			if !slices.Equal(out[m], tt.want[m]) {
				t.Errorf("%s: member %d is %v, want %v", tt.name, m, out[m], tt.want[m])
			}
		}
	}
}

func TestCalibrationOfMembersRefusesNonsense(t *testing.T) {
	if _, err := CalibrateMembers([]Case{{Error: 1}}, DefaultCalibration()); err == nil {
		t.Error("members without a sigma were calibrated")
	}
	for _, c := range []MembersCalibration{{Share: 2}, {Share: float32(math.NaN())}, {Ratio: -1}, {Centre: "median"}} {
		if c.Validate() == nil {
			t.Errorf("Validate accepts %+v", c)
		}
	}
	if err := (MembersCalibration{}).Validate(); err != nil {
		t.Error(err)
	}
}
