package chart

import (
	"image"
	"image/color"
	"math"

	"lacuna/pipeline/field"
)

const badLength = "chart: slice length differs from the grid"

// A raster places the cells of a grid on a rectangle of pixels, north up and
// east to the right.
type raster struct {
	at            image.Rectangle
	height, width int  // cells
	flipRows      bool // rows run north: the last one is on top
	flipCols      bool // columns run west
}

// cell returns the cell that pixel x, y of the rectangle, counted from its
// upper left corner, belongs to; -1 outside.
func (r raster) cell(x, y int) int {
	w, h := r.at.Dx(), r.at.Dy()
	if x < 0 || y < 0 || x >= w || y >= h {
		return -1
	}
	row, col := y*r.height/h, x*r.width/w
	if r.flipRows {
		row = r.height - 1 - row
	}
	if r.flipCols {
		col = r.width - 1 - col
	}
	return row*r.width + col
}

// paint colours every pixel by its cell.
func (r raster) paint(s *surface, colourOf func(cell int) color.RGBA) {
	for y := range r.at.Dy() {
		for x := range r.at.Dx() {
			s.img.Set(r.at.Min.X+x, r.at.Min.Y+y, colourOf(r.cell(x, y)))
		}
	}
}

// outline draws the rim of a mask on the inner side of its cells, so that two
// masks that touch both keep theirs.
func (r raster) outline(s *surface, m field.Mask, c color.RGBA) {
	if m == nil {
		return
	}
	if len(m) != r.height*r.width {
		panic(badLength)
	}
	in := func(x, y int) bool {
		k := r.cell(x, y)
		return k >= 0 && m[k]
	}
	wide := r.lineWidth()
	for y := range r.at.Dy() {
		for x := range r.at.Dx() {
			if !in(x, y) {
				continue
			}
			if !in(x-wide, y) || !in(x+wide, y) || !in(x, y-wide) || !in(x, y+wide) {
				s.img.Set(r.at.Min.X+x, r.at.Min.Y+y, c)
			}
		}
	}
}

// lineWidth returns how many pixels of a cell an outline takes: a quarter at
// most, so that the value stays in sight.
func (r raster) lineWidth() int {
	return min(max(min(r.at.Dx()/r.width, r.at.Dy()/r.height)/4, 1), 2)
}

const (
	panelPixels = 380 // longer side of a map where cells are large enough to choose
	mostPixels  = 900 // longer side at most; beyond it cells are left out
)

// size returns the width and height of a map in pixels: true to the shape of
// the ground, and a whole number of pixels per cell where there is room.
func size(g field.Grid) (width, height int) {
	return fit(g.Height(), g.Width(), aspect(g), panelPixels)
}

// aspect returns how many times as wide as high a cell is on the ground.
func aspect(g field.Grid) float64 {
	step := func(x []float64) float64 {
		if len(x) < 2 {
			return 1
		}
		return math.Abs(x[len(x)-1]-x[0]) / float64(len(x)-1)
	}
	south, north, _, _ := g.Bounds()
	a := step(g.Lon) / step(g.Lat) * math.Cos((south+north)/2*math.Pi/180)
	return min(max(a, 0.1), 10) // bounded, for cells near a pole
}

// fit returns the pixels of rows × cols cells, each so many times as wide as
// high, when the longer side may have about the given length.
func fit(rows, cols int, cellAspect float64, longer int) (width, height int) {
	longer = min(max(longer, rows, cols), mostPixels)
	ratio := float64(cols) * cellAspect / float64(rows)
	w, h := float64(longer), float64(longer)/ratio
	if ratio < 1 {
		w, h = float64(longer)*ratio, float64(longer)
	}
	return whole(w, cols), whole(h, rows)
}

// whole rounds a length to a whole number of pixels per cell, or just to
// pixels where cells are smaller than two.
func whole(length float64, cells int) int {
	if per := math.Round(length / float64(cells)); per >= 2 {
		return int(per) * cells
	}
	return max(int(math.Round(length)), 1)
}

// bar draws a colour bar with its marks to the right and its label beyond.
func (s *surface) bar(sc Scale, at image.Rectangle) {
	palette := sc.Colours.palette()
	for y := range at.Dy() {
		share := 1 - (float64(y)+0.5)/float64(at.Dy())
		s.fill(image.Rect(at.Min.X, at.Min.Y+y, at.Max.X, at.Min.Y+y+1), palette[shadeAt(share)])
	}
	s.frame(at, ink)
	widest := 0
	for _, m := range sc.marks() {
		y := at.Max.Y - int(math.Round(m.share*float64(at.Dy())))
		s.fill(image.Rect(at.Max.X, y, at.Max.X+5, y+1), ink)
		l := lettering{size: labelSize, y: -0.42}
		s.write(at.Max.X+8, y, l, m.label)
		widest = max(widest, s.extent(l, m.label))
	}
	turned := lettering{size: labelSize, x: -0.5, angle: math.Pi / 2}
	s.write(at.Max.X+8+widest+labelSize+4, (at.Min.Y+at.Max.Y)/2, turned, sc.Label)
}

func shadeAt(share float64) int { return min(int(share*shades), shades-1) }
