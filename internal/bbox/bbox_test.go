package bbox

import (
	"math"
	"testing"
)

func TestBoxesHoldWhatLiesInThemAcrossTheDateLineToo(t *testing.T) {
	for _, tt := range []struct {
		box     []float64
		in, out []float64 // longitudes
	}{
		{[]float64{27, 40, 42, 47}, []float64{27, 30, 42, 387, -330}, []float64{26.9, 42.1, -30}},
		{[]float64{170, -10, -170, 10}, []float64{170, 175, 180, -180, -175, 190}, []float64{169, -169, 0, 191}},
		{[]float64{170, -10, 190, 10}, []float64{170, 180, -175, 185}, []float64{0, -169}},
		{[]float64{-180, -90, 180, 90}, []float64{-180, 0, 180, 359}, nil},
		{[]float64{0, -90, 360, 90}, []float64{-180, 0, 180, 359}, nil},
	} {
		b, err := Of(tt.box)
		if err != nil {
			t.Fatal(err)
		}
		for _, lon := range tt.in {
			if !b.HoldsLon(lon) {
				t.Errorf("%v does not hold %v", tt.box, lon)
			}
		}
		for _, lon := range tt.out {
			if b.HoldsLon(lon) {
				t.Errorf("%v holds %v", tt.box, lon)
			}
		}
	}
	if b := (Box{27, 40, 42, 47}); b.HoldsLat(39.9) || !b.HoldsLat(40) || !b.HoldsLat(47) || b.HoldsLat(48) {
		t.Error("the latitudes of a box are wrong")
	}
}

func TestBoxesTouch(t *testing.T) {
	black, pacific, med := Box{27, 40, 42, 47}, Box{150, -20, -120, 20}, Box{-6, 30, 36, 46}
	if !black.Touches(med) || !med.Touches(black) || black.Touches(pacific) || pacific.Touches(med) || !pacific.Touches(Box{-130, 10, -110, 30}) {
		t.Error("boxes touch that do not, or do not that do")
	}
	if !(Box{}).Touches(black) || !black.Touches(Box{}) {
		t.Error("the globe touches every box")
	}
}

func TestBadBoxesAreRefused(t *testing.T) {
	for _, bad := range [][]float64{{1, 2, 3}, {1, 5, 3, 4}, {1, -91, 3, 4}, {1, 2, 1, 4}, {math.NaN(), 2, 3, 4}, {1, 2, 1e9, 4}} {
		if b, err := Of(bad); err == nil {
			t.Errorf("Of(%v) = %v, want an error", bad, b)
		}
	}
	if b, err := Of(nil); err != nil || !b.IsZero() {
		t.Errorf("Of(nil) = %v, %v; want the globe", b, err)
	}
}
