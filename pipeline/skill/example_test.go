package skill_test

import (
	"fmt"
	"time"

	"lacuna/pipeline/skill"
)

// The score of a forecast is in the units of the variable: a confident and
// right forecast scores best, a confident and wrong one worst.
func ExampleCRPSGaussian() {
	const truth = 1.0
	fmt.Printf("sure and right:   %.2f\n", skill.CRPSGaussian(1.0, 0.1, truth))
	fmt.Printf("unsure and right: %.2f\n", skill.CRPSGaussian(1.0, 1.0, truth))
	fmt.Printf("sure and wrong:   %.2f\n", skill.CRPSGaussian(3.0, 0.1, truth))
	// Output:
	// sure and right:   0.02
	// unsure and right: 0.23
	// sure and wrong:   1.94
}

// Ten days of overlays: the truth of the hidden cells is 0, and a method errs by
// 0.1 at each of them.
func ExampleScores() {
	const side = 8
	scores := skill.NewScores(skill.DefaultOptions())
	for day := range 10 {
		x := skill.Sample{
			Day: time.Date(2024, 4, 1+day, 0, 0, 0, 0, time.UTC), Height: side, Width: side,
			Truth: make([]float32, side*side), Mean: make([]float32, side*side), Sigma: make([]float32, side*side),
			Visible: make([]bool, side*side), Scored: make([]bool, side*side),
		}
		for i := range x.Truth {
			x.Scored[i] = i%side < side/2 // the west was hidden
			x.Visible[i] = !x.Scored[i]
			x.Mean[i], x.Sigma[i] = 0.1, 0.1
		}
		if err := scores.Add(x); err != nil {
			fmt.Println(err)
			return
		}
	}
	sum := scores.Summary()
	fmt.Printf("%d samples, %d pixels, MSE %.3f, bias %.1f\n", sum.Samples, sum.Pixels, *sum.MSE, *sum.Bias)
	// Output:
	// 10 samples, 320 pixels, MSE 0.010, bias 0.1
}

// A challenger whose error is lower by chance only is not promoted.
func ExampleRule_Decide() {
	entrant := func(mse float64) skill.Entrant {
		seamless := 0.01
		return skill.Entrant{Latency: time.Second, Summary: skill.Summary{
			Samples: 100, Pixels: 5000, MSE: &mse, CBGDError: &seamless,
			Gaussian: &skill.Calibration{Coverage: []skill.Coverage{{Nominal: 0.9, Share: 0.9}}},
		}}
	}
	champion := entrant(0.20)
	contest := skill.Contest{Champion: &champion, Challenger: entrant(0.19), MSE: skill.Difference{
		Mean: -0.01, Relative: -0.05, Interval: skill.Interval{Low: -0.03, High: 0.01}, P: 0.2, Samples: 100, Blocks: 20,
	}}
	fmt.Println(skill.DefaultRule().Decide(contest).Promote)
	contest.MSE.P, contest.MSE.Interval.High = 0.001, -0.005
	fmt.Println(skill.DefaultRule().Decide(contest).Promote)
	// Output:
	// false
	// true
}
