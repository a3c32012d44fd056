package classical

import (
	"testing"
	"time"

	"lacuna/pipeline/skill"
)

// within is how far the mean step at the lines of a lattice may be from that
// elsewhere.
const within = 0.05

// TestMapsHaveNoLattice fills days and compares the steps at every lattice with
// those of an analysis whose nodes are the cells, which can have none.
func TestMapsHaveNoLattice(t *testing.T) {
	if testing.Short() {
		t.Skip("fills forty days; leave -short out to run it")
	}
	for name, sea := range map[string]struct {
		load func(t testing.TB) Series
		days int
	}{
		"made up":     {func(testing.TB) Series { return cloudy(100, 110, 16, 5) }, 6},
		"Florida SST": {recording{file: "florida_modis_sst/florida_modis_sst_2023.nc", variable: "sst", row: 30, col: 90, height: 81, width: 81, frames: 60}.load, 12},
		"Pacific":     {recording{file: pacific.file, variable: pacific.variable, log10: true, row: 60, col: 100, height: 120, width: 150, frames: 60}.load, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := sea.load(t)
			o := DefaultOI(s.Grid)
			o.Spacing = max(o.Spacing, 2)
			smooth := o
			smooth.Spacing = 1
			var maps, control [2]*skill.Steps
			for k := range maps {
				maps[k], control[k] = skill.NewSteps(s.Grid.Height(), s.Grid.Width()), skill.NewSteps(s.Grid.Height(), s.Grid.Width())
			}
			for d := range sea.days {
				target := len(s.Frames) - 1 - d*(len(s.Frames)-12)/sea.days
				window, at := s.Window(target, 10*24*time.Hour, 0)
				filled := make([]bool, s.Grid.Len())
				for c := range filled {
					filled[c] = window.sea(c) && !window.observed(at, c)
				}
				for _, way := range []struct {
					oi    OI
					steps [2]*skill.Steps
				}{{o, maps}, {smooth, control}} {
					e := fill(t, way.oi, window, at)
					way.steps[0].Add(e.Mean, filled)
					way.steps[1].Add(e.Sigma, filled)
				}
			}
			for k, what := range []string{"mean", "sigma"} {
				l := skill.WorstLattice(maps[k], control[k], 32)
				t.Logf("%s, nodes every %d cells: %+v; without control %+v", what, o.Spacing, l, skill.WorstLattice(maps[k], nil, 32))
				if l.Sure() > within {
					t.Errorf("%s: steps at every %d. line are %.3f times those elsewhere", what, l.Period, l.Ratio)
				}
			}
		})
	}
}
