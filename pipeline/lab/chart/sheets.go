package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"lacuna/pipeline/field"
)

// A Reconstruction is one sample of an evaluation: the visible cells, the truth,
// the filled map and the error.
type Reconstruction struct {
	Title, Caption string
	Label          string // label of the values, with their unit
	Log10          bool   // values are decimal logarithms
	Grid           field.Grid
	Sea            field.Mask
	Truth          []float32 // NaN where not known
	Filled         []float32 // the method's map
	Visible        field.Mask
	Scored         field.Mask
}

// Draw returns four maps: the visible cells, the truth, the map with its gaps
// filled, and the error on the scored cells. The first three share one colour
// bar.
func (r Reconstruction) Draw() image.Image {
	n := r.Grid.Len()
	if len(r.Truth) != n || len(r.Filled) != n || len(r.Visible) != n || len(r.Scored) != n {
		panic(badLength)
	}
	before, after, miss := make([]float32, n), make([]float32, n), make([]float32, n)
	for c := range n {
		before[c], after[c], miss[c] = field.NaN(), r.Filled[c], field.NaN()
		switch {
		case r.Visible[c]:
			before[c], after[c] = r.Truth[c], r.Truth[c]
		case r.Scored[c]:
			miss[c] = r.Filled[c] - r.Truth[c]
		}
	}
	values := Range(r.Truth)
	values.Label, values.Log10 = r.Label, r.Log10
	errs := Symmetric(miss)
	errs.Label = "error"
	if r.Log10 {
		errs.Label = "error, decades"
	}
	return Maps{
		Title: r.Title, Caption: r.Caption, Grid: r.Grid, Sea: r.Sea,
		Panels: []Panel{
			{Title: "before", Values: before, Scale: values, Visible: r.Visible},
			{Title: "truth", Values: r.Truth, Scale: values, Visible: r.Visible, Scored: r.Scored},
			{Title: "after", Values: after, Scale: values, Visible: r.Visible, Scored: r.Scored},
			{Title: "error", Values: miss, Scale: errs, Scored: r.Scored},
		},
	}.Draw()
}

// A Probability is a map of probabilities with a name.
type Probability struct {
	Name   string
	Values []float32 // 0 to 1; NaN: unknown
}

// Probabilities compares maps of probability on one colour scale.
type Probabilities struct {
	Title, Caption string
	Label          string // such as "P(query), share of 256 draws"
	Grid           field.Grid
	Sea            field.Mask
	Maps           []Probability
}

// Draw returns the maps side by side. Cells of probability zero are marked and
// counted.
func (p Probabilities) Draw() image.Image {
	most := 0.0
	for _, m := range p.Maps {
		for _, v := range m.Values {
			most = max(most, float64(v)) // NaN compares as no larger
		}
	}
	if !(most > 0) {
		most = 1
	}
	scale := Scale{Label: p.Label, Low: 0, High: most}
	sheet := Maps{Title: p.Title, Caption: p.Caption, Grid: p.Grid, Sea: p.Sea}
	for _, m := range p.Maps {
		zeros, cells := p.zeros(m.Values)
		sheet.Panels = append(sheet.Panels, Panel{
			Title:  fmt.Sprintf("%s: %d of %d zero", m.Name, zeros, cells),
			Values: m.Values, Scale: scale, MarkZeros: true,
		})
	}
	return sheet.Draw()
}

// zeros counts the sea cells whose probability is zero, and those that have
// one.
func (p Probabilities) zeros(values []float32) (zeros, cells int) {
	for c, v := range values {
		if v != v || p.Sea != nil && !p.Sea[c] {
			continue
		}
		cells++
		if v == 0 {
			zeros++
		}
	}
	return zeros, cells
}

// A Contact is a sheet of many small masks.
type Contact struct {
	Title, Caption string
	Height, Width  int        // cells of each mask
	NorthUp        bool       // row 0 is the southernmost: draw it at the bottom
	Sea            field.Mask // nil: every cell is sea
	Rows           []ContactRow
}

// A ContactRow is one row of masks with a name, such as the method that drew
// them.
type ContactRow struct {
	Name     string
	Masks    []field.Mask // true: observed
	Captions []string     // one per mask, or none at all
}

const thumbPixels = 132 // longer side of a small map

var (
	observedBlue = color.RGBA{0x1f, 0x6f, 0x9f, 0xff}
	paperRim     = color.RGBA{0x88, 0x88, 0x88, 0xff}
)

// Draw returns the sheet: observed cells blue, gaps white, land grey.
func (c Contact) Draw() image.Image {
	w, h := fit(c.Height, c.Width, 1, thumbPixels)
	most, captions := 0, 0
	for _, row := range c.Rows {
		most = max(most, len(row.Masks))
		if len(row.Captions) > 0 {
			captions = lineHigh
		}
	}
	top := margin + titleHigh + 6
	if c.Caption != "" {
		top += lineHigh
	}
	const between = 10
	rowHigh := lineHigh + h + captions + between
	width := max(2*margin+most*(w+between)-between, 560)
	s := newSurface(width, top+len(c.Rows)*rowHigh+lineHigh+margin)
	s.write(margin, margin, lettering{size: titleSize, bold: true, y: -1}, c.Title)
	s.write(margin, margin+titleHigh-4, lettering{size: labelSize, y: -1}, c.Caption)
	for i, row := range c.Rows {
		y := top + i*rowHigh
		s.write(margin, y+lineHigh-6, lettering{size: panelSize}, row.Name)
		for j, m := range row.Masks {
			x := margin + j*(w+between)
			at := image.Rect(x, y+lineHigh, x+w, y+lineHigh+h)
			c.drawMask(s, at, m)
			if j < len(row.Captions) {
				s.write(x, at.Max.Y+5, lettering{size: 12, y: -1}, row.Captions[j])
			}
		}
	}
	k := key{s: s, x: margin, y: s.height - margin}
	k.swatch(true, observedBlue, observedBlue, "observed")
	k.swatch(true, missingWhite, paperRim, "gap")
	k.swatch(c.Sea != nil, landGrey, landGrey, "land")
	return s.img
}

func (c Contact) drawMask(s *surface, at image.Rectangle, m field.Mask) {
	if len(m) != c.Height*c.Width || (c.Sea != nil && len(c.Sea) != len(m)) {
		panic(badLength)
	}
	r := raster{at: at, height: c.Height, width: c.Width, flipRows: c.NorthUp}
	r.paint(s, func(k int) color.RGBA {
		switch {
		case c.Sea != nil && !c.Sea[k]:
			return landGrey
		case m[k]:
			return observedBlue
		}
		return missingWhite
	})
	s.frame(at, paperRim)
}

// Below returns pictures one below the other, on white.
func Below(pictures ...image.Image) image.Image {
	width, height := 0, 0
	for _, p := range pictures {
		width, height = max(width, p.Bounds().Dx()), height+p.Bounds().Dy()
	}
	s := newSurface(width, height)
	y := 0
	for _, p := range pictures {
		draw.Draw(s.img, image.Rect(0, y, p.Bounds().Dx(), y+p.Bounds().Dy()), p, p.Bounds().Min, draw.Src)
		y += p.Bounds().Dy()
	}
	return s.img
}
