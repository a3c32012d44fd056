package fill

import (
	"encoding/csv"
	"fmt"
	"os"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

// within is how far the mean step at the lines of any lattice of a map may be
// from that of the lines around them.
const within = 0.05

// seamSeas are the seas whose maps are searched for lattices, each with the days
// that are filled.
func seamSeas(t *testing.T) map[string]ingest.Granule {
	t.Helper()
	seas := map[string]ingest.Granule{}
	for _, s := range []newSea{
		{name: "Florida, SST", file: "florida_modis_sst/florida_modis_sst_2023.nc", row: 30, col: 90, high: 81, wide: 81},
		{name: "Pacific, chlorophyll", file: "phytofit/pacific_modis_poly4_2021.nc", row: 60, col: 100, high: 128, wide: 160},
	} {
		t.Run("load "+s.name, func(t *testing.T) { seas[s.name] = s.load(t) }) // skips that sea only, where there is no real data
	}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 120, Width: 168, Days: 60, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	black := ingest.Granule{
		Product: "chlorophyll", Transform: field.Transform{Log10: true, Floor: 1e-3},
		Source: ingest.Source{Variable: "CHL", Vars: []ingest.Var{{
			Name: "CHL", Attrs: []ingest.Attr{{Name: "standard_name", Value: "mass_concentration_of_chlorophyll_a_in_sea_water"}},
		}}},
	}
	for d := range w.Days() {
		day := w.Day(d).Seen
		day.Sea = w.Sea()
		black.Fields = append(black.Fields, day)
	}
	seas["Black Sea, simulated"] = black
	return seas
}

// seamsOf fills days of a sea and sums the steps of the maps between filled cells.
func seamsOf(t *testing.T, g ingest.Granule, choose func(Job) Choice, days int) (value, sigma *skill.Steps) {
	t.Helper()
	grid := g.Fields[0].Grid
	value, sigma = skill.NewSteps(grid.Height(), grid.Width()), skill.NewSteps(grid.Height(), grid.Width())
	const history = 30
	for k := range days {
		target := history + k*(len(g.Fields)-history)/days
		job := Job{Dataset: "sea", Sea: g.Fields[target].Sea, Fill: infer.DefaultConfig()}
		for d := target - history; d <= target; d++ {
			day := g
			day.Name, day.SHA256, day.Fields = fmt.Sprint(d), fmt.Sprint(d), g.Fields[d:d+1]
			job.History = append(job.History, day)
		}
		job.Granule = job.History[history]
		job.History = job.History[:history]
		choice := choose(job)
		job.Fill, job.Model, job.Scaling = choice.Fill, choice.Model, choice.Scaling
		out, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := out.Analyses[0]
		filled := make([]bool, len(a.Flags))
		for c, flags := range a.Flags {
			filled[c] = flags&infer.Interpolated != 0
		}
		mean := make([]float32, len(a.Value))
		g.Transform.Forward(mean, a.Value)
		value.Add(mean, filled)
		sigma.Add(a.Sigma, filled)
	}
	return value, sigma
}

// A front is a gradient, and a method that works in blocks, windows or strides
// draws fronts of its own, at every so many cells. What the producer's own grid
// left is not ours: in the Florida Straits the observations have steps that are a
// third larger at every third row, and the maps a tenth.
func TestProductsHaveNoLattice(t *testing.T) {
	if testing.Short() {
		t.Skip("fills thirty days")
	}
	days := 5
	if os.Getenv("LACUNA_LONG") != "" {
		days = 8
	}
	for name, g := range seamSeas(t) {
		for method, choose := range map[string]func(Job) Choice{"oi": interpolated, "starter": starterChoice(t, g)} {
			t.Run(name+", "+method, func(t *testing.T) {
				value, sigma := seamsOf(t, g, choose, days)
				for what, steps := range map[string]*skill.Steps{"value": value, "sigma": sigma} {
					l := skill.WorstLattice(steps, nil, 32)
					t.Logf("%s: worst %+v, surely off by %.3f", what, l, l.Sure())
					if l.Sure() > within {
						t.Errorf("%s: steps at every %d. line are %.3f times those around, standard error %.3f", what, l.Period, l.Ratio, l.Error)
					}
				}
				drawSpectra(t, name+"-"+method, value, sigma)
			})
		}
	}
}

// drawSpectra writes the gradient spectra of maps where $LACUNA_SPECTRA names a
// folder, for the picture in the documentation.
func drawSpectra(t *testing.T, name string, value, sigma *skill.Steps) {
	t.Helper()
	folder := os.Getenv("LACUNA_SPECTRA")
	if folder == "" {
		return
	}
	f, err := os.Create(fmt.Sprintf("%s/%s.csv", folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := csv.NewWriter(f)
	defer out.Flush()
	for period := 2.0; period <= 32; period *= 1.005 {
		if err := out.Write([]string{
			fmt.Sprintf("%.4f", period), fmt.Sprintf("%.5f", value.Wave(skill.AlongRows, period)), fmt.Sprintf("%.5f", value.Wave(skill.AlongColumns, period)),
			fmt.Sprintf("%.5f", sigma.Wave(skill.AlongRows, period)), fmt.Sprintf("%.5f", sigma.Wave(skill.AlongColumns, period)),
		}); err != nil {
			t.Fatal(err)
		}
	}
}
