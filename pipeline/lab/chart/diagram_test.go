package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"lacuna/internal/oklab"
)

// rows returns the mean row of the pixels of a colour, and how many there are.
func rows(img image.Image, c color.RGBA, area image.Rectangle) (mean float64, count int) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			if at(img, image.Pt(x, y)) == c {
				mean += float64(y)
				count++
			}
		}
	}
	return mean / float64(count), count
}

func TestColoursAreEvenToTheEye(t *testing.T) {
	for _, c := range []Colours{Sequential, Warm, Diverging} {
		path := c.path()
		// Eight steps of the palette are larger than its rounding to 8 bits.
		const step = 8
		var steps []float64
		palette := c.palette()
		for s := step; s < shades; s += step {
			steps = append(steps, oklab.Distance(okLab(palette[s]), okLab(palette[s-step])))
		}
		mean := 0.0
		for _, d := range steps {
			mean += d / float64(len(steps))
		}
		for k, d := range steps {
			if math.Abs(d/mean-1) > 0.25 {
				t.Errorf("map %d: step %d is %.2f of the mean", c, k, d/mean)
			}
		}
		if c == Diverging {
			continue
		}
		for s := step; s < shades; s += step {
			if okLab(palette[s])[0] <= okLab(palette[s-step])[0] {
				t.Errorf("map %d gets darker at shade %d of a path of %d colours", c, s, len(path))
			}
		}
	}
}

// okLab is the inverse of Lab.RGBA, by its definition.
func okLab(c color.RGBA) oklab.Lab {
	lin := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	r, g, b := lin(c.R), lin(c.G), lin(c.B)
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return oklab.Lab{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func TestNoColourOfAMapIsThatOfLandOrMissing(t *testing.T) {
	for _, c := range []Colours{Sequential, Warm, Diverging} {
		for s, p := range c.palette() {
			if oklab.Distance(okLab(p), okLab(missingWhite)) < 0.04 || oklab.Distance(okLab(p), okLab(landGrey)) < 0.03 {
				t.Errorf("shade %d of map %d, %v, can be taken for land or missing", s, c, p)
			}
		}
	}
}

func TestLargerErrorIsDrawnHigher(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	img := ErrorByDistance(Diagram{Title: "t", XLabel: "cells", YLabel: "MSE", Curves: []Curve{
		{Name: "good", X: x, Y: []float64{0.1, 0.12, 0.15, 0.2}, Low: []float64{0.09, 0.1, 0.13, 0.17}, High: []float64{0.11, 0.14, 0.17, 0.23}},
		{Name: "bad", X: x, Y: []float64{0.3, 0.4, 0.5, 0.6}},
	}})
	right := image.Rect(diagramWide/2, 0, diagramWide, diagramHigh) // the legend is at the left
	good, n := rows(img, hue(0), right)
	bad, m := rows(img, hue(1), right)
	if n == 0 || m == 0 || bad >= good {
		t.Errorf("the larger error is at row %.0f (%d pixels), the smaller at %.0f (%d)", bad, m, good, n)
	}
}

func TestScatterKeepsBothAxesAlike(t *testing.T) {
	img := Scatter(Diagram{Title: "t", Curves: []Curve{
		{Name: "above", X: []float64{6, 7, 8}, Y: []float64{9, 9.5, 10}}, {Name: "below", X: []float64{6, 7, 8}, Y: []float64{0, 1, 2}},
	}})
	right := image.Rect(diagramWide/2, 0, diagramWide, diagramHigh) // the legend is at the left
	above, n := rows(img, hue(0), right)
	below, m := rows(img, hue(1), right)
	if n == 0 || m == 0 || above >= below || math.Abs(float64(n-m)) > 0.1*float64(n) {
		t.Errorf("larger products are at row %.0f (%d pixels), smaller ones at %.0f (%d)", above, n, below, m)
	}
}

func TestLongWavesAreAtTheLeft(t *testing.T) {
	img := Spectra(Diagram{Title: "t", XLabel: "cells", YLabel: "power", Curves: []Curve{
		{Name: "red", X: []float64{32, 16, 8, 4, 2}, Y: []float64{100, 30, 10, 3, 1}},
	}})
	left, n := rows(img, hue(0), image.Rect(0, 0, diagramWide/2, diagramHigh*3/4)) // above the legend
	right, m := rows(img, hue(0), image.Rect(diagramWide/2, 0, diagramWide, diagramHigh))
	if n == 0 || m == 0 || left >= right {
		t.Errorf("strong long waves are at row %.0f, weak short ones at %.0f", left, right)
	}
}

func TestDiagramsLeaveOutPointsThatCannotBeDrawn(t *testing.T) {
	nan := math.NaN()
	odd := Diagram{Title: "t", Curves: []Curve{
		{Name: "none"},
		{Name: "some", X: []float64{0, 1, 2, 4}, Y: []float64{1, nan, 0, 2}, Low: []float64{1, 1, -1, 1}, High: []float64{2, 2, 2, 3}},
		{Name: "all", X: []float64{nan}, Y: []float64{nan}},
	}}
	for name, draw := range map[string]func(Diagram) image.Image{"distance": ErrorByDistance, "spectra": Spectra, "reliability": Reliability, "scatter": Scatter} {
		if img := draw(odd); img.Bounds().Dx() != diagramWide {
			t.Errorf("%s: %v", name, img.Bounds())
		}
		if img := draw(Diagram{Title: "nothing"}); img.Bounds().Dx() != diagramWide {
			t.Errorf("%s without curves: %v", name, img.Bounds())
		}
	}
}

func TestBarsAreAsHighAsTheirCounts(t *testing.T) {
	img := RankHistogram{Title: "t", XLabel: "rank", Counts: []float64{10, 20, 10, 20}}.Draw()
	low, high := 0, 0
	quarter := diagramWide / 4
	for k := range 4 {
		// The plot begins after its labels, so a bar leans over the edge of a
		// quarter; count in the middle of each.
		_, n := rows(img, barBlue, image.Rect(k*quarter+quarter*45/100, 0, k*quarter+quarter*65/100, diagramHigh))
		if k%2 == 0 {
			low += n
		} else {
			high += n
		}
	}
	if ratio := float64(high) / float64(low); math.Abs(ratio-2) > 0.15 {
		t.Errorf("bars of twice the count have %.2f times the pixels", ratio)
	}
}

func TestPicturesAreTheSameEachTime(t *testing.T) {
	draw := func() image.Image {
		return RankHistogram{Title: "t", XLabel: "rank", Counts: []float64{1, 2, 3}}.Draw()
	}
	if !samePixels(draw(), draw()) {
		t.Error("two drawings of one histogram differ")
	}
}

func TestPNGAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "picture.png")
	img := RankHistogram{Title: "t", Counts: []float64{1, 2}}.Draw()
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WritePNG(path, img); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	back, err := png.Decode(bytes.NewReader(text))
	if err != nil || !samePixels(back, img) {
		t.Errorf("the file does not hold the picture: %v", err)
	}
	if err := WritePNG(path, image.NewRGBA(image.Rect(0, 0, 0, 5))); err == nil {
		t.Error("a picture without pixels was written")
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(again, text) {
		t.Error("a picture that cannot be encoded replaced one that could")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, want 1: %v", len(entries), err)
	}
}

func TestAxesHaveRoundNumbers(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      []float64
	}{
		{0, 1, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{-57.3, -53.1, []float64{-57, -56, -55, -54}},
		{0.12, 0.19, []float64{0.12, 0.14, 0.16, 0.18}},
	} {
		got := round(tt.low, tt.high, 5)
		if len(got) != len(tt.want) {
			t.Errorf("%g..%g is marked at %v", tt.low, tt.high, got)
			continue
		}
		for k := range got {
			if math.Abs(got[k]-tt.want[k]) > 1e-9 {
				t.Errorf("%g..%g is marked at %v, want %v", tt.low, tt.high, got, tt.want)
				break
			}
		}
	}
	for v, want := range map[float64]string{-130.5: "130.5°W", 200: "160°W", 12: "12°E", 0: "0°", 180: "180°"} {
		if got := eastOf(v); got != want {
			t.Errorf("longitude %g is written %q, want %q", v, got, want)
		}
	}
	if got := spelt("mg m⁻³"); got != "mg m^-3" {
		t.Errorf("unit is written %q", got)
	}
}

func TestLogarithmicBarIsLabelledWithValues(t *testing.T) {
	marks := Scale{Low: -1, High: 1, Log10: true}.marks()
	found := map[string]float64{}
	for _, m := range marks {
		found[m.label] = m.share
	}
	for label, share := range map[string]float64{"0.1": 0, "1": 0.5, "10": 1} {
		if got, ok := found[label]; !ok || math.Abs(got-share) > 1e-9 {
			t.Errorf("%s is at %v of the bar (%v), want %v", label, got, ok, share)
		}
	}
}
