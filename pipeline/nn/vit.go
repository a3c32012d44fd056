package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/internal/faults"
)

// ViTConfig holds the dimensions of a vision transformer.
type ViTConfig struct {
	In, Out int // channels of the input and of the output
	Patch   int // side of the square of pixels that makes a token
	Width   int // channels of a token
	Blocks  int
}

// Validate reports everything wrong with c.
func (c ViTConfig) Validate() error {
	var errs faults.List
	errs.Check(c.In > 0, "vit: %d input channels, must be positive", c.In)
	errs.Check(c.Out > 0, "vit: %d output channels, must be positive", c.Out)
	errs.Check(c.Patch > 0, "vit: patch of %d pixels, must be positive", c.Patch)
	errs.Check(c.Width > 0 && c.Width%headChannels == 0, "vit: width %d, must be a positive multiple of %d", c.Width, headChannels)
	errs.Check(c.Blocks > 0, "vit: %d blocks, must be positive", c.Blocks)
	return errs.Err()
}

// ViT is a denoiser of images: a transformer over patches whose blocks are
// scaled, shifted and gated by the time, after Peebles and Xie, Scalable
// Diffusion Models with Transformers (ICCV 2023). Tokens are the pixels of a
// small image with many channels, so that everything stays channels first.
type ViT struct {
	cfg    ViTConfig
	layout Layout

	time   timeEmbed
	shared dense // time embedding -> modulation of every block
	lift   dense
	blocks []transformer
	last   Param // modulation of the last norm: scale and shift
	lower  dense
}

// NewViT returns the network of cfg.
func NewViT(cfg ViTConfig) (*ViT, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	v := &ViT{cfg: cfg}
	s := scope{layout: &v.layout}
	pixels := cfg.Patch * cfg.Patch
	v.time = newTimeEmbed(s.in("time"), cfg.Width)
	v.shared = newZeroDense(s.in("modulation"), cfg.Width, modulations*cfg.Width)
	v.lift = newDense(s.in("lift"), cfg.In*pixels, cfg.Width)
	for i := range cfg.Blocks {
		v.blocks = append(v.blocks, newTransformer(s.in("block%d", i), cfg.Width))
	}
	v.last = s.in("last").constant("modulation", 0, 2*cfg.Width)
	v.lower = newZeroDense(s.in("last"), cfg.Width, cfg.Out*pixels)
	return v, nil
}

// Layout lists the weights.
func (v *ViT) Layout() *Layout { return &v.layout }

// Multiple returns the number that divides height and width.
func (v *ViT) Multiple() int { return v.cfg.Patch }

// Apply maps images x [batch, In, height, width] at times t [batch] to
// [batch, Out, height, width] in float32. Height and width must be multiples
// of Multiple.
func (v *ViT) Apply(w Weights, x, t *Node) *Node {
	checkInput(x, t, v.cfg.In, v.Multiple())
	d := x.Shape().Dimensions
	rows, columns := d[2]/v.cfg.Patch, d[3]/v.cfg.Patch
	shared := v.shared.apply(w, v.time.apply(w, t))

	h := v.lift.apply(w, ConvertDType(v.cut(x), computeType(w)))
	h = Add(h, ConvertDType(places(x.Graph(), rows, columns, v.cfg.Width), h.DType()))
	for _, b := range v.blocks {
		h = b.apply(w, h, shared)
	}
	// The last norm takes the first scale and shift of the time.
	m := modulation(shared, w.Weight(v.last), 2)
	h = Add(Mul(layerNorm(h), OnePlus(m[0])), m[1])
	return v.paste(ConvertDType(v.lower.apply(w, h), dtypes.Float32))
}

// cut turns an image [batch, In, height, width] into tokens [batch,
// In*Patch*Patch, rows, columns].
func (v *ViT) cut(x *Node) *Node {
	d, p := x.Shape().Dimensions, v.cfg.Patch
	x = Reshape(x, d[0], d[1], d[2]/p, p, d[3]/p, p)
	x = TransposeAllDims(x, 0, 1, 3, 5, 2, 4)
	return Reshape(x, d[0], d[1]*p*p, d[2]/p, d[3]/p)
}

// paste is the inverse of cut, with Out channels.
func (v *ViT) paste(x *Node) *Node {
	d, p := x.Shape().Dimensions, v.cfg.Patch
	x = Reshape(x, d[0], v.cfg.Out, p, p, d[2], d[3])
	x = TransposeAllDims(x, 0, 1, 4, 2, 5, 3)
	return Reshape(x, d[0], v.cfg.Out, d[2]*p, d[3]*p)
}

// placePeriodPatches is the longest wave of the place embedding: longer than
// any window (256 pixels are 64 patches), so no two places look alike.
const placePeriodPatches = 512

// places returns the place embedding [1, width, rows, columns]: a quarter of
// the width each for the sine and cosine of row and of column, at falling
// frequencies. It is a constant, so a network works at any size of image.
func places(g *Graph, rows, columns, width int) *Node {
	quarter, tokens := width/4, rows*columns
	flat := make([]float32, width*tokens)
	for k := range quarter {
		// From a period of four patches to the longest.
		period := 4 * math.Pow(placePeriodPatches/4, float64(k)/float64(max(1, quarter-1)))
		for n := range tokens {
			for axis, place := range []int{n / columns, n % columns} {
				sin, cos := math.Sincos(2 * math.Pi * float64(place) / period)
				flat[(2*axis*quarter+k)*tokens+n] = float32(sin)
				flat[((2*axis+1)*quarter+k)*tokens+n] = float32(cos)
			}
		}
	}
	return Const(g, tensors.FromFlatDataAndDimensions(flat, 1, width, rows, columns))
}
