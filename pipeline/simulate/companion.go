package simulate

import (
	"fmt"
	"math"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

const (
	companionMean   = 288.15 // kelvin
	companionSeason = 7      // kelvin from the mean to the warmest day
	companionSpread = 1.5    // kelvin, of anomalies
	companionCells  = 2      // cells of the world along the side of one of its own
)

// Companion returns another variable over the same ocean for day n: a temperature without
// gaps, on a grid half as fine, whose anomalies go with those of the tracer by a
// correlation from -1 to 1. At 0 it knows nothing of it: its anomalies are those of another
// ocean with the same currents' statistics.
func (w *World) Companion(n int, correlation float64) (Granule, error) {
	if !(math.Abs(correlation) <= 1) {
		return Granule{}, fmt.Errorf("the correlation of a companion is %g, must be -1..1", correlation)
	}
	own, other := make([]float32, w.chart.grid.Len()), make([]float32, w.chart.grid.Len())
	w.basin.truth(own, w.origin+n)
	w.companion().truth(other, w.origin+n)
	day := float64(w.origin + n)
	spread := math.Hypot(w.recipe.sea.patchStd, w.recipe.sea.fineStd)
	values := make([]float32, len(own))
	for i := range values {
		usual := w.basin.water.climate(i, day)
		a, b := (float64(own[i])-usual)/spread, (float64(other[i])-usual)/spread
		season := companionSeason * math.Cos(2*math.Pi*(yearDay(day)-225)/365.25)
		values[i] = float32(companionMean + season + companionSpread*(correlation*a+math.Sqrt(1-correlation*correlation)*b))
		if !w.chart.sea[i] {
			values[i] = field.NaN()
		}
	}
	f := coarse(w.field(n, values), companionCells)
	name := w.time(n).Format("20060102") + "_sst.nc"
	return Granule{Name: name, Seen: f, File: companionFile(f)}, nil
}

// coarse returns the means of squares of cells, NaN where none has a value.
func coarse(f field.Field, side int) field.Field {
	grid := f.Grid.Coarse(side)
	out := make([]float32, grid.Len())
	for i := range out {
		sum, count := 0.0, 0.0
		for a := range side {
			for b := range side {
				row, col := i/grid.Width()*side+a, i%grid.Width()*side+b
				if row >= f.Grid.Height() || col >= f.Grid.Width() {
					continue
				}
				if v := f.Values[row*f.Grid.Width()+col]; v == v { // not NaN
					sum, count = sum+float64(v), count+1
				}
			}
		}
		out[i] = float32(sum / count)
	}
	return field.Field{Grid: grid, Time: f.Time, Values: out}
}

// companionFile returns a companion as a file after CF.
func companionFile(f field.Field) cdl.File {
	const fill = -32768
	s := &sheet{chart: &chart{grid: f.Grid, h: f.Grid.Height(), w: f.Grid.Width()}, time: f.Time}
	vars := append(s.axes(), mapVar("analysed_sst", filled(f.Values, fill), []cdl.Attr{
		{Name: "_FillValue", Value: []float32{fill}},
		{Name: "standard_name", Value: "sea_surface_temperature"},
		{Name: "long_name", Value: "sea surface temperature, simulated as a companion of another variable"},
		{Name: "units", Value: "kelvin"},
	}))
	return cdl.File{Dims: s.dims(), Vars: vars, Attrs: []cdl.Attr{
		{Name: "Conventions", Value: "CF-1.7"}, {Name: "comment", Value: simulated},
	}}
}
