package nn

import (
	"fmt"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// A Network maps images at times to images. UNet and ViT implement it.
type Network interface {
	// Layout lists the weights.
	Layout() *Layout
	// Multiple returns the number that divides height and width of an image.
	Multiple() int
	// Apply maps x [batch, in, height, width] at times t [batch] to [batch,
	// out, height, width] in float32.
	Apply(w Weights, x, t *Node) *Node
}

// Backbones and sizes, as a configuration names them. The two backbones of a
// size have about the same number of weights.
const (
	BackboneUNet = "unet"
	BackboneViT  = "vit"

	Tiny  = "tiny"  // under 0.3 million weights, for tests
	Small = "small" // about 2 million, for processors
	Base  = "base"  // about 8 million
	Large = "large" // about 30 million
)

// Config holds everything that is needed to build a network again.
type Config struct {
	Backbone string `json:"backbone" yaml:"backbone"` // unet or vit
	Size     string `json:"size" yaml:"size"`
	In       int    `json:"in" yaml:"in"`   // channels of the input image
	Out      int    `json:"out" yaml:"out"` // channels of the output image
}

// New returns the network of cfg.
func New(cfg Config) (Network, error) {
	switch cfg.Backbone {
	case BackboneUNet:
		c, err := UNetOf(cfg.Size, cfg.In, cfg.Out)
		if err != nil {
			return nil, err
		}
		return NewUNet(c)
	case BackboneViT:
		c, err := ViTOf(cfg.Size, cfg.In, cfg.Out)
		if err != nil {
			return nil, err
		}
		return NewViT(c)
	}
	return nil, fmt.Errorf("backbone is %q, must be %s or %s", cfg.Backbone, BackboneUNet, BackboneViT)
}

// Count returns the number of weights of the network of cfg.
func Count(cfg Config) (int, error) {
	n, err := New(cfg)
	if err != nil {
		return 0, err
	}
	return n.Layout().Size, nil
}

// UNetOf returns the UNet of a size. Attention is at an eighth of the
// resolution: 64 positions of a 64x64 image, 1024 of a 256x256 one.
func UNetOf(size string, in, out int) (UNetConfig, error) {
	c := UNetConfig{In: in, Out: out, Multipliers: []int{1, 2, 2, 3}, Blocks: 2, Attention: 1}
	switch size {
	case Tiny:
		c.Channels, c.Blocks = 16, 1
	case Small:
		c.Channels = 32
	case Base:
		c.Channels = 64
	case Large:
		c.Channels = 128
	default:
		return c, badSize(size)
	}
	return c, nil
}

// ViTOf returns the vision transformer of a size.
func ViTOf(size string, in, out int) (ViTConfig, error) {
	c := ViTConfig{In: in, Out: out, Patch: 4}
	switch size {
	case Tiny:
		c.Width, c.Blocks = 64, 4
	case Small:
		c.Width, c.Blocks = 160, 6
	case Base:
		c.Width, c.Blocks = 256, 10
	case Large:
		c.Width, c.Blocks = 512, 10
	default:
		return c, badSize(size)
	}
	return c, nil
}

func badSize(size string) error {
	return fmt.Errorf("size is %q, must be %s, %s, %s or %s", size, Tiny, Small, Base, Large)
}

// checkInput panics unless x is [batch, channels, height, width] with sides
// that are multiples of multiple, and t is [batch].
func checkInput(x, t *Node, channels, multiple int) {
	x.AssertDims(-1, channels, -1, -1)
	d := x.Shape().Dimensions
	t.AssertDims(d[0])
	if d[2]%multiple != 0 || d[3]%multiple != 0 {
		panic(fmt.Errorf("image is %dx%d, sides must be multiples of %d", d[2], d[3], multiple))
	}
}
