package masks

import (
	"math"
	"testing"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
)

func TestStatisticsOfKnownMasks(t *testing.T) {
	const side = 8
	sea := make([]bool, side*side)
	for c := range sea {
		sea[c] = c >= side // the first row is land
	}
	place := prior.Place{Height: side, Width: side, Sea: sea}
	half, chess := make([]bool, side*side), make([]bool, side*side)
	for c := range half {
		half[c] = sea[c] && c%side < 4
		chess[c] = sea[c] && (c/side+c%side)%2 == 0
	}
	s := Describe([]prior.Mask{{Place: place, Observed: half}, {Place: place, Observed: make([]bool, side*side)}})
	if s.Masks != 2 || s.CoverageMean != 0.25 || s.CoverageSD != 0.25 {
		t.Errorf("coverage %g ± %g of %d masks, want 0.25 ± 0.25 of 2", s.CoverageMean, s.CoverageSD, s.Masks)
	}
	// 7 rows of sea: 49 pairs along rows and 48 along columns a mask; the half
	// mask has one edge a row.
	if want := 7.0 / (2 * (49 + 48)); math.Abs(s.EdgeDensity-want) > 1e-12 {
		t.Errorf("edge density %g, want %g", s.EdgeDensity, want)
	}
	if want := (28.0 + 56) / 2; s.GapCells != want {
		t.Errorf("a missing cell lies in a gap of %g cells, want %g", s.GapCells, want)
	}
	if got := Describe([]prior.Mask{{Place: place, Observed: chess}}); got.EdgeDensity != 1 || got.CorrelationCells >= 1 {
		t.Errorf("a chessboard has edge density %g and correlation length %g, want 1 and less than 1", got.EdgeDensity, got.CorrelationCells)
	}
	if d := s.Distance(s); d != 0 {
		t.Errorf("distance of statistics from themselves is %g", d)
	}
}

// Masks cut from a smooth field have its correlation length, or nearly: the
// sign of a Gaussian field is correlated as 2/π·asin of the field.
func TestCorrelationLengthOfSmoothMasks(t *testing.T) {
	const side, length = 64, 8
	place := prior.Place{Height: side, Width: side, Sea: make([]bool, side*side)}
	for c := range place.Sea {
		place.Sea[c] = true
	}
	var masks []prior.Mask
	for s := range uint64(60) {
		m := prior.Mask{Place: place, Observed: make([]bool, side*side)}
		for c, v := range noise.SmoothField(side, side, length, noise.New(s, "masks")) {
			m.Observed[c] = v > 0
		}
		masks = append(masks, m)
	}
	// asin(r)·2/π = 1/e at r = sin(π/2e); r falls as exp(-(x/length)²).
	want := length * math.Sqrt(-math.Log(math.Sin(math.Pi/2/math.E)))
	if got := Describe(masks).CorrelationCells; math.Abs(got-want) > 0.1*want {
		t.Errorf("correlation length %.2f cells, want %.2f", got, want)
	}
}

// That masks differ in coverage says nothing of how large their gaps are.
func TestCorrelationLengthDoesNotHangOnCoverage(t *testing.T) {
	const side, length = 64, 6
	place := prior.Place{Height: side, Width: side, Sea: make([]bool, side*side)}
	for c := range place.Sea {
		place.Sea[c] = true
	}
	cut := func(threshold func(i int) float32) float64 {
		var masks []prior.Mask
		for i := range 60 {
			m := prior.Mask{Place: place, Observed: make([]bool, side*side)}
			for c, v := range noise.SmoothField(side, side, length, noise.New(uint64(i), "masks")) {
				m.Observed[c] = v > threshold(i)
			}
			masks = append(masks, m)
		}
		return Describe(masks).CorrelationCells
	}
	even := cut(func(int) float32 { return 0.5 })
	differing := cut(func(i int) float32 { return float32(i%3)*1.2 - 0.7 }) // 0.76, 0.31 and 0.04 of the cells
	if math.Abs(differing-even) > 0.15*even {
		t.Errorf("correlation length %.2f cells where coverage differs, %.2f where it does not", differing, even)
	}
}
