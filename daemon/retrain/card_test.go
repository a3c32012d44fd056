package retrain

import (
	"fmt"
	"testing"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// side returns the scores of one side, with an error of its own.
func side(mse float64) version.Side {
	return version.Side{LatencySeconds: 2, Verdict: evaluate.Verdict{Summary: skill.Summary{
		MSE: &mse, Gaussian: &skill.Calibration{CRPS: 0.3, Coverage: []skill.Coverage{{Nominal: 0.5, Share: 0.4}, {Nominal: 0.9, Share: 0.88}}},
	}}}
}

// A reader of a card compares the sides by name: each has its own scores, and
// none that was not measured.
func TestTheCardNamesTheScoresOfEachSide(t *testing.T) {
	champion := side(0.2)
	out := version.Outcome{Evaluation: version.Evaluation{Cases: 7, Mode: "delayed", Ruling: &version.Ruling{Challenger: side(0.1), Champion: &champion}}}
	got := scoresOf(out)
	const want = "map[coverage90:0.88 crps:0.3 latency_seconds:2 mse:%v]"
	if c := fmt.Sprint(got.Challenger); c != fmt.Sprintf(want, 0.1) {
		t.Errorf("challenger %s", c)
	}
	if c := fmt.Sprint(got.Champion); c != fmt.Sprintf(want, 0.2) {
		t.Errorf("champion %s", c)
	}
	if got.Interpolation != nil || got.On != "7 overlays of days that judge, delayed mode" {
		t.Errorf("interpolation %v, on %q", got.Interpolation, got.On)
	}
	if empty := scoresOf(version.Outcome{}); empty.Challenger != nil {
		t.Errorf("scores of a version that nobody judged: %v", empty)
	}
}
