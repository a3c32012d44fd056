package chart

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
)

// RankHistogram shows the rank of the truth among the members, or the part of
// the distribution in which it fell.
type RankHistogram struct {
	Title  string
	XLabel string // such as "rank of the truth among 16 members"
	Counts []float64
}

// Draw returns the histogram as a ratio to an even one, which is drawn as a
// line at 1: bars on the line are calibrated, a valley is too narrow, a hill
// too wide.
func (h RankHistogram) Draw() image.Image {
	total := 0.0
	for _, c := range h.Counts {
		total += c
	}
	p := newPlot(Diagram{Title: h.Title, XLabel: h.XLabel, YLabel: "frequency over that of an even histogram"})
	b := bars{colour: barBlue}
	for _, c := range h.Counts {
		b.heights = append(b.heights, c/max(total, math.SmallestNonzeroFloat64)*float64(len(h.Counts)))
	}
	p.Add(b)
	even, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 1}, {X: float64(len(h.Counts)) - 0.5, Y: 1}})
	if err != nil {
		panic(err) // two finite points
	}
	even.Color, even.Width, even.Dashes = ink, 1.5, []vg.Length{6, 4}
	p.Add(even)
	p.Legend.Add("calibrated", even)
	p.X.Tick.Marker = ticks{func(low, high float64) []float64 { return wholeNumbers(len(h.Counts)) }}
	p.Y.Min, p.Y.Max = 0, max(1.6, 1.15*p.Y.Max)
	return render(p)
}

// wholeNumbers returns about a dozen of 0..n-1.
func wholeNumbers(n int) []float64 {
	step := max((n+11)/12, 1)
	var out []float64
	for k := 0; k < n; k += step {
		out = append(out, float64(k))
	}
	return out
}

// bars are columns around 0, 1, 2, ... that fill their place but for a gap.
type bars struct {
	heights []float64
	colour  color.RGBA
}

// Plot implements plot.Plotter.
func (b bars) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for k, h := range b.heights {
		left, right := x(float64(k)-0.42), x(float64(k)+0.42)
		c.FillPolygon(b.colour, []vg.Point{{X: left, Y: y(0)}, {X: right, Y: y(0)}, {X: right, Y: y(h)}, {X: left, Y: y(h)}})
	}
}

// DataRange implements plot.DataRanger.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, h := range b.heights {
		ymax = max(ymax, h)
	}
	return -0.5, float64(len(b.heights)) - 0.5, 0, ymax
}
