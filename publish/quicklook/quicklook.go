// Package quicklook draws a product for people: the granule as it was
// observed, the same with its gaps filled, and how uncertain that is, side by
// side as one PNG; below them two members of its ensemble, where there is one.
// It draws a window that judged a version of a model too: what was seen, what
// two methods made of it, and what was hidden.
//
// Both maps have the same colours, on a scale whose steps look equally large;
// land is grey with a dark coast, and a gap is near white, which no value has.
// The same scene gives the same bytes.
//
// Package quicklook knows nothing of files or products: it takes arrays and
// draws them in the order of their rows and columns, as a map in the grid's
// own projection.
package quicklook

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
)

// Scene holds the maps to draw: one number per cell, row by row, NaN where
// there is none.
type Scene struct {
	Title            string // one line
	Units            string // units of the values
	SigmaUnits       string // units of the uncertainty
	Lat, Lon         []float64
	Observed, Filled []float32
	Sigma            []float32
	Land             []bool
	Members          [][]float32 // equally likely complete fields, of which two are drawn; nil: there are none
	Log              bool        // the colours follow the logarithm of the values
}

const (
	panelPixels = 420 // longest side of a map: three fit on a screen
	thinPixels  = 120 // shortest side, so that headings have room
	marginPixel = 14
	titlePixel  = 30
	headPixel   = 22
	barPixel    = 14 // height of a colour bar
	tickPixel   = 26 // room for the numbers under it

	perRow       = 3 // maps in a row
	membersDrawn = 2 // two show what may differ, and more are not looked at
)

var (
	paper  = color.RGBA{255, 255, 255, 255}
	ink    = color.RGBA{30, 30, 30, 255}
	gap    = color.RGBA{242, 242, 240, 255}
	ground = color.RGBA{160, 160, 160, 255}
	shore  = color.RGBA{70, 70, 70, 255}
)

// Render writes s as a PNG.
func Render(w io.Writer, s Scene) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("draw quick look: %w", err)
	}
	pen, err := newPen()
	if err != nil {
		return fmt.Errorf("draw quick look: %w", err)
	}
	raster := newRaster(s.Lat, s.Lon, s.Land)
	values := scaleOf(s.Filled, s.Land, s.Log)
	uncertainties := scaleOf(s.Sigma, s.Land, false)
	uncertainties.low = 0 // no uncertainty is the dark end, whatever the map

	panels := []panel{
		newPanel(raster, s.Observed, values), newPanel(raster, s.Filled, values), newPanel(raster, s.Sigma, uncertainties),
	}
	headings := []string{"observed", "gaps filled", "uncertainty"}
	for k, member := range s.Members[:min(len(s.Members), membersDrawn)] {
		panels = append(panels, newPanel(raster, member, values))
		headings = append(headings, fmt.Sprintf("member %d of %d, all equally likely", k+1, len(s.Members)))
	}
	canvas, bars := pen.sheet(s.Title, panels, headings, perRow)
	step := raster.width + marginPixel
	pen.bar(canvas, image.Rect(marginPixel, bars, marginPixel+2*step-marginPixel, bars+barPixel), values, s.Units)
	pen.bar(canvas, image.Rect(marginPixel+2*step, bars, marginPixel+3*step-marginPixel, bars+barPixel), uncertainties, s.SigmaUnits)
	return encode(w, canvas)
}

// sheet draws panels below a title, and leaves room for colour bars at the height
// that it returns.
func (p pen) sheet(title string, panels []panel, headings []string, perRow int) (canvas *image.RGBA, bars int) {
	step, below := panels[0].width+marginPixel, panels[0].height+marginPixel+headPixel
	rows := (len(panels) + perRow - 1) / perRow
	bars = titlePixel + rows*below
	canvas = image.NewRGBA(image.Rect(0, 0, marginPixel+perRow*step, bars+barPixel+tickPixel+marginPixel))
	draw.Draw(canvas, canvas.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	p.write(canvas, title, image.Pt(marginPixel, titlePixel-9), ink)
	for i, panel := range panels {
		at := image.Pt(marginPixel+i%perRow*step, titlePixel+headPixel+i/perRow*below)
		p.write(canvas, headings[i], at.Sub(image.Pt(0, 7)), ink)
		panel.paint(canvas, at)
	}
	return canvas, bars
}

func encode(w io.Writer, canvas image.Image) error {
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(w, canvas); err != nil {
		return fmt.Errorf("write quick look: %w", err)
	}
	return nil
}

func (s Scene) check() error {
	sizes := []int{len(s.Observed), len(s.Filled), len(s.Sigma), len(s.Land)}
	for _, member := range s.Members {
		sizes = append(sizes, len(member))
	}
	return checkSizes(s.Lat, s.Lon, sizes)
}

func checkSizes(lat, lon []float64, sizes []int) error {
	n := len(lat) * len(lon)
	if n == 0 {
		return errors.New("the grid is empty")
	}
	for _, have := range sizes {
		if have != n {
			return fmt.Errorf("a map has %d cells, the grid %d×%d", have, len(lat), len(lon))
		}
	}
	return nil
}

// raster maps pixels of a panel to cells of the grid, north up and east to the
// right.
type raster struct {
	width, height int
	cols          int    // columns of the grid
	rowsOf        []span // the rows of the grid that a row of pixels covers
	colsOf        []span
	dry           []bool // cells that are land
	land          []bool // pixels most of whose cells are land
}

// span is a range of rows or columns, its end not included.
type span struct{ from, to int }

func newRaster(lat, lon []float64, land []bool) raster {
	rows, cols := len(lat), len(lon)
	// The shape of the map is that of the sea at its middle latitude.
	middle := (lat[0] + lat[rows-1]) / 2 * math.Pi / 180
	tall := math.Max(math.Abs(lat[0]-lat[rows-1]), 1e-6)
	wide := math.Max(math.Abs(lon[0]-lon[cols-1])*math.Cos(middle), 1e-6)
	scale := panelPixels / math.Max(tall, wide)
	r := raster{
		width: max(thinPixels, int(math.Round(wide*scale))), height: max(thinPixels, int(math.Round(tall*scale))),
		cols: cols, dry: land,
	}
	r.rowsOf = spans(r.height, rows, lat[0] < lat[rows-1])
	r.colsOf = spans(r.width, cols, lon[0] > lon[cols-1])
	r.land = make([]bool, r.width*r.height)
	for y, rows := range r.rowsOf {
		for x, cols := range r.colsOf {
			r.land[y*r.width+x] = r.mostlyDry(rows, cols)
		}
	}
	return r
}

// spans returns the cells of an axis that each pixel covers, at least one; from
// the last cell on where the axis is turned.
func spans(pixels, cells int, turned bool) []span {
	all := make([]span, pixels)
	for p := range all {
		from, to := p*cells/pixels, (p+1)*cells/pixels
		to = max(to, from+1)
		if turned {
			from, to = cells-to, cells-from
		}
		all[p] = span{from, to}
	}
	return all
}

func (r raster) mostlyDry(rows, cols span) bool {
	dry := 0
	for row := rows.from; row < rows.to; row++ {
		for _, land := range r.dry[row*r.cols+cols.from : row*r.cols+cols.to] {
			if land {
				dry++
			}
		}
	}
	return 2*dry > (rows.to-rows.from)*(cols.to-cols.from)
}

// coast reports whether a land pixel has sea beside it.
func (r raster) coast(x, y int) bool {
	for _, d := range [][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
		nx, ny := x+d[0], y+d[1]
		inside := nx >= 0 && ny >= 0 && nx < r.width && ny < r.height
		if inside && !r.land[ny*r.width+nx] {
			return true
		}
	}
	return false
}

// panel is one map.
type panel struct {
	raster
	places []float64 // positions of the cells on the scale, NaN where there is none
	scale  scale
}

func newPanel(r raster, values []float32, s scale) panel {
	p := panel{raster: r, scale: s, places: make([]float64, len(values))}
	for i, v := range values {
		p.places[i] = math.NaN()
		if !r.dry[i] {
			p.places[i] = s.place(v)
		}
	}
	return p
}

// paint draws the map. A pixel that covers several cells has the mean of those
// with a value.
func (p panel) paint(dst *image.RGBA, at image.Point) {
	for y, rows := range p.rowsOf {
		for x, cols := range p.colsOf {
			c := ground
			if !p.land[y*p.width+x] {
				c = p.sea(rows, cols)
			} else if p.coast(x, y) {
				c = shore
			}
			dst.SetRGBA(at.X+x, at.Y+y, c)
		}
	}
}

func (p panel) sea(rows, cols span) color.RGBA {
	var sum float64
	n := 0
	for row := rows.from; row < rows.to; row++ {
		for _, place := range p.places[row*p.cols+cols.from : row*p.cols+cols.to] {
			if !math.IsNaN(place) {
				sum += place
				n++
			}
		}
	}
	if n == 0 {
		return gap
	}
	return p.scale.colour(sum / float64(n))
}
