package chart

import (
	"image"
	"image/color"

	"lacuna/pipeline/field"
)

// Maps is a sheet of maps of one region.
type Maps struct {
	Title   string
	Caption string // a smaller line under the title; may be empty
	Grid    field.Grid
	Sea     field.Mask // nil: unknown
	Columns int        // 0: all panels in one row
	Panels  []Panel
}

// A Panel is one map of a sheet.
type Panel struct {
	Title  string
	Values []float32 // NaN: missing
	// Scale is shared by neighbours in a row that have the same one: they have
	// one colour bar between them, and the same value has the same colour.
	Scale Scale
	// Visible is outlined in black and Scored in red; nil: no outline.
	Visible, Scored field.Mask
	// MarkZeros paints cells that are exactly zero in a colour of their own.
	MarkZeros bool
}

// Pixels around and between the panels of a sheet.
const (
	margin    = 22
	gapBeside = 18
	gapBelow  = 20
	latSpace  = 62 // room for latitudes at the left
	lonSpace  = 26 // room for longitudes at the bottom
	barWide   = 16
	barSpace  = 88 // bar, marks and label
	titleHigh = 34
	lineHigh  = 22
)

// Draw returns the sheet.
func (m Maps) Draw() image.Image {
	l := m.layout()
	s := newSurface(l.width, l.height)
	s.write(margin, margin, lettering{size: titleSize, bold: true, y: -1}, m.Title)
	if m.Caption != "" {
		s.write(margin, margin+titleHigh-4, lettering{size: labelSize, y: -1}, m.Caption)
	}
	for k := range m.Panels {
		m.drawPanel(s, l, k)
	}
	m.drawKey(s, l)
	return s.img
}

// A sheetLayout holds the positions of the parts of a sheet.
type sheetLayout struct {
	columns, rows int
	panels        []image.Rectangle
	barAfter      []bool // columns with a colour bar to their right
	width, height int
}

// layout places the panels. A column has room for a bar where any of its rows
// needs one, so panels stay aligned.
func (m Maps) layout() sheetLayout {
	n := len(m.Panels)
	if n == 0 {
		panic("chart: a sheet without panels")
	}
	l := sheetLayout{columns: m.Columns}
	if l.columns <= 0 || l.columns > n {
		l.columns = n
	}
	l.rows = (n + l.columns - 1) / l.columns
	l.barAfter = make([]bool, l.columns)
	for k := range m.Panels {
		if m.endsRun(k, l.columns) {
			l.barAfter[k%l.columns] = true
		}
	}
	w, h := size(m.Grid)
	top := margin + titleHigh + lineHigh
	if m.Caption != "" {
		top += lineHigh
	}
	x := make([]int, l.columns)
	right := margin + latSpace
	for c := range x {
		x[c] = right
		right += w + gapBeside
		if l.barAfter[c] {
			right += barSpace
		}
	}
	for k := range n {
		y := top + k/l.columns*(h+lineHigh+gapBelow)
		l.panels = append(l.panels, image.Rect(x[k%l.columns], y, x[k%l.columns]+w, y+h))
	}
	l.width = max(right-gapBeside+margin, 720) // room for the key
	l.height = l.panels[n-1].Max.Y + lonSpace + margin + lineHigh
	return l
}

// endsRun reports whether panel k is the last of a row's run of one scale.
func (m Maps) endsRun(k, columns int) bool {
	last := k+1 == len(m.Panels) || (k+1)%columns == 0
	return last || m.Panels[k+1].Scale != m.Panels[k].Scale
}

// drawPanel draws one map with its axes and, where a run of panels of one
// scale ends, the colour bar.
func (m Maps) drawPanel(s *surface, l sheetLayout, k int) {
	p, at := m.Panels[k], l.panels[k]
	if len(p.Values) != m.Grid.Len() || (m.Sea != nil && len(m.Sea) != m.Grid.Len()) {
		panic(badLength)
	}
	r := newRaster(m.Grid, at)
	palette := p.Scale.Colours.palette()
	r.paint(s, func(c int) color.RGBA {
		v := p.Values[c]
		switch {
		case m.Sea != nil && !m.Sea[c]:
			return landGrey
		case v != v:
			return missingWhite
		case p.MarkZeros && v == 0:
			return neverMagenta
		}
		return palette[shadeAt(p.Scale.share(float64(v)))]
	})
	r.outline(s, p.Visible, visibleBlack)
	r.outline(s, p.Scored, scoredRed)
	s.frame(at, ink)
	s.write(at.Min.X, at.Min.Y-6, lettering{size: panelSize}, p.Title)
	if k%l.columns == 0 {
		drawLatitudes(s, m.Grid, at, r.flipRows)
	}
	if k+l.columns >= len(m.Panels) {
		drawLongitudes(s, m.Grid, at, r.flipCols)
	}
	if m.endsRun(k, l.columns) {
		x := at.Max.X + gapBeside
		s.bar(p.Scale, image.Rect(x, at.Min.Y, x+barWide, at.Max.Y))
	}
}

// newRaster places a grid with north up and east to the right.
func newRaster(g field.Grid, at image.Rectangle) raster {
	return raster{
		at: at, height: g.Height(), width: g.Width(),
		flipRows: g.Lat[0] < g.Lat[g.Height()-1],
		flipCols: g.Lon[0] > g.Lon[g.Width()-1],
	}
}

func drawLatitudes(s *surface, g field.Grid, at image.Rectangle, flip bool) {
	for _, k := range degrees(g.Lat, northOf) {
		if flip {
			k.share = 1 - k.share
		}
		y := at.Min.Y + int(k.share*float64(at.Dy()))
		s.fill(image.Rect(at.Min.X-6, y, at.Min.X-1, y+1), ink)
		s.write(at.Min.X-9, y, lettering{size: labelSize, x: -1, y: -0.42}, k.label)
	}
}

func drawLongitudes(s *surface, g field.Grid, at image.Rectangle, flip bool) {
	free := at.Min.X - gapBeside/2 // labels must not run into each other, nor into the next panel's
	for _, k := range degrees(g.Lon, eastOf) {
		if flip {
			k.share = 1 - k.share
		}
		x := at.Min.X + int(k.share*float64(at.Dx()))
		s.fill(image.Rect(x, at.Max.Y+1, x+1, at.Max.Y+6), ink)
		l := lettering{size: labelSize, x: -0.5, y: -1}
		half := s.extent(l, k.label) / 2
		if x-half < free || x+half > at.Max.X+gapBeside/2 {
			continue
		}
		s.write(x, at.Max.Y+8, l, k.label)
		free = x + half + 6
	}
}

// drawKey explains, at the foot of the sheet, colours that are not on a colour bar.
func (m Maps) drawKey(s *surface, l sheetLayout) {
	var visible, scored, zeros, land, missing bool
	for _, p := range m.Panels {
		visible, scored = visible || p.Visible != nil, scored || p.Scored != nil
		for c, v := range p.Values {
			sea := m.Sea == nil || m.Sea[c]
			land = land || !sea
			missing = missing || sea && v != v
			zeros = zeros || p.MarkZeros && sea && v == 0
		}
	}
	k := key{s: s, x: margin + latSpace, y: l.height - margin}
	k.swatch(land, landGrey, landGrey, "land")
	k.swatch(missing, missingWhite, faint, "missing")
	k.swatch(visible, missingWhite, visibleBlack, "outline of visible cells")
	k.swatch(scored, missingWhite, scoredRed, "outline of scored cells")
	k.swatch(zeros, neverMagenta, neverMagenta, "zero")
}

// A key is a row of swatches with words.
type key struct {
	s    *surface
	x, y int
}

func (k *key) swatch(used bool, inside, rim color.RGBA, words string) {
	if !used {
		return
	}
	const side = 13
	at := image.Rect(k.x, k.y-side, k.x+side, k.y)
	k.s.fill(at, rim)
	k.s.fill(at.Inset(2), inside)
	l := lettering{size: legendSize}
	k.s.write(k.x+side+6, k.y-2, l, words)
	k.x += side + 6 + k.s.extent(l, words) + 24
}
