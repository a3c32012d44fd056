package prior

import (
	"math"
	"testing"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples/samplestest"
)

// With pixel anchors neighbours are kept independently; with coherent ones
// they go together.
func TestCoherentAnchorsLoseWholeRegions(t *testing.T) {
	const side, draws = 32, 60
	p := samplestest.Cloudy(1, side)[0]
	for c := range p.Values {
		p.Values[c] = 1
	}
	together := func(cfg GuideConfig) (neighbours, share float64) {
		dst := make([]float32, side*side)
		var same, n float64
		for d := range uint64(draws) {
			cfg.anchors(dst, p, noise.New(d, "anchor"))
			for c, y := range dst {
				share += float64(y) / (draws * side * side)
				if c%side+1 < side {
					same += indicator(y == dst[c+1])
					n++
				}
			}
		}
		return same / n, share
	}
	pixel, share := together(GuideConfig{Anchor: AnchorPixel, Rho: 0.8})
	if want := 0.8*0.8 + 0.2*0.2; math.Abs(pixel-want) > 0.01 || math.Abs(share-0.8) > 0.01 {
		t.Errorf("pixel anchors: neighbours agree in %.3f, want %.3f; share %.3f, want 0.8", pixel, want, share)
	}
	coherent, share := together(GuideConfig{Anchor: AnchorCoherent, Rho: 0.8})
	if coherent < 0.9 || math.Abs(share-0.8) > 0.01 {
		t.Errorf("coherent anchors: neighbours agree in %.3f, want at least 0.9; share %.3f, want 0.8", coherent, share)
	}
}

func TestAnchorLiesOnTheObservation(t *testing.T) {
	p := samplestest.Cloudy(1, 16)[0]
	dst := make([]float32, 16*16)
	for _, cfg := range []GuideConfig{DefaultGuidance(), PaperGuidance(), {Anchor: AnchorCoherent, Rho: 1}} {
		cfg.anchors(dst, p, noise.New(1, "on"))
		for c, o := range p.Observed() {
			if dst[c] != 0 && !o {
				t.Fatalf("%s anchor at cell %d, where nothing was observed", cfg.Anchor, c)
			}
			if cfg.Rho == 1 && o && dst[c] != 1 {
				t.Fatalf("rho 1 left out cell %d", c)
			}
		}
	}
}

func BenchmarkAnchor(b *testing.B) {
	p := samplestest.Cloudy(1, 64)[0]
	dst := make([]float32, len(p.Sea))
	cfg := DefaultGuidance()
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		cfg.anchors(dst, p, noise.New(n, "anchor"))
	}
}
