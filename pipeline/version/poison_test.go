package version

import (
	"bytes"
	"slices"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// With other values, under other gaps, on the days that judge every file of a
// version stays the same to the last bit: weights, early stop, calibration,
// scaling and prior. Only the verdict changes.
func TestDaysThatJudgeChangeNothingButTheVerdict(t *testing.T) {
	s := shortSettings()
	s.Imputer.Design.Extras.Analysis, s.Imputer.Design.Departure = true, true
	s.Prior.Step.Steps, s.Prior.EvaluateEvery, s.Imputer.Steps, s.ScoreEvery, s.Members.Steps = 4, 2, 6, 2, 3
	s.Prior.CalibrateMasks = prior.ReferenceMasks
	s.Judging.Overlays, s.Judging.Choosing, s.Judging.Scoring, s.Judging.Mode = 8, 8, 4, impute.Delayed // the days that judge lie ahead of those that choose
	files := madeWith(t, s, series(t), poison(t, series(t), s.Split, samples.Judge))
	for _, name := range []Part{PartPrior, PartImputer, PartMembers, PartReliability, PartCalibration, PartScaling} {
		if len(files[0][name]) == 0 || !bytes.Equal(files[0][name], files[1][name]) {
			t.Errorf("%s depends on days that judge, or there is none", name)
		}
	}
	if bytes.Equal(files[0][PartEvaluation], files[1][PartEvaluation]) {
		t.Error("the poison did not even reach the evaluation: this test shows nothing")
	}
}

func TestDaysThatChooseNeverReachWeights(t *testing.T) {
	s := shortSettings()
	s.Strategy, s.Patience, s.Prior.EvaluateEvery, s.ScoreEvery = "unconditional", 0, 0, 100 // no early stop
	s.Prior.Step.Steps, s.Imputer.Steps, s.Members.Steps, s.Reliability.Steps = 4, 6, 3, 0
	s.Judging.Overlays, s.Judging.Choosing, s.Prior.CalibrateMasks = 8, 8, prior.ReferenceMasks
	files := madeWith(t, s, series(t), poison(t, series(t), s.Split, samples.Choose))
	for _, name := range []Part{PartPrior, PartImputer, PartMembers, PartScaling} {
		if len(files[0][name]) == 0 || !bytes.Equal(files[0][name], files[1][name]) {
			t.Errorf("%s depends on days that choose, or there is none", name)
		}
	}
	if bytes.Equal(files[0][PartCalibration], files[1][PartCalibration]) {
		t.Error("the poison did not even reach the calibration: this test shows nothing")
	}
}

// madeWith returns the versions that are made of each of several series.
func madeWith(t *testing.T, s Settings, all ...samples.Series) []Parts {
	t.Helper()
	var files []Parts
	for _, series := range all {
		out, err := Make(t.Context(), Request{Series: []samples.Series{series}, Settings: s, Backend: enginetest.Open(t)}, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, out.Parts)
	}
	return files
}

// poison returns s with other values under other gaps on its days of a role.
func poison(t *testing.T, s samples.Series, split samples.SplitConfig, role samples.Role) samples.Series {
	t.Helper()
	calendar := samples.Extend(samples.Calendar{}, s.Days, split)
	poisoned := s
	poisoned.Days = slices.Clone(s.Days)
	changed := 0
	for d, day := range poisoned.Days {
		if calendar.Role(samples.DateOf(day.Time)) != role {
			continue
		}
		values := make([]float32, len(day.Values))
		for i := range values {
			values[i] = 1e3 + 7*day.Values[len(values)-1-i]
			if !s.Sea[i] {
				values[i] = field.NaN()
			}
		}
		poisoned.Days[d].Values = values
		changed++
	}
	if changed == 0 {
		t.Fatalf("no day is for %q", role)
	}
	return poisoned
}
