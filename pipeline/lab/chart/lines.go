package chart

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A Curve is one line of a diagram. Points with a NaN are left out.
type Curve struct {
	Name      string
	X, Y      []float64
	Low, High []float64 // confidence band; nil: no band
}

// Diagram is a set of curves.
type Diagram struct {
	Title          string
	XLabel, YLabel string // with units
	Curves         []Curve
}

// Pixels of a diagram.
const (
	diagramWide = 820
	diagramHigh = 520
)

// ErrorByDistance draws errors against the distance to the nearest
// observation, which doubles from mark to mark.
func ErrorByDistance(d Diagram) image.Image {
	p := newPlot(d)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks{doubling}
	d = d.kept(func(x, y float64) bool { return x > 0 })
	addCurves(p, d, true)
	p.Y.Min = min(0, p.Y.Min)
	return render(p)
}

// Spectra draws power, or a ratio of powers, against wavelength, long waves to
// the left, both axes in powers of ten.
func Spectra(d Diagram) image.Image {
	p := newPlot(d)
	p.X.Scale, p.X.Tick.Marker = plot.InvertedScale{Normalizer: plot.LogScale{}}, ticks{doubling}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ticks{decades}
	d = d.kept(func(x, y float64) bool { return x > 0 && y > 0 })
	addCurves(p, d, false)
	p.Legend.Top, p.Legend.YOffs = false, 10 // power falls to the right: the lower left is free
	if !(p.Y.Min > 0) {                      // nothing to draw, and a logarithm cannot do without a range
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 10, 1, 10
	}
	return render(p)
}

// Reliability draws the frequency of an event against its forecast probability,
// with the diagonal on which both agree.
func Reliability(d Diagram) image.Image {
	p := newPlot(d)
	diagonal, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		panic(err) // two finite points
	}
	diagonal.Color, diagonal.Dashes = ink, []vg.Length{5, 4}
	p.Add(diagonal)
	addCurves(p, d.kept(func(x, y float64) bool { return true }), true)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	return render(p)
}

// Scatter draws points, both axes alike, with the diagonal on which both agree.
// Curves are clouds of points here.
func Scatter(d Diagram) image.Image {
	p := newPlot(d)
	d = d.kept(func(x, y float64) bool { return true })
	low, high := math.Inf(1), math.Inf(-1)
	for k, c := range d.Curves {
		if len(c.X) == 0 {
			continue
		}
		cloud := make(plotter.XYs, len(c.X))
		for i := range cloud {
			cloud[i] = plotter.XY{X: c.X[i], Y: c.Y[i]}
			low, high = min(low, c.X[i], c.Y[i]), max(high, c.X[i], c.Y[i])
		}
		dots, err := plotter.NewScatter(cloud)
		if err != nil {
			panic(err) // kept left finite points only
		}
		dots.Color, dots.Shape, dots.Radius = hue(k), vgdraw.CircleGlyph{}, 3
		p.Add(dots)
		p.Legend.Add(spelt(c.Name), dots)
	}
	if !(low < high) { // one point, or none
		low, high = min(low, 0), max(high, 1)
	}
	diagonal, err := plotter.NewLine(plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
	if err != nil {
		panic(err) // two finite points
	}
	diagonal.Color, diagonal.Dashes = ink, []vg.Length{5, 4}
	p.Add(diagonal)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low, high, low, high
	return render(p)
}

// Course draws values against time, from nothing upwards.
func Course(d Diagram) image.Image {
	p := newPlot(d)
	addCurves(p, d.kept(func(x, y float64) bool { return true }), true)
	p.Y.Min = min(0, p.Y.Min)
	return render(p)
}

// kept returns the diagram without the points that cannot be drawn.
func (d Diagram) kept(ok func(x, y float64) bool) Diagram {
	curves := make([]Curve, len(d.Curves))
	for i, c := range d.Curves {
		curves[i].Name = c.Name
		for k := range c.X {
			if !ok(c.X[k], c.Y[k]) || math.IsNaN(c.X[k]+c.Y[k]) || math.IsInf(c.X[k]+c.Y[k], 0) {
				continue
			}
			curves[i].X, curves[i].Y = append(curves[i].X, c.X[k]), append(curves[i].Y, c.Y[k])
			if c.Low != nil && ok(c.X[k], c.Low[k]) {
				curves[i].Low, curves[i].High = append(curves[i].Low, c.Low[k]), append(curves[i].High, c.High[k])
			}
		}
		if len(curves[i].Low) != len(curves[i].X) {
			curves[i].Low, curves[i].High = nil, nil // half a band would mislead
		}
	}
	d.Curves = curves
	return d
}

// addCurves draws the bands first, so that no line is hidden.
func addCurves(p *plot.Plot, d Diagram, points bool) {
	for k, c := range d.Curves {
		if len(c.Low) > 0 {
			p.Add(band(c, k))
		}
	}
	for k, c := range d.Curves {
		if len(c.X) == 0 {
			continue
		}
		xy := make(plotter.XYs, len(c.X))
		for i := range xy {
			xy[i].X, xy[i].Y = c.X[i], c.Y[i]
		}
		line, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			panic(err) // kept left finite points only
		}
		line.Color, line.Width = hue(k), 2.2
		p.Add(line)
		p.Legend.Add(spelt(c.Name), line)
		if points {
			dots.Color, dots.Shape, dots.Radius = hue(k), vgdraw.CircleGlyph{}, 3.5
			p.Add(dots)
		}
	}
}

// band returns the area between the ends of the confidence intervals.
func band(c Curve, k int) *plotter.Polygon {
	var rim plotter.XYs
	for i := range c.X {
		rim = append(rim, plotter.XY{X: c.X[i], Y: c.High[i]})
	}
	for i := len(c.X) - 1; i >= 0; i-- {
		rim = append(rim, plotter.XY{X: c.X[i], Y: c.Low[i]})
	}
	area, err := plotter.NewPolygon(rim)
	if err != nil {
		panic(err) // kept left finite points only
	}
	h := hue(k)
	area.Color = color.NRGBA{h.R, h.G, h.B, 0x38}
	area.Width = 0
	return area
}

// newPlot returns an empty diagram in the style of this package.
func newPlot(d Diagram) *plot.Plot {
	p := plot.New()
	fonts := newFonts()
	p.TextHandler = fonts
	p.Title.Text, p.Title.Padding = spelt(d.Title), 12
	p.Title.TextStyle = lettering{size: titleSize, bold: true, x: -0.5, y: -1}.style(fonts)
	p.X.Label.Text, p.Y.Label.Text = spelt(d.XLabel), spelt(d.YLabel)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		restyle(&a.Label.TextStyle, panelSize, fonts)
		restyle(&a.Tick.Label, labelSize, fonts)
		a.Label.Padding = 8
		a.Color, a.Tick.Color = ink, ink
		a.Padding = 0
		a.Tick.Marker = ticks{func(low, high float64) []float64 { return round(low, high, 6) }}
	}
	restyle(&p.Legend.TextStyle, legendSize, fonts)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = 14, -10
	p.Legend.Padding = 4
	p.Legend.ThumbnailWidth = 26
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

func restyle(s *text.Style, size float64, fonts text.Handler) {
	s.Font, s.Color, s.Handler = letters(size, false), ink, fonts
}

// render draws a plot on paper with a margin.
func render(p *plot.Plot) image.Image {
	c := vgimg.NewWith(vgimg.UseWH(diagramWide, diagramHigh), vgimg.UseDPI(pixelsPerInch))
	p.Draw(vgdraw.Crop(vgdraw.New(c), 14, -24, 12, -14))
	return c.Image()
}

// ticks marks an axis with the numbers that a function gives.
type ticks struct {
	between func(low, high float64) []float64
}

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	var out []plot.Tick
	for _, v := range t.between(low, high) {
		out = append(out, plot.Tick{Value: v, Label: number(v)})
	}
	return out
}

// doubling returns the powers of two between low and high.
func doubling(low, high float64) []float64 {
	var out []float64
	for e := math.Ceil(math.Log2(low) - 1e-9); e <= math.Log2(high)+1e-9; e++ {
		out = append(out, math.Exp2(e))
	}
	return out
}

// decades returns the powers of ten between low and high, with two and five
// between them where there are few.
func decades(low, high float64) []float64 {
	steps := []float64{1}
	if high/low < 1000 {
		steps = []float64{1, 2, 5}
	}
	var out []float64
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				out = append(out, v)
			}
		}
	}
	return out
}
