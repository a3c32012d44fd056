package prior

import (
	"math"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

func TestStatisticsOfKnownMasks(t *testing.T) {
	const side = 8
	sea := make([]bool, side*side)
	for c := range sea {
		sea[c] = c >= side // the first row is land
	}
	place := Place{Height: side, Width: side, Sea: sea}
	half, chess := make([]bool, side*side), make([]bool, side*side)
	for c := range half {
		half[c] = sea[c] && c%side < 4
		chess[c] = sea[c] && (c/side+c%side)%2 == 0
	}
	s := Describe([]Mask{{place, half}, {place, make([]bool, side*side)}})
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
	if got := Describe([]Mask{{place, chess}}); got.EdgeDensity != 1 || got.CorrelationCells >= 1 {
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
	place := Place{Height: side, Width: side, Sea: make([]bool, side*side)}
	for c := range place.Sea {
		place.Sea[c] = true
	}
	var masks []Mask
	for s := range uint64(60) {
		m := Mask{Place: place, Observed: make([]bool, side*side)}
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
	place := Place{Height: side, Width: side, Sea: make([]bool, side*side)}
	for c := range place.Sea {
		place.Sea[c] = true
	}
	cut := func(threshold func(i int) float32) float64 {
		var masks []Mask
		for i := range 60 {
			m := Mask{Place: place, Observed: make([]bool, side*side)}
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

// The masks of this model are rough without any pull, many times as rough as
// the real ones, and the strength must be found all the same.
func TestStrengthReachesItsTarget(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	patches := samplestest.Cloudy(8, 16)
	cfg := DefaultGuidance()
	cfg.SampleConfig, cfg.Rho = testSampling(), 0.9 // without guidance this model shares half
	want := Target{ContextShare: 0.65, Tolerance: 0.05, MaxRoughness: DefaultTarget().MaxRoughness}
	got, err := AutoStrength(t.Context(), m, patches, cfg, want)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Weight = got.Weight
	again, err := measureStrength(t.Context(), m, patches, cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	if again.ContextShare != got.ContextShare {
		t.Errorf("weight %g gives a context share of %g, and gave %g when it was found", got.Weight, again.ContextShare, got.ContextShare)
	}
	if !got.Reached {
		t.Errorf("found %+v, want a context share of %g", got, want.ContextShare)
	}
}

// The search itself, on an answer that is known: the share grows with the
// weight up to 1000 and masks are too rough from 200 on.
func TestStrengthStopsBeforeMasksAreTorn(t *testing.T) {
	known := func(weight float64) (Strength, error) {
		return Strength{Weight: weight, ContextShare: math.Log(weight) / 10, Roughness: weight / 100}, nil
	}
	s := strengthSearch{want: Target{ContextShare: 0.45, Tolerance: 0.005, MaxRoughness: 2}, measure: known}
	if err := s.run(); err != nil || !s.best.Reached || math.Abs(s.best.Weight-90) > 6 {
		t.Errorf("found %+v (%v), want a weight near 90", s.best, err)
	}
	s = strengthSearch{want: Target{ContextShare: 0.9, Tolerance: 0.005, MaxRoughness: 2}, measure: known}
	if err := s.run(); err != nil || s.best.Reached || s.best.Weight > 200 || s.best.Weight < 180 {
		t.Errorf("found %+v (%v), want the weight at which masks begin to be rough, 200", s.best, err)
	}
}

func TestExhibitsShowWhatIsDrawn(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	patches := samplestest.Cloudy(2, 16)
	cfg := DefaultGuidance()
	cfg.SampleConfig = testSampling()
	shown, err := Exhibits(t.Context(), m, patches, cfg, noise.New(1, "sheet"))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range shown {
		for c, o := range patches[i].Observed() {
			if e.Observed[c] != o || e.Context[c] != (o && e.Guided[c]) || e.Query[c] != (o && !e.Guided[c]) || e.Anchor[c] && !o {
				t.Fatalf("row %d, cell %d does not fit together", i, c)
			}
		}
	}
}

func TestPlacesOfDifferentSizesAreRefused(t *testing.T) {
	m := roughModel(t, enginetest.Open(t), nil)
	places := []Place{PlaceOf(samplestest.Cloudy(1, 16)[0]), PlaceOf(samplestest.Cloudy(1, 8)[0])}
	if _, err := m.Draw(t.Context(), places, testSampling(), noise.New(1, "sizes")); err == nil {
		t.Error("places of 16 and 8 cells were drawn in one batch")
	}
	var none []samples.Patch
	if _, err := AutoStrength(t.Context(), m, none, DefaultGuidance(), DefaultTarget()); err == nil {
		t.Error("a strength was found without patches")
	}
}

func TestFrequencyIsCountedOverDaysAndCutByPlace(t *testing.T) {
	_, train, _ := samplestest.Archive(t, 30, 16)
	f := FrequencyOf(train)
	var seen [16 * 16]float64
	total := 0.0
	for d := range train.Days() {
		for c, o := range train.Cut(samples.Ref{Day: d, Window: samples.Square(0, 0, 16)}).Observed() {
			seen[c] += indicator(o)
			total += indicator(o)
		}
	}
	mean := total / float64(train.Sea().Count())
	place := Place{Row: 4, Col: -2, Height: 8, Width: 8}
	plane := make([]float32, 64)
	f.fill(plane, place, size{8, 8})
	for i, got := range plane {
		row, col := 4+i/8, i%8-2
		want := 0.0 // beyond the grid
		if col >= 0 {
			want = seen[row*16+col]/mean - 1
		}
		if math.Abs(float64(got)-want) > 0.5/frequencySteps+1e-6 {
			t.Fatalf("cell %d has frequency %g, want %g", i, got, want)
		}
	}
}
