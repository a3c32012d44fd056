package quicklook

import (
	"fmt"
	"image"
	"io"
)

// Contest holds a window that judged a version: one number per cell, row by row,
// NaN where there is none.
type Contest struct {
	Title         string
	Units         string
	Lat, Lon      []float64
	Land          []bool
	Seen, Hidden  []float32 // what both were given, and what they were scored on
	Before, After []float32
	BeforeBy      string // what filled before
	Log           bool   // the colours follow the logarithm of the values
}

// RenderContest writes c as a PNG. All maps have the same colours.
func RenderContest(w io.Writer, c Contest) error {
	if err := checkSizes(c.Lat, c.Lon, []int{len(c.Land), len(c.Seen), len(c.Hidden), len(c.Before), len(c.After)}); err != nil {
		return fmt.Errorf("draw a contest: %w", err)
	}
	pen, err := newPen()
	if err != nil {
		return fmt.Errorf("draw a contest: %w", err)
	}
	const perRow = 2
	raster := newRaster(c.Lat, c.Lon, c.Land)
	values := scaleOf(c.After, c.Land, c.Log)
	var panels []panel
	for _, field := range [][]float32{c.Seen, c.Hidden, c.Before, c.After} {
		panels = append(panels, newPanel(raster, field, values))
	}
	canvas, bars := pen.sheet(c.Title, panels, []string{"what it was given", "what was hidden", "before: " + c.BeforeBy, "after: this version"}, perRow)
	pen.bar(canvas, image.Rect(marginPixel, bars, canvas.Bounds().Dx()-marginPixel, bars+barPixel), values, c.Units)
	return encode(w, canvas)
}
