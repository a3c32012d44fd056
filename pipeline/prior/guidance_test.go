package prior

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// covered returns a patch of which the first share of the cells is observed.
func covered(side int, share float64) samples.Patch {
	p := samplestest.Cloudy(1, side)[0]
	for c := range p.Values {
		p.Sea[c], p.Values[c] = true, 1
		if float64(c) >= share*float64(side*side) {
			p.Values[c] = field.NaN()
		}
	}
	return p
}

// The loss is divided by all cells. Divided by the observed ones, the pull of a
// nearly empty patch would be many times that of a full one.
func TestPullIsAsStrongOnEmptyPatchesAsOnFullOnes(t *testing.T) {
	const side = 16
	m := roughModel(t, enginetest.Open(t), nil)
	x := normals(Classes*side*side, "pull")
	var least, most, leastByObserved, mostByObserved float64
	for i, share := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
		p := covered(side, share)
		anchors := make([]float32, side*side)
		GuideConfig{Anchor: AnchorPixel, Rho: 0.8}.anchors(anchors, p, noise.New(1, "pull"))
		gradient := moved(t, m, p, x, anchors, move{level: Cosine{}.At(0.5), look: 1, pull: -1})
		squares := 0.0
		for _, g := range gradient {
			squares += float64(g) * float64(g)
		}
		size := math.Sqrt(squares)
		other := size / share
		if i == 0 {
			least, most, leastByObserved, mostByObserved = size, size, other, other
		}
		least, most = min(least, size), max(most, size)
		leastByObserved, mostByObserved = min(leastByObserved, other), max(mostByObserved, other)
	}
	t.Logf("largest over smallest gradient: %.2f, and %.2f over the observed cells", most/least, mostByObserved/leastByObserved)
	if most/least > mostByObserved/leastByObserved/3 {
		t.Errorf("gradients differ by %.2f, and by %.2f where only observed cells count", most/least, mostByObserved/leastByObserved)
	}
}

// A cell that is certain and wrong is pulled with a finite force.
func TestPullIsFiniteWhereTheNetworkIsCertain(t *testing.T) {
	const side = 16
	m := roughModel(t, enginetest.Open(t), nil)
	p := covered(side, 1)
	x, anchors := make([]float32, Classes*side*side), make([]float32, side*side)
	for c := range anchors {
		x[c], anchors[c] = 1e6, 1 // a gap, and the anchor says observed
	}
	for k, g := range moved(t, m, p, x, anchors, move{level: Cosine{}.At(0.01), look: 1, data: 1, pull: 1e4}) {
		if v := float64(g); math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("latent %d becomes %g", k, g)
		}
	}
}

// Pixel anchors know nothing of their neighbours.
func TestPixelAnchorsAreIndependent(t *testing.T) {
	const side, draws, rho = 16, 400, 0.8
	p := covered(side, 1)
	dst := make([]float32, side*side)
	var together, n float64
	for d := range uint64(draws) {
		GuideConfig{Anchor: AnchorPixel, Rho: rho}.anchors(dst, p, noise.New(d, "independent"))
		for c := range dst {
			for _, apart := range []int{1, side, side + 1} {
				if c%side+1 < side && c+apart < len(dst) {
					together += (float64(dst[c]) - rho) * (float64(dst[c+apart]) - rho)
					n++
				}
			}
		}
	}
	// Five standard errors of a correlation of n pairs.
	if r := together / n / (rho * (1 - rho)); math.Abs(r) > 5/math.Sqrt(n) {
		t.Errorf("neighbouring anchors correlate by %.4f over %.0f pairs", r, n)
	}
}
