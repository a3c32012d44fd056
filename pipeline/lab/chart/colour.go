package chart

import (
	"image/color"
	"math"
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
)

// An lch is a colour of Ottosson's OKLab space by lightness, chroma and hue in
// degrees. Distances in that space are close to those that the eye sees.
type lch struct {
	lightness, chroma, hue float64
}

// path returns the colours that a map runs through. Lightness moves one way
// only, except for Diverging, so the order survives a grey printer.
func (c Colours) path() []lch {
	switch c {
	case Warm:
		return []lch{{0.20, 0.06, 290}, {0.40, 0.14, 325}, {0.60, 0.19, 375}, {0.78, 0.15, 415}, {0.95, 0.09, 460}}
	case Diverging:
		return []lch{
			{0.38, 0.14, 262},
			{0.60, 0.12, 245},
			{0.80, 0.07, 220},
			{0.955, 0.045, 105},
			{0.80, 0.11, 65},
			{0.60, 0.17, 38},
			{0.40, 0.15, 22},
		}
	default:
		return []lch{{0.22, 0.08, 300}, {0.36, 0.11, 275}, {0.52, 0.10, 225}, {0.68, 0.115, 170}, {0.82, 0.155, 130}, {0.95, 0.16, 104}}
	}
}

// palette returns the colours of a map, dark end first, at even distances
// along its path in OKLab.
func (c Colours) palette() []color.RGBA {
	const fine = 4096 // points along the path, many more than shades
	path := c.path()
	points := make([][3]float64, fine)
	length := make([]float64, fine)
	for i := range points {
		points[i] = along(path, float64(i)/(fine-1))
		if i > 0 {
			length[i] = length[i-1] + distance(points[i], points[i-1])
		}
	}
	out := make([]color.RGBA, shades)
	k := 0
	for s := range out {
		for k < fine-1 && length[k] < length[fine-1]*float64(s)/(shades-1) {
			k++
		}
		out[s] = rgb(points[k])
	}
	return out
}

// along returns the point of OKLab at the given share of a path, by a
// Catmull-Rom spline through its colours, with chroma cut to the range of a
// screen.
func along(path []lch, share float64) [3]float64 {
	at := share * float64(len(path)-1)
	i := min(int(at), len(path)-2)
	u := at - float64(i)
	p := [4]lch{path[max(i-1, 0)], path[i], path[i+1], path[min(i+2, len(path)-1)]}
	spline := func(pick func(lch) float64) float64 {
		a, b, c, d := pick(p[0]), pick(p[1]), pick(p[2]), pick(p[3])
		return b + u/2*(c-a+u*(2*a-5*b+4*c-d+u*(3*(b-c)+d-a)))
	}
	col := lch{
		lightness: spline(func(x lch) float64 { return x.lightness }),
		chroma:    spline(func(x lch) float64 { return x.chroma }),
		hue:       spline(func(x lch) float64 { return x.hue }),
	}
	for !shown(linear(col.lab())) && col.chroma > 0 {
		col.chroma -= 0.002
	}
	return col.lab()
}

func (c lch) lab() [3]float64 {
	sin, cos := math.Sincos(c.hue * math.Pi / 180)
	return [3]float64{c.lightness, c.chroma * cos, c.chroma * sin}
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// linear returns the linear sRGB values of a point of OKLab.
func linear(p [3]float64) [3]float64 {
	l := cubed(p[0] + 0.3963377774*p[1] + 0.2158037573*p[2])
	m := cubed(p[0] - 0.1055613458*p[1] - 0.0638541728*p[2])
	s := cubed(p[0] - 0.0894841775*p[1] - 1.2914855480*p[2])
	return [3]float64{
		4.0767416621*l - 3.3077115913*m + 0.2309699292*s,
		-1.2684380046*l + 2.6097574011*m - 0.3413193965*s,
		-0.0041960863*l - 0.7034186147*m + 1.7076147010*s,
	}
}

func cubed(x float64) float64 { return x * x * x }

func shown(c [3]float64) bool {
	const slack = 1e-4
	for _, v := range c {
		if v < -slack || v > 1+slack {
			return false
		}
	}
	return true
}

// rgb returns the sRGB colour of a point of OKLab.
func rgb(p [3]float64) color.RGBA {
	var out [3]uint8
	for i, v := range linear(p) {
		v = min(max(v, 0), 1)
		if v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		out[i] = uint8(math.Round(255 * v))
	}
	return color.RGBA{out[0], out[1], out[2], 0xff}
}

// hue returns the k-th of a set of line colours that people with any kind of
// colour vision can tell apart: dark and light ones take turns.
func hue(k int) color.RGBA {
	list := []lch{
		{0.45, 0.15, 258},
		{0.66, 0.17, 45},
		{0.58, 0.13, 160},
		{0.52, 0.20, 350},
		{0.74, 0.10, 225},
		{0.80, 0.15, 90},
		{0.40, 0.10, 300},
		{0.50, 0.02, 250},
	}
	return rgb(list[k%len(list)].lab())
}
