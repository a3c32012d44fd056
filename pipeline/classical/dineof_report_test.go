package classical

import (
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// TestReportSkillOfDINEOF prints DINEOF beside the other methods on the same
// overlays; run it with -report -v. An expansion sees the whole record, the others
// ten days on either side.
func TestReportSkillOfDINEOF(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	const day = 24 * time.Hour
	coastal := pacific
	coastal.row, coastal.col, coastal.height, coastal.width = 60, 165, 120, 120
	for name, r := range map[string]recording{
		"chlorophyll, NE Pacific coast": coastal,
		"chlorophyll, test region":      {file: "phytofit/testregion_365d.nc", variable: "CHL", log10: true},
		"temperature, Alboran":          {file: "dineof_alboran/alboranSST_small.nc", variable: "SST"},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.load(t)
			tuning := DefaultTuning()
			tuning.Past, tuning.Future, tuning.Overlays = 10*day, 10*day, 60
			if len(s.Frames) < 30 {
				// Ten days cannot lie further apart, and each overlay costs an
				// expansion of its own.
				tuning.Apart, tuning.Overlays = day, 20
			}
			trial := newTrial(s, tuning, DefaultOI(s.Grid))
			base := trial.solved(DefaultOI(s.Grid))
			for _, row := range []struct {
				name   string
				misses [][]miss
			}{
				{"climatology", trial.estimates(Climatology)},
				{"persistence", trial.estimates(persist)},
				{"oi", base},
				{"dineof", trial.expanded(t, DefaultDINEOF())},
			} {
				sc := score(slices.Concat(row.misses...), len(row.misses))
				t.Logf("%-12s MSE %.4f  90%% covers %.3f  spread/skill %.3f  better than oi by %.1f se  (%d overlays, %d cells)",
					row.name, sc.MSE, sc.Coverage90, sc.SpreadSkill, better(row.misses, base), sc.Overlays, sc.Pixels)
			}
		})
	}
}

// perExpansion is how many overlays are hidden from a series at once: too few
// to change the series much.
const perExpansion = 15

// expanded hides overlays from the whole series, one for a frame and some at a
// time, and scores the expansions on them.
func (t *trial) expanded(tb testing.TB, d DINEOF) [][]miss {
	tb.Helper()
	all := make([][]miss, len(t.overlays))
	for left := len(t.overlays); left > 0; {
		s := clone(t.series)
		taken, chosen := map[int]bool{}, []int{}
		for i, l := range t.overlays {
			if all[i] != nil || taken[l.target] || len(chosen) == min(perExpansion, len(s.Frames)/6) {
				continue
			}
			taken[l.target] = true
			chosen = append(chosen, i)
			for c := range s.Grid.Len() {
				if !t.series.observed(l.gaps, c) {
					s.Frames[l.target].Values[c] = field.NaN()
				}
			}
		}
		filled, modes, err := d.fillAll(s, nil)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Logf("%d modes after %d iterations, errors %.3f", modes.Count, modes.Iterations, modes.Errors)
		for _, i := range chosen {
			all[i] = t.missed(t.overlays[i], filled[t.overlays[i].target])
		}
		left -= len(chosen)
	}
	return all
}

// missed returns the errors of an estimate on the hidden cells.
func (t *trial) missed(l overlay, e Estimate) []miss {
	var out []miss
	for _, c := range l.hidden {
		by := float64(e.Mean[c] - t.series.Frames[l.target].Values[c])
		out = append(out, miss{by: by, sigma: float64(e.Sigma[c])})
	}
	return out
}
