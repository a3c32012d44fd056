package chart

import (
	"image/color"

	"lacuna/internal/oklab"
)

// Colours names a colour map.
type Colours int

const (
	// Sequential runs from dark violet by teal to yellow, for values.
	Sequential Colours = iota
	// Warm runs from dark violet by red to pale yellow, for spreads.
	Warm
	// Diverging runs from blue by pale yellow to red, for differences; the
	// middle is not white, because white is missing.
	Diverging
)

// shades is the number of different colours of a map: more cannot be told
// apart.
const shades = 256

// Fixed colours of land, gaps and lines.
var (
	landGrey     = color.RGBA{0xb4, 0xb4, 0xb4, 0xff}
	missingWhite = color.RGBA{0xff, 0xff, 0xff, 0xff}
	visibleBlack = color.RGBA{0x00, 0x00, 0x00, 0xff}
	scoredRed    = color.RGBA{0xe0, 0x10, 0x20, 0xff}
	neverMagenta = color.RGBA{0xff, 0x2d, 0xb4, 0xff}
	ink          = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint        = color.RGBA{0xd8, 0xd8, 0xd8, 0xff}
	barBlue      = oklab.LCh{0.66, 0.10, 245}.Lab().RGBA()
)

// path returns the colours that a map runs through. Lightness moves one way
// only, except for Diverging, so the order survives a grey printer.
func (c Colours) path() []oklab.LCh {
	switch c {
	case Warm:
		return []oklab.LCh{{0.20, 0.06, 290}, {0.40, 0.14, 325}, {0.60, 0.19, 375}, {0.78, 0.15, 415}, {0.95, 0.09, 460}}
	case Diverging:
		return []oklab.LCh{
			{0.38, 0.14, 262},
			{0.60, 0.12, 245},
			{0.80, 0.07, 220},
			{0.955, 0.045, 105},
			{0.80, 0.11, 65},
			{0.60, 0.17, 38},
			{0.40, 0.15, 22},
		}
	default:
		return []oklab.LCh{{0.22, 0.08, 300}, {0.36, 0.11, 275}, {0.52, 0.10, 225}, {0.68, 0.115, 170}, {0.82, 0.155, 130}, {0.95, 0.16, 104}}
	}
}

// palette returns the colours of a map, dark end first, at even distances
// along its path in OKLab.
func (c Colours) palette() []color.RGBA {
	const fine = 4096 // points along the path, many more than shades
	path := c.path()
	points := make([]oklab.Lab, fine)
	length := make([]float64, fine)
	for i := range points {
		points[i] = along(path, float64(i)/(fine-1))
		if i > 0 {
			length[i] = length[i-1] + oklab.Distance(points[i], points[i-1])
		}
	}
	out := make([]color.RGBA, shades)
	k := 0
	for s := range out {
		for k < fine-1 && length[k] < length[fine-1]*float64(s)/(shades-1) {
			k++
		}
		out[s] = points[k].RGBA()
	}
	return out
}

// along returns the point of OKLab at the given share of a path, by a
// Catmull-Rom spline through its colours, with chroma cut to the range of a
// screen.
func along(path []oklab.LCh, share float64) oklab.Lab {
	at := share * float64(len(path)-1)
	i := min(int(at), len(path)-2)
	u := at - float64(i)
	p := [4]oklab.LCh{path[max(i-1, 0)], path[i], path[i+1], path[min(i+2, len(path)-1)]}
	var col oklab.LCh
	for k := range col {
		a, b, c, d := p[0][k], p[1][k], p[2][k], p[3][k]
		col[k] = b + u/2*(c-a+u*(2*a-5*b+4*c-d+u*(3*(b-c)+d-a)))
	}
	for !col.Lab().Shown() && col[1] > 0 {
		col[1] -= 0.002
	}
	return col.Lab()
}

// hue returns the k-th of a set of line colours that people with any kind of
// colour vision can tell apart: dark and light ones take turns.
func hue(k int) color.RGBA {
	list := []oklab.LCh{
		{0.45, 0.15, 258},
		{0.66, 0.17, 45},
		{0.58, 0.13, 160},
		{0.52, 0.20, 350},
		{0.74, 0.10, 225},
		{0.80, 0.15, 90},
		{0.40, 0.10, 300},
		{0.50, 0.02, 250},
	}
	return list[k%len(list)].Lab().RGBA()
}
