package quicklook

import (
	"image/color"
	"math"
	"slices"

	"lacuna/internal/oklab"
)

// scale takes values to colours.
type scale struct {
	low, high float64 // in the space of the colours
	log       bool
	palette   *palette
}

// palette is the colours of a scale, from its low to its high end: more than
// anybody can tell apart.
type palette [512]color.RGBA

func newPalette() *palette {
	var p palette
	for i := range p {
		p[i] = shade(float64(i) / float64(len(p)-1))
	}
	return &p
}

// The ends of a scale leave out the outermost values, so that one odd pixel
// does not take the colours from all others.
const (
	lowShare  = 0.02
	highShare = 0.98
	sampled   = 50_000 // values that the ends are found from; more change nothing that can be seen
)

// scaleOf returns the scale that fits the values at sea.
func scaleOf(values []float32, land []bool, log bool) scale {
	s := scale{log: log, palette: newPalette()}
	stride := 1 + len(values)/sampled
	var seen []float64
	for i := 0; i < len(values); i += stride {
		if v := s.place(values[i]); !land[i] && !math.IsNaN(v) {
			seen = append(seen, v)
		}
	}
	if len(seen) == 0 {
		s.high = 1
		return s
	}
	slices.Sort(seen)
	s.low, s.high = seen[int(lowShare*float64(len(seen)-1))], seen[int(highShare*float64(len(seen)-1))]
	if s.high-s.low < 1e-9 {
		s.high = s.low + 1 // a flat sea
	}
	return s
}

// place returns the position of a value on the scale, NaN where it has none.
func (s scale) place(v float32) float64 {
	x := float64(v)
	if s.log {
		x = math.Log10(x)
	}
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	return x
}

// colour returns the colour of a place.
func (s scale) colour(place float64) color.RGBA {
	last := float64(len(s.palette) - 1)
	x := math.Round((place - s.low) / (s.high - s.low) * last)
	return s.palette[int(math.Max(0, math.Min(last, x)))]
}

// ticks returns the values to be written under a bar: those of 1, 2 and 5
// times a power of ten that lie on it, thinned to the most that fit.
func (s scale) ticks(most int) []float64 {
	if s.log {
		all := logTicks(s.low, s.high, []float64{1, 2, 5})
		if len(all) > most {
			all = logTicks(s.low, s.high, []float64{1})
		}
		if len(all) >= 2 {
			return all
		}
		low, high := math.Pow(10, s.low), math.Pow(10, s.high)
		return linearTicks(low, high, most)
	}
	return linearTicks(s.low, s.high, most)
}

func logTicks(low, high float64, mantissas []float64) []float64 {
	var all []float64
	for power := math.Floor(low); power <= high; power++ {
		for _, m := range mantissas {
			v := m * math.Pow(10, power)
			if at := math.Log10(v); at >= low && at <= high {
				all = append(all, v)
			}
		}
	}
	return all
}

func linearTicks(low, high float64, most int) []float64 {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(most))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (high-low)/(m*step) <= float64(most) {
			step *= m
			break
		}
	}
	var all []float64
	for v := math.Ceil(low/step) * step; v <= high+step*1e-9; v += step {
		all = append(all, v)
	}
	return all
}

// shade returns the colour at x in 0..1, from dark blue over green to yellow.
//
// It is a path through OKLCh on which lightness grows evenly, so that equal
// steps of a value look equally large, also to those who do not see hues and
// in print. The hue turns evenly too; the colours are as strong as a screen
// can show, up to a bound.
func shade(x float64) color.RGBA {
	const (
		darkest, lightest = 0.28, 0.93
		blue, yellow      = 285.0, 105.0 // degrees
		strongest         = 0.14
	)
	x = math.Max(0, math.Min(1, x))
	with := func(chroma float64) oklab.Lab {
		return oklab.LCh{darkest + (lightest-darkest)*x, chroma, blue + (yellow-blue)*x}.Lab()
	}
	if c := with(strongest); c.Shown() {
		return c.RGBA()
	}
	shows, fails := 0.0, strongest // grey is always shown
	for range 12 {                 // to less than one step of a screen's colours
		middle := (shows + fails) / 2
		if with(middle).Shown() {
			shows = middle
		} else {
			fails = middle
		}
	}
	return with(shows).RGBA()
}
