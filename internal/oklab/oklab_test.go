package oklab_test

import (
	"image/color"
	"testing"

	"lacuna/internal/oklab"
)

// The corners of sRGB, taken to OKLCh by the forward matrices of the article,
// which the package does without.
func TestCornersOfTheScreen(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    oklab.LCh
		want color.RGBA
	}{
		{"black", oklab.LCh{}, color.RGBA{0, 0, 0, 255}},
		{"white", oklab.LCh{1, 0, 0}, color.RGBA{255, 255, 255, 255}},
		{"red", oklab.LCh{0.62796, 0.25768, 29.234}, color.RGBA{255, 0, 0, 255}},
		{"lime", oklab.LCh{0.86644, 0.29483, 142.495}, color.RGBA{0, 255, 0, 255}},
		{"blue", oklab.LCh{0.45201, 0.31321, 264.052}, color.RGBA{0, 0, 255, 255}},
	} {
		if got := tt.c.Lab().RGBA(); got != tt.want {
			t.Errorf("%s is %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestShownEndsWhereTheScreenDoes(t *testing.T) {
	red := oklab.LCh{0.62796, 0.25, 29.234}
	if !red.Lab().Shown() {
		t.Errorf("%v is not shown, though it is weaker than red", red)
	}
	red[1] = 0.27
	if red.Lab().Shown() {
		t.Errorf("%v is shown, though it is stronger than red", red)
	}
	if c := red.Lab().RGBA(); c.R != 255 {
		t.Errorf("%v is cut to %v, want the strongest red", red, c)
	}
}

func TestDistanceIsThatOfTheSpace(t *testing.T) {
	a, b := oklab.Lab{0.5, 0.1, 0}, oklab.Lab{0.5, 0.4, 0.4}
	if got := oklab.Distance(a, b); got != 0.5 {
		t.Errorf("Distance() = %g, want 0.5", got)
	}
}
