// Package oklab takes colours from Ottosson's OKLab space to the screen
// (B. Ottosson, A perceptual color space for image processing, 2020).
//
// Distances in that space are close to those that the eye sees, so a palette
// whose points lie evenly in it shows equal steps of a value equally large. Which
// palette, and for what, is the business of those who draw.
package oklab

import (
	"image/color"
	"math"
)

// An LCh is a colour by lightness in 0..1, chroma and hue in degrees.
type LCh [3]float64

// Lab returns the point of c.
func (c LCh) Lab() Lab {
	sin, cos := math.Sincos(c[2] * math.Pi / 180)
	return Lab{c[0], c[1] * cos, c[1] * sin}
}

// A Lab is a point of the space: lightness, green to red, blue to yellow.
type Lab [3]float64

// Distance returns how far apart two colours look.
func Distance(a, b Lab) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// Shown reports whether a screen has the colour of p.
func (p Lab) Shown() bool {
	const slack = 1e-4 // a fortieth of the step between two values of a channel
	for _, v := range p.linear() {
		if v < -slack || v > 1+slack {
			return false
		}
	}
	return true
}

// RGBA returns the colour of p in sRGB (IEC 61966-2-1), each channel cut to
// the range of a screen.
func (p Lab) RGBA() color.RGBA {
	var out [3]uint8
	for i, v := range p.linear() {
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

// linear returns the linear sRGB values of p.
func (p Lab) linear() [3]float64 {
	l := cube(p[0] + 0.3963377774*p[1] + 0.2158037573*p[2])
	m := cube(p[0] - 0.1055613458*p[1] - 0.0638541728*p[2])
	s := cube(p[0] - 0.0894841775*p[1] - 1.2914855480*p[2])
	return [3]float64{
		4.0767416621*l - 3.3077115913*m + 0.2309699292*s,
		-1.2684380046*l + 2.6097574011*m - 0.3413193965*s,
		-0.0041960863*l - 0.7034186147*m + 1.7076147010*s,
	}
}

func cube(x float64) float64 { return x * x * x }
