package trial

import (
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
)

func TestAPowerLawIsFound(t *testing.T) {
	var g Growth
	for _, side := range []int{64, 128, 512} {
		cells := float64(side * side)
		g.Rows = append(g.Rows, GrowthRow{Side: side, CPU: 3 * math.Pow(cells, 1.25)})
	}
	if g.fit(); math.Abs(g.Exponent-1.25) > 1e-9 || math.Abs(g.R2-1) > 1e-9 {
		t.Errorf("exponent %g, r2 %g; want 1.25 and 1", g.Exponent, g.R2)
	}
}

func TestGrowthFillsEverySide(t *testing.T) {
	e := enginetest.Open(t)
	cfg := DefaultConfig()
	cfg.Days, cfg.Size = 1, nn.Tiny
	used := Usage{PeakMB: 7}
	g, err := Grow(t.Context(), cfg, infer.Device{Backend: e}, []int{16, 32}, func() Usage {
		used.CPU += 1e9
		return used
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Rows) != 2 || g.Rows[1].Side != 32 || g.Rows[1].CPU != 1 || g.Rows[1].PeakMB != 7 || !(g.Rows[1].Look > 0) {
		t.Errorf("rows are %+v", g.Rows)
	}
	var text strings.Builder
	if err := g.Print(&text); err != nil || !strings.Contains(text.String(), "power") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

// A sea that is too large to simulate is tiled from a smaller one without
// steps at the joints, at the same step of the grid.
func TestAMosaicGoesOnAcrossItsJoints(t *testing.T) {
	m := mosaic{height: 5, width: 7, tile: field.Grid{Lat: []float64{50, 50.5}, Lon: []float64{1, 2, 3}}}
	got := lay(m, []int{1, 2, 3, 4, 5, 6})
	want := []int{
		1, 2, 3, 3, 2, 1, 1,
		4, 5, 6, 6, 5, 4, 4,
		4, 5, 6, 6, 5, 4, 4,
		1, 2, 3, 3, 2, 1, 1,
		1, 2, 3, 3, 2, 1, 1,
	}
	if !slices.Equal(got, want) {
		t.Errorf("mosaic is %v", got)
	}
	g := m.grid()
	if !slices.Equal(g.Lat, []float64{-1, -0.5, 0, 0.5, 1}) || !slices.Equal(g.Lon, []float64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("grid is %v, %v", g.Lat, g.Lon)
	}
	small := mosaic{tile: m.tile}
	if tile := []int{1, 2, 3, 4, 5, 6}; !slices.Equal(lay(small, tile), tile) || !small.grid().Same(m.tile) {
		t.Error("a sea no larger than the tile must be the tile itself")
	}
}
