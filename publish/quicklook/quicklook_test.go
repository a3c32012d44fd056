package quicklook

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"testing"
)

// scene is a sea whose values grow to the east, with land in the north-west
// quarter and a gap in the south-east one. Rows run from south to north.
func scene(rows, cols int) Scene {
	s := Scene{Title: "a sea, 2024-04-30", Units: "mg m-3", SigmaUnits: "log10", Log: true}
	for r := range rows {
		s.Lat = append(s.Lat, 40+8*float64(r)/float64(rows))
	}
	for c := range cols {
		s.Lon = append(s.Lon, 27+15*float64(c)/float64(cols))
	}
	nan := float32(math.NaN())
	for r := range rows {
		for c := range cols {
			land, hidden := r >= rows/2 && c < cols/2, r < rows/2 && c >= cols/2
			v := float32(math.Pow(10, -1+2*float64(c)/float64(cols)))
			observed, sigma := v, nan
			if hidden {
				observed, sigma = nan, 0.3
			}
			if land {
				v, observed = nan, nan
			}
			s.Land = append(s.Land, land)
			s.Observed, s.Filled, s.Sigma = append(s.Observed, observed), append(s.Filled, v), append(s.Sigma, sigma)
		}
	}
	return s
}

func render(t *testing.T, s Scene) *image.RGBA {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, s); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return img.(*image.RGBA)
}

// at returns the pixel of a panel at a share of its width and height.
func at(img *image.RGBA, s Scene, panel int, fx, fy float64) color.RGBA {
	r := newRaster(s.Lat, s.Lon, s.Land)
	top := titlePixel + headPixel + panel/perRow*(r.height+marginPixel+headPixel)
	return img.RGBAAt(marginPixel+panel%perRow*(r.width+marginPixel)+int(fx*float64(r.width)), top+int(fy*float64(r.height)))
}

func TestMapsShowLandGapsAndValuesWhereTheyAre(t *testing.T) {
	for _, size := range [][2]int{{40, 60}, {400, 900}} { // enlarged and reduced
		s := scene(size[0], size[1])
		img := render(t, s)
		for panel := range 3 {
			if c := at(img, s, panel, 0.2, 0.2); c != ground {
				t.Errorf("%v: north-west of panel %d is %v, want land", size, panel, c)
			}
		}
		if c := at(img, s, 0, 0.8, 0.8); c != gap {
			t.Errorf("%v: the gap is %v in the observed map", size, c)
		}
		if c := at(img, s, 1, 0.8, 0.8); c == gap || c == ground {
			t.Errorf("%v: the gap is %v in the filled map, want a value", size, c)
		}
		if a, b := at(img, s, 0, 0.8, 0.2), at(img, s, 1, 0.8, 0.2); a != b {
			t.Errorf("%v: an observed value is %v before and %v after", size, a, b)
		}
		if c := at(img, s, 2, 0.8, 0.2); c != gap {
			t.Errorf("%v: uncertainty of an observed value is %v, want none", size, c)
		}
		west, east := lightness(at(img, s, 1, 0.55, 0.2)), lightness(at(img, s, 1, 0.95, 0.2))
		if west >= east {
			t.Errorf("%v: lightness goes from %.2f to %.2f where values grow", size, west, east)
		}
	}
}

// Two members are drawn below the maps, by the colours of the values: each its own
// in the gap, and alike where the sensor saw.
func TestTwoMembersAreDrawnBelowTheMaps(t *testing.T) {
	s := scene(40, 60)
	for k := range 16 {
		member := slices.Clone(s.Filled)
		for i, seen := range s.Observed {
			if seen != seen && !s.Land[i] {
				member[i] = 0.2 * float32(k+1)
			}
		}
		s.Members = append(s.Members, member)
	}
	img := render(t, s)
	a, b := at(img, s, 3, 0.8, 0.8), at(img, s, 4, 0.8, 0.8)
	if a == b || a == gap || b == gap || a == paper || b == paper {
		t.Errorf("in the gap the members are %v and %v", a, b)
	}
	if a, b := at(img, s, 3, 0.8, 0.2), at(img, s, 1, 0.8, 0.2); a != b {
		t.Errorf("an observed value is %v in a member and %v in the filled map", a, b)
	}
	plain := scene(40, 60)
	if high := render(t, plain).Bounds().Dy(); high >= img.Bounds().Dy() || at(img, s, 5, 0.5, 0.5) != paper {
		t.Errorf("%d pixels high without members and %d with them", high, img.Bounds().Dy())
	}
	s.Members = [][]float32{{1}}
	if err := Render(io.Discard, s); err == nil {
		t.Error("a member of another size was drawn")
	}
}

func TestNorthIsUpWhicheverWayTheGridRuns(t *testing.T) {
	s := scene(40, 60)
	turned := s
	rows, cols := 40, 60
	turned.Lat = make([]float64, rows)
	turned.Observed, turned.Filled = make([]float32, rows*cols), make([]float32, rows*cols)
	turned.Sigma, turned.Land = make([]float32, rows*cols), make([]bool, rows*cols)
	for r := range rows {
		turned.Lat[r] = s.Lat[rows-1-r]
		for c := range cols {
			to, from := r*cols+c, (rows-1-r)*cols+c
			turned.Observed[to], turned.Filled[to] = s.Observed[from], s.Filled[from]
			turned.Sigma[to], turned.Land[to] = s.Sigma[from], s.Land[from]
		}
	}
	if !bytes.Equal(render(t, s).Pix, render(t, turned).Pix) {
		t.Error("the same map stored from north to south gives another picture")
	}
}

func TestCoastIsDrawnBetweenLandAndSea(t *testing.T) {
	s := scene(40, 60)
	img := render(t, s)
	found := false
	for fx := 0.45; fx < 0.55; fx += 0.002 {
		found = found || at(img, s, 1, fx, 0.2) == shore
	}
	if !found {
		t.Error("no coast on the way from land to sea")
	}
}

// Equal steps must look equal: lightness, by an independent formula (CIE L*),
// grows all the way and nowhere in jumps.
func TestColoursAreEvenlySpaced(t *testing.T) {
	const steps = 64
	last := lightness(shade(0))
	var least, most float64 = math.Inf(1), 0
	for i := 1; i <= steps; i++ {
		l := lightness(shade(float64(i) / steps))
		least, most = math.Min(least, l-last), math.Max(most, l-last)
		last = l
	}
	const unevenness = 2.5 // times; L* and OKLab differ by this much in the dark
	if least <= 0 || most > unevenness*least {
		t.Errorf("steps of lightness are from %.3f to %.3f", least, most)
	}
	for _, c := range []color.RGBA{gap, ground, paper} {
		for i := range steps {
			if shade(float64(i)/steps) == c {
				t.Errorf("colour %v of the map is a value's", c)
			}
		}
	}
}

// lightness is CIE L* of a colour.
func lightness(c color.RGBA) float64 {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	y := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	if y <= 216.0/24389 {
		return y * 24389 / 27
	}
	return 116*math.Cbrt(y) - 16
}

func TestTicksLieOnTheScale(t *testing.T) {
	for _, s := range []scale{
		{low: -1, high: 1, log: true},
		{low: -0.1, high: 0.1, log: true},
		{high: 0.31},
		{low: 270, high: 300},
		{low: -3.7, high: 4.2},
		{low: -5, high: 5, log: true},
	} {
		ticks := s.ticks(8)
		if len(ticks) < 2 || len(ticks) > 11 {
			t.Errorf("%v..%v has the ticks %v", s.low, s.high, ticks)
		}
		for _, v := range ticks {
			if s.log {
				v = math.Log10(v)
			}
			if v < s.low-1e-9 || v > s.high+1e-9 {
				t.Errorf("%v..%v has a tick at %v", s.low, s.high, v)
			}
		}
	}
}

func TestOddScenesAreDrawnOrRefused(t *testing.T) {
	empty := scene(10, 10)
	for i := range empty.Filled {
		empty.Filled[i], empty.Sigma[i] = float32(math.NaN()), float32(math.NaN())
	}
	render(t, empty)
	flat := scene(10, 10)
	for i := range flat.Filled {
		flat.Filled[i] = 1
	}
	render(t, flat)
	zero := scene(10, 10)
	zero.Filled[99] = 0 // no logarithm
	render(t, zero)
	strip := scene(2, 300)
	render(t, strip)
	short := scene(10, 10)
	short.Sigma = short.Sigma[:50]
	if err := Render(&bytes.Buffer{}, short); err == nil {
		t.Error("a map that is too short was drawn")
	}
	if err := Render(&bytes.Buffer{}, Scene{}); err == nil {
		t.Error("an empty grid was drawn")
	}
}

func BenchmarkRender(b *testing.B) {
	s := scene(790, 1101) // the Black Sea at 1 km
	b.ReportAllocs()
	for b.Loop() {
		if err := Render(io.Discard, s); err != nil {
			b.Fatal(err)
		}
	}
}
