package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"

	"lacuna/internal/durable"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// WritePNG stores a picture under path. The file appears whole or not at all.
func WritePNG(path string, img image.Image) error {
	file, err := durable.Pending(path, 0o644)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer file.Cleanup() //nolint:errcheck // nothing is left to clean after a rename
	if err := png.Encode(file, img); err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// pixelsPerInch makes a point of the vector library one pixel, so that lines
// and letters are placed on the same grid as cells.
const pixelsPerInch = 72

// Sizes of letters, in pixels.
const (
	titleSize  = 21
	panelSize  = 16
	labelSize  = 14
	legendSize = 14
)

// A surface is an image to draw cells and letters on, white to begin with.
// Pixels count from the upper left corner.
type surface struct {
	img    draw.Image
	vector vgdraw.Canvas
	fonts  text.Handler
	height int
}

func newSurface(width, height int) *surface {
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(pixelsPerInch))
	return &surface{img: c.Image(), vector: vgdraw.New(c), fonts: newFonts(), height: height}
}

func newFonts() text.Handler { return text.Plain{Fonts: font.NewCache(liberation.Collection())} }

// fill paints a rectangle.
func (s *surface) fill(r image.Rectangle, c color.Color) {
	draw.Draw(s.img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// frame draws the rim of a rectangle, one pixel wide, just outside of it.
func (s *surface) frame(r image.Rectangle, c color.Color) {
	o := r.Inset(-1)
	s.fill(image.Rect(o.Min.X, o.Min.Y, o.Max.X, o.Min.Y+1), c)
	s.fill(image.Rect(o.Min.X, o.Max.Y-1, o.Max.X, o.Max.Y), c)
	s.fill(image.Rect(o.Min.X, o.Min.Y, o.Min.X+1, o.Max.Y), c)
	s.fill(image.Rect(o.Max.X-1, o.Min.Y, o.Max.X, o.Max.Y), c)
}

// A lettering is the style and the alignment of a text: x of 0 is its left edge,
// -1 its right one; y of 0 its foot, -1 its head.
type lettering struct {
	size  float64
	bold  bool
	x, y  float64
	angle float64 // radians, counterclockwise
}

func (l lettering) style(fonts text.Handler) text.Style {
	return text.Style{
		Color: ink, Font: letters(l.size, l.bold), Handler: fonts,
		XAlign: text.XAlignment(l.x), YAlign: text.YAlignment(l.y), Rotation: l.angle,
	}
}

func letters(size float64, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold {
		f.Weight = 3 // x/image's WeightBold
	}
	return f
}

// write draws a text at a pixel.
func (s *surface) write(x, y int, l lettering, words string) {
	s.vector.FillText(l.style(s.fonts), vg.Point{X: vg.Length(x), Y: vg.Length(s.height - y)}, spelt(words))
}

// spelt replaces letters that the fonts lack: a raised minus would vanish and
// leave another unit.
func spelt(words string) string {
	return strings.NewReplacer("⁻¹", "^-1", "⁻²", "^-2", "⁻³", "^-3", "⁻", "^-").Replace(words)
}

// extent returns how many pixels wide a text will be.
func (s *surface) extent(l lettering, words string) int {
	width, _, _ := s.fonts.Box(spelt(words), letters(l.size, l.bold))
	return int(width + 0.5)
}
