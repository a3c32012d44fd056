package quicklook

import (
	"image"
	"image/color"
	"math"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// pen writes text and colour bars.
type pen struct{ face font.Face }

func newPen() (pen, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return pen{}, err
	}
	const pointsAt72DPI = 13 // so many pixels
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: pointsAt72DPI, DPI: 72, Hinting: font.HintingFull})
	return pen{face: face}, err
}

// write writes a line of text from at on its baseline.
func (p pen) write(dst *image.RGBA, text string, at image.Point, c color.RGBA) {
	drawer := font.Drawer{Dst: dst, Src: image.NewUniform(c), Face: p.face, Dot: fixed.P(at.X, at.Y)}
	drawer.DrawString(text)
}

func (p pen) width(text string) int { return font.MeasureString(p.face, text).Ceil() }

// bar draws the colours of a scale with its ticks, and the units at the end.
func (p pen) bar(dst *image.RGBA, box image.Rectangle, s scale, units string) {
	for x := box.Min.X; x < box.Max.X; x++ {
		c := s.colour(s.low + (s.high-s.low)*float64(x-box.Min.X)/float64(box.Dx()-1))
		for y := box.Min.Y; y < box.Max.Y; y++ {
			dst.SetRGBA(x, y, c)
		}
	}
	baseline := box.Max.Y + tickPixel - 8
	free := box.Max.X - p.width(units)
	p.write(dst, units, image.Pt(free, baseline), ink)
	const pixelsPerTick = 56 // room for five digits
	for _, v := range s.ticks(max(2, box.Dx()/pixelsPerTick)) {
		place := v
		if s.log {
			place = math.Log10(v)
		}
		x := box.Min.X + int(math.Round((place-s.low)/(s.high-s.low)*float64(box.Dx()-1)))
		label := strconv.FormatFloat(v, 'g', 4, 64)
		left := x - p.width(label)/2
		if left < box.Min.X-marginPixel || left+p.width(label) > free-6 {
			continue
		}
		for y := box.Max.Y; y < box.Max.Y+4; y++ {
			dst.SetRGBA(x, y, ink)
		}
		p.write(dst, label, image.Pt(left, baseline), ink)
	}
}
