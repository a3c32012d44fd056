package version

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
)

func TestAVersionIsCalibratedAnew(t *testing.T) {
	good := firstModel(t)
	var factors parts.Calibration
	if err := json.Unmarshal(good.Parts[PartCalibration], &factors); err != nil {
		t.Fatal(err)
	}
	// The champion was calibrated when its sensor had a quarter of the noise.
	tooSure := factors
	tooSure.Factors = slices.Clone(factors.Factors)
	for i, row := range factors.Factors {
		tooSure.Factors[i] = slices.Clone(row)
		for k := range row {
			tooSure.Factors[i][k] /= 4
		}
	}
	champion := maps.Clone(good.Parts)
	var err error
	if champion[PartCalibration], err = json.Marshal(tooSure); err != nil {
		t.Fatal(err)
	}

	req := Request{Series: []samples.Series{series(t)}, Settings: shortSettings(), Backend: enginetest.Open(t), Parent: champion, Champion: champion}
	req.Settings.Only = OnlyCalibration
	out, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []Part{PartPrior, PartImputer, PartMembers, PartReliability} {
		if !bytes.Equal(out.Parts[part], champion[part]) {
			t.Errorf("the %s is not that of the champion", part)
		}
	}
	// The days that choose are those of the training, and so are the networks.
	if !bytes.Equal(out.Parts[PartCalibration], good.Parts[PartCalibration]) {
		t.Errorf("calibrated anew to %s, the training had %s", out.Parts[PartCalibration], good.Parts[PartCalibration])
	}
	before, after := scalingIn(t, good.Parts), scalingIn(t, out.Parts)
	if len(before.Query) == 0 || !slices.Equal(before.Query, after.Query) {
		t.Error("P(query) of the cells is not that of the training")
	}
	if e := out.Evaluation; e.Reports.Imputer != nil || e.Reliability == nil || e.Prior == nil {
		t.Errorf("trained again, or what was known of the networks is lost: %+v", e.Reports)
	}
	// Whether it is promoted depends on optimal interpolation too, which so short a training does not better.
	if why := out.Decision.Reasons[0]; !strings.HasPrefix(why, "ok: ") || !strings.Contains(why, "less CRPS than the champion") || !strings.Contains(why, "by the same network") {
		t.Errorf("a champion whose intervals are a quarter of what they should be is no worse: %q", why)
	}
	if mse := out.Evaluation.Ruling.MSE; mse.Mean != 0 {
		t.Errorf("the same network has another error: %+v", mse)
	}
}

func TestThereIsNothingToCalibrateWithoutAVersion(t *testing.T) {
	req := Request{Series: []samples.Series{series(t)}, Settings: shortSettings(), Backend: enginetest.Open(t)}
	req.Settings.Only = OnlyCalibration
	if _, err := Make(t.Context(), req, Hooks{}); !errors.Is(err, errNothingToCalibrate) {
		t.Errorf("got %v", err)
	}
}
