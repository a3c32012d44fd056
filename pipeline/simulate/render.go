package simulate

import (
	"image"
	"image/color"
	"math"

	"lacuna/pipeline/field"
)

// Colours of land and gaps.
var (
	landColour = color.RGBA{R: 0x8c, G: 0x87, B: 0x80, A: 0xff}
	gapColour  = color.RGBA{R: 0xf4, G: 0xf4, B: 0xf6, A: 0xff}
)

// Render returns a picture of f, north up and one pixel a cell: values from
// low to high (in log10 where log is set) as colours from dark blue over
// green to yellow, land grey, gaps as white as the clouds that make them.
func Render(f field.Field, low, high float64, log bool) image.Image {
	h, w := f.Grid.Height(), f.Grid.Width()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	scale := func(v float64) float64 { return (v - low) / (high - low) }
	if log {
		scale = func(v float64) float64 { return math.Log(v/low) / math.Log(high/low) }
	}
	northFirst := f.Grid.Lat[0] > f.Grid.Lat[h-1]
	for i := range h {
		y := h - 1 - i
		if northFirst {
			y = i
		}
		for j := range w {
			x := j
			if f.Grid.Lon[0] > f.Grid.Lon[w-1] {
				x = w - 1 - j
			}
			at := i*w + j
			switch {
			case f.Sea != nil && !f.Sea[at]:
				img.SetRGBA(x, y, landColour)
			case !f.Observed(at):
				img.SetRGBA(x, y, gapColour)
			default:
				img.SetRGBA(x, y, ramp(scale(float64(f.Values[at]))))
			}
		}
	}
	return img
}

// ramp returns the colour at t in 0..1: lightness rises evenly, so that
// equal steps look equal, also in grey.
func ramp(t float64) color.RGBA {
	stops := [...][3]float64{
		{24, 12, 72}, {36, 52, 128}, {26, 96, 148}, {24, 136, 138}, {64, 172, 104}, {152, 202, 66}, {250, 232, 76},
	}
	t = min(max(t, 0), 1) * float64(len(stops)-1)
	k := min(int(t), len(stops)-2)
	mixed := func(c int) uint8 { return uint8(math.Round(lerp(t-float64(k), stops[k][c], stops[k+1][c]))) }
	return color.RGBA{R: mixed(0), G: mixed(1), B: mixed(2), A: 0xff}
}
