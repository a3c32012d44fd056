package prior

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples/samplestest"
	"lacuna/pipeline/skill"
)

// costly makes masks of random coverage whose bands cost exp(-3) bits, more
// with coverage and with noise that the second and third band share.
func costly(n int, name string, shift float64) ([]Mask, []bitProfile) {
	const cells = 400
	masks, costs := make([]Mask, n), make([]bitProfile, n)
	for i := range masks {
		r := noise.New(1, name).Rand(uint64(i))
		seen := 1 + r.IntN(cells-1)
		masks[i] = Mask{Place: Place{Height: 20, Width: 20, Sea: make([]bool, cells)}, Observed: make([]bool, cells)}
		for c := range cells {
			masks[i].Sea[c], masks[i].Observed[c] = true, c < seen
		}
		together := r.NormFloat64()
		for b := range costBands {
			own := r.NormFloat64()
			if b > 0 {
				own = 0.9*together + math.Sqrt(1-0.81)*own
			}
			costs[i][b*likelihoodLevels/costBands] = math.Exp(-3 + 4*masks[i].coverage() + 0.3*own + shift)
		}
	}
	return masks, costs
}

func scoresOf(t *testing.T, y Reference, masks []Mask, costs []bitProfile) []float64 {
	t.Helper()
	score, err := y.scorer()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(masks))
	for i, m := range masks {
		out[i] = score(m.coverage(), costs[i].bands())
	}
	return out
}

// Coverage makes bits differ a fiftyfold here, and a shift by the deviation
// of a mask of its coverage to either side still shows.
func TestSurpriseSeesMasksThatCostTooMuchOrTooLittle(t *testing.T) {
	y, err := referenceOf(costly(512, "calibration", 0))
	if err != nil {
		t.Fatal(err)
	}
	usual, costs := costly(512, "usual", 0)
	base := scoresOf(t, y, usual, costs)
	if mean := sumOf(base) / float64(len(base)); mean < 0.8 || mean > 1.15 {
		t.Errorf("masks of the same kind score %.2f, want about 1", mean)
	}
	for _, shift := range []float64{-0.9, 0.9} { // three deviations of the noise
		masks, costs := costly(512, "other", shift)
		if auc := skill.AUC(scoresOf(t, y, masks, costs), base); auc < 0.9 {
			t.Errorf("shift %g: AUC %.3f, want above 0.9", shift, auc)
		}
		plain := make([]float64, len(masks))
		before := make([]float64, len(masks))
		_, beforeCosts := costly(512, "usual", 0)
		for i := range masks {
			plain[i], before[i] = costs[i].bits(), beforeCosts[i].bits()
		}
		if auc := skill.AUC(plain, before); auc > 0.75 && shift > 0 || auc > 0.5 && shift < 0 {
			t.Errorf("shift %g: plain bits have AUC %.3f: the test does not show what the reference is for", shift, auc)
		}
	}
	// Bands that always move together are no surprise together, but apart.
	masks, costs := costly(512, "apart", 0)
	for i := range costs {
		costs[i][likelihoodLevels/costBands] *= math.Exp(0.45)
		costs[i][2*likelihoodLevels/costBands] *= math.Exp(-0.45)
	}
	if auc := skill.AUC(scoresOf(t, y, masks, costs), base); auc < 0.85 {
		t.Errorf("bands that part ways: AUC %.3f, want above 0.85", auc)
	}
}

func sumOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum
}

func TestReferenceNeedsMasksAndTravelsWithTheModel(t *testing.T) {
	e := enginetest.Open(t)
	m := roughModel(t, e, nil)
	patches := samplestest.Cloudy(24, 16)
	if _, err := m.Surprises(t.Context(), patches); err == nil {
		t.Error("masks are scored without a reference")
	}
	if err := m.Calibrate(t.Context(), patches[:3], 4); err == nil {
		t.Error("three masks make a reference")
	}
	if err := m.Calibrate(t.Context(), patches, 8); err != nil {
		t.Fatal(err)
	}
	want, err := m.Surprises(t.Context(), patches[:4])
	if err != nil {
		t.Fatal(err)
	}
	bits, err := m.BitsPerPixel(t.Context(), patches[:4])
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(e, data)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	got, err := back.Surprises(t.Context(), patches[:4])
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] || got[i].Bits != bits[i] {
			t.Errorf("mask %d: %+v from a file, %+v before, %g bits", i, got[i], want[i], bits[i])
		}
	}
	if _, err := decodeReference(`{"coverage":[0.5],"mean":[[1]],"sd":[[1]],"correlation":[1,0,0,0,1,0,0,0,1]}`); err == nil {
		t.Error("a reference with one band is taken")
	}
}
