package chart

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"testing"

	"lacuna/pipeline/field"
)

// region is a grid of 20 rows and 30 columns whose rows run north.
func region() field.Grid {
	g := field.Grid{}
	for i := range 20 {
		g.Lat = append(g.Lat, 40+0.1*float64(i))
	}
	for j := range 30 {
		g.Lon = append(g.Lon, -130+0.1*float64(j))
	}
	return g
}

// slope rises from west to east; the first column is land, cell 45 is missing.
func slope(g field.Grid) (values []float32, sea field.Mask) {
	for c := range g.Len() {
		values = append(values, float32(c%g.Width()))
		sea = append(sea, c%g.Width() > 0)
	}
	values[45] = field.NaN()
	return values, sea
}

func at(img image.Image, p image.Point) color.RGBA {
	return color.RGBAModel.Convert(img.At(p.X, p.Y)).(color.RGBA)
}

func TestValuesLandAndGapsHaveTheirColours(t *testing.T) {
	g := region()
	values, sea := slope(g)
	scale := Scale{Label: "value", Low: 0, High: 29}
	other := append([]float32(nil), values...)
	for c := range other {
		other[c] = float32(29 - c%30)
	}
	m := Maps{
		Title: "t", Grid: g, Sea: sea,
		Panels: []Panel{{Title: "a", Values: values, Scale: scale}, {Title: "b", Values: other, Scale: scale}},
	}
	img := m.Draw()
	l := m.layout()
	a, b := newRaster(g, l.panels[0]), newRaster(g, l.panels[1])
	if got := at(img, a.centre(30)); got != landGrey {
		t.Errorf("land is %v", got)
	}
	if got := at(img, a.centre(45)); got != missingWhite {
		t.Errorf("a missing cell is %v", got)
	}
	palette := Sequential.palette()
	for _, v := range []int{3, 14, 27} {
		want := palette[shadeAt(scale.share(float64(v)))]
		if one, two := at(img, a.centre(5*30+v)), at(img, b.centre(5*30+29-v)); one != want || two != want {
			t.Errorf("value %d is %v and %v in two panels of one scale, want %v", v, one, two, want)
		}
	}
}

func TestNorthIsUpAndEastIsRightWhicheverWayAxesRun(t *testing.T) {
	up := region()
	down := field.Grid{Lat: append([]float64(nil), up.Lat...), Lon: append([]float64(nil), up.Lon...)}
	for i := range 20 {
		down.Lat[i] = up.Lat[19-i]
	}
	for j := range 30 {
		down.Lon[j] = up.Lon[29-j]
	}
	values := make([]float32, up.Len())
	flipped := make([]float32, up.Len())
	for c := range values {
		values[c] = float32(c)
		flipped[len(values)-1-c] = float32(c)
	}
	scale := Scale{Low: 0, High: 600}
	draw := func(g field.Grid, v []float32) image.Image {
		return Maps{Title: "t", Grid: g, Panels: []Panel{{Values: v, Scale: scale}}}.Draw()
	}
	a, b := draw(up, values), draw(down, flipped)
	if !samePixels(a, b) {
		t.Error("the same field on flipped axes looks different")
	}
	m := Maps{Title: "t", Grid: up, Panels: []Panel{{Values: values, Scale: scale}}}
	r := newRaster(up, m.layout().panels[0])
	if north, south := r.centre(19*30), r.centre(0); north.Y >= south.Y {
		t.Errorf("the northernmost row is at pixel %d, the southernmost at %d", north.Y, south.Y)
	}
}

func samePixels(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if at(a, image.Pt(x, y)) != at(b, image.Pt(x, y)) {
				return false
			}
		}
	}
	return true
}

func TestOutlinesRunWhereMasksEnd(t *testing.T) {
	g := region()
	values := make([]float32, g.Len())
	visible, scored := make(field.Mask, g.Len()), make(field.Mask, g.Len())
	for c := range values {
		inside := c/30 >= 5 && c/30 < 15
		visible[c] = inside && c%30 >= 4 && c%30 < 12
		scored[c] = inside && c%30 >= 12 && c%30 < 24
	}
	m := Maps{Title: "t", Grid: g, Panels: []Panel{{
		Values: values, Scale: Scale{Low: -1, High: 1}, Visible: visible, Scored: scored,
	}}}
	img := m.Draw()
	r := newRaster(g, m.layout().panels[0])
	half := image.Pt(r.at.Dx()/30/2-1, 0)
	row := 10 * 30
	for _, tt := range []struct {
		what string
		at   image.Point
		want color.RGBA
	}{
		{"west edge of the visible", r.centre(row + 4).Sub(half), visibleBlack},
		{"east edge of the visible", r.centre(row + 11).Add(half), visibleBlack},
		{"west edge of the scored", r.centre(row + 12).Sub(half), scoredRed},
		{"east edge of the scored", r.centre(row + 23).Add(half), scoredRed},
	} {
		if got := at(img, tt.at); got != tt.want {
			t.Errorf("%s is %v, want %v", tt.what, got, tt.want)
		}
	}
	plain := Sequential.palette()[shadeAt(0.5)]
	for _, c := range []int{row + 8, row + 18, row + 2, 30 + 18} {
		if got := at(img, r.centre(c)); got != plain {
			t.Errorf("cell %d, away from all edges, is %v", c, got)
		}
	}
}

func TestZeroProbabilitiesAreMarkedAndCounted(t *testing.T) {
	g := region()
	values, sea := slope(g)
	for c, v := range values {
		values[c] = v / 40
	}
	values[0], values[100], values[200] = 0, 0, 0 // the first is land
	p := Probabilities{Title: "t", Label: "P", Grid: g, Sea: sea, Maps: []Probability{{"a", values}}}
	if zeros, cells := p.zeros(values); zeros != 2 || cells != 20*29-1 {
		t.Errorf("%d of %d zero, want 2 of %d", zeros, cells, 20*29-1)
	}
	img := p.Draw()
	sheet := Maps{Title: "t", Grid: g, Panels: []Panel{{Values: values}}}
	r := newRaster(g, sheet.layout().panels[0])
	if got := at(img, r.centre(100)); got != neverMagenta {
		t.Errorf("a cell of probability zero is %v", got)
	}
	if got := at(img, r.centre(0)); got != landGrey {
		t.Errorf("land of probability zero is %v", got)
	}
}

func TestPanelsOfOneScaleShareABar(t *testing.T) {
	g := region()
	values, _ := slope(g)
	one, two := Scale{Low: 0, High: 1}, Scale{Low: 0, High: 2}
	m := Maps{Grid: g, Panels: []Panel{{Values: values, Scale: one}, {Values: values, Scale: one}, {Values: values, Scale: two}}}
	if l := m.layout(); l.barAfter[0] || !l.barAfter[1] || !l.barAfter[2] {
		t.Errorf("bars after columns: %v", l.barAfter)
	}
	m.Columns = 2
	l := m.layout()
	if l.rows != 2 || l.panels[2].Min.X != l.panels[0].Min.X || l.panels[2].Min.Y <= l.panels[0].Max.Y {
		t.Errorf("the third of two columns is at %v, the first at %v", l.panels[2], l.panels[0])
	}
}

func TestReconstructionOfNothingIsStillAPicture(t *testing.T) {
	g := region()
	n := g.Len()
	gap := make([]float32, n)
	for c := range gap {
		gap[c] = field.NaN()
	}
	none := make(field.Mask, n)
	for name, values := range map[string][]float32{"gaps": gap, "constant": make([]float32, n)} {
		r := Reconstruction{Title: name, Grid: g, Truth: values, Filled: values, Visible: none, Scored: none, Log10: true}
		if b := r.Draw().Bounds(); b.Dx() < 400 || b.Dy() < 200 {
			t.Errorf("%s: picture of %v", name, b)
		}
	}
}

func TestLargeGridsStayOnTheScreen(t *testing.T) {
	for _, tt := range []struct{ rows, cols int }{{64, 64}, {790, 1101}, {4320, 8640}, {1, 1}, {3, 300}} {
		w, h := fit(tt.rows, tt.cols, 1, panelPixels)
		if w < 1 || h < 1 || w > mostPixels || h > mostPixels {
			t.Errorf("%d×%d cells take %d×%d pixels", tt.rows, tt.cols, w, h)
		}
		if shape := float64(w) / float64(h) * float64(tt.rows) / float64(tt.cols); tt.rows > 3 && math.Abs(shape-1) > 0.05 {
			t.Errorf("%d×%d cells are drawn %.2f times too wide", tt.rows, tt.cols, shape)
		}
	}
}

func TestContactShowsEachMask(t *testing.T) {
	const side = 22
	full, empty, sea := make(field.Mask, side*side), make(field.Mask, side*side), make(field.Mask, side*side)
	for c := range full {
		full[c], sea[c] = true, c%side > 0
	}
	img := Contact{
		Title: "t", Height: side, Width: side, Sea: sea,
		Rows: []ContactRow{{Name: "real", Masks: []field.Mask{full, empty}, Captions: []string{"all", "none"}}},
	}.Draw()
	count := map[color.RGBA]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			count[at(img, image.Pt(x, y))]++
		}
	}
	cell := thumbPixels / side * (thumbPixels / side)
	if got, want := count[observedBlue], side*(side-1)*cell; got < want || got > want+400 { // the key has a swatch of the same colour
		t.Errorf("%d pixels are observed, want about %d", got, want)
	}
	if got, want := count[landGrey], 2*side*cell; got < want || got > want+400 {
		t.Errorf("%d pixels are land, want about %d", got, want)
	}
}

// centre returns the pixel in the middle of a cell.
func (r raster) centre(c int) image.Point {
	row, col := c/r.width, c%r.width
	if r.flipRows {
		row = r.height - 1 - row
	}
	if r.flipCols {
		col = r.width - 1 - col
	}
	return image.Pt(r.at.Min.X+(2*col+1)*r.at.Dx()/(2*r.width), r.at.Min.Y+(2*row+1)*r.at.Dy()/(2*r.height))
}

func TestPicturesBelowOneAnotherKeepTheirPixels(t *testing.T) {
	wide, narrow := image.NewRGBA(image.Rect(0, 0, 30, 10)), image.NewRGBA(image.Rect(5, 5, 15, 25))
	red, blue := color.RGBA{0xff, 0, 0, 0xff}, color.RGBA{0, 0, 0xff, 0xff}
	draw.Draw(wide, wide.Bounds(), image.NewUniform(red), image.Point{}, draw.Src)
	draw.Draw(narrow, narrow.Bounds(), image.NewUniform(blue), image.Point{}, draw.Src)
	got := Below(wide, narrow)
	if got.Bounds().Dx() != 30 || got.Bounds().Dy() != 30 {
		t.Fatalf("the picture is %v", got.Bounds())
	}
	white := color.RGBA{0xff, 0xff, 0xff, 0xff}
	for p, want := range map[image.Point]color.RGBA{{29, 9}: red, {0, 10}: blue, {9, 29}: blue, {10, 10}: white, {29, 29}: white} {
		if c := at(got, p); c != want {
			t.Errorf("%v is %v, want %v", p, c, want)
		}
	}
}
