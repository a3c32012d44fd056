package fill

import (
	"fmt"
	"math"
	"os"
	"testing"

	"lacuna/internal/geo"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
)

// A mother is a simulated sea on a fine grid, from which the same truth, noise and
// clouds are read off at the places of any other grid.
type mother struct {
	grid    field.Grid
	sea     field.Mask
	seen    []field.Field
	truth   []field.Field
	granule ingest.Granule // without fields
}

// viewOf returns the sea of a simulation on its own grid.
func viewOf(t *testing.T, cfg simulate.Config) view {
	t.Helper()
	w, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	v := view{granule: chlorophyll(), sea: w.Sea()}
	for d := range w.Days() {
		day := w.Day(d)
		v.granule.Fields, v.truth = append(v.granule.Fields, day.Seen), append(v.truth, day.Truth.Values)
	}
	return v
}

// chlorophyll returns a granule without fields. Whatever it holds, it is filled as
// chlorophyll is: there is a starter for it.
func chlorophyll() (g ingest.Granule) {
	g.Transform, g.Product = field.Transform{Log10: true, Floor: 1e-3}, "chlorophyll"
	g.Source = ingest.Source{Variable: "V", Vars: []ingest.Var{{Name: "V", Attrs: []ingest.Attr{{Name: "standard_name", Value: "mass_concentration_of_chlorophyll_a_in_sea_water"}}}}}
	return g
}

func newMother(t *testing.T, product string, height, width, days int) mother {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: product, Height: height, Width: width, Days: days, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	m := mother{grid: w.Grid(), sea: w.Sea()}
	for d := range w.Days() {
		day := w.Day(d)
		m.seen, m.truth = append(m.seen, day.Seen), append(m.truth, day.Truth)
	}
	m.granule = chlorophyll()
	return m
}

// at returns the cell nearest to a place, or -1 outside of the grid.
func (m mother) at(lat, lon float64) int {
	h, w := m.grid.Height(), m.grid.Width()
	dy, dx := (m.grid.Lat[h-1]-m.grid.Lat[0])/float64(h-1), (m.grid.Lon[w-1]-m.grid.Lon[0])/float64(w-1)
	i, j := int(math.Round((lat-m.grid.Lat[0])/dy)), int(math.Round(field.Wrap(lon-m.grid.Lon[0])/dx))
	if m.grid.Periodic() {
		j = (j + w) % w
	}
	if i < 0 || j < 0 || i >= h || j >= w {
		return -1
	}
	return i*w + j
}

// A view is a mother seen on another grid.
type view struct {
	granule ingest.Granule
	sea     field.Mask
	truth   [][]float32
}

// on returns the view on a grid, of which moved gives the place in the mother's
// sea of one of its own.
func (m mother) on(g field.Grid, moved func(lat, lon float64) (float64, float64)) view {
	from := make([]int, g.Len())
	v := view{granule: m.granule, sea: make(field.Mask, g.Len())}
	for c := range from {
		from[c] = m.at(moved(g.Place(c/g.Width(), c%g.Width())))
		v.sea[c] = from[c] >= 0 && m.sea[from[c]]
	}
	read := func(values []float32) []float32 {
		out := make([]float32, g.Len())
		for c, k := range from {
			out[c] = field.NaN()
			if k >= 0 {
				out[c] = values[k]
			}
		}
		return out
	}
	for d, day := range m.seen {
		v.granule.Fields = append(v.granule.Fields, field.Field{Grid: g, Time: day.Time, Values: read(day.Values), Sea: v.sea})
		v.truth = append(v.truth, read(m.truth[d].Values))
	}
	return v
}

// fill fills days of a view and returns the analyses, by day.
func (v view) fill(t *testing.T, choose func(Job) Choice, days int) map[int]infer.Analysis {
	t.Helper()
	const history = 20
	all := map[int]infer.Analysis{}
	for k := range days {
		target := history + k*(len(v.granule.Fields)-history)/days
		job := Job{Dataset: "sea", Sea: v.sea, Fill: infer.DefaultConfig()}
		for d := target - history; d <= target; d++ {
			day := v.granule
			day.Name, day.SHA256, day.Fields = fmt.Sprint(d), fmt.Sprint(d), v.granule.Fields[d:d+1]
			job.History = append(job.History, day)
		}
		job.Granule, job.History = job.History[history], job.History[:history]
		choice := choose(job)
		job.Fill, job.Model, job.Scaling = choice.Fill, choice.Model, choice.Scaling
		out, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[target] = out.Analyses[0]
	}
	return all
}

// rmse returns the error of filled cells, and the share of them whose truth lies
// within 1.645 sigma: 90 % where sigma is honest.
func (v view) rmse(t *testing.T, all map[int]infer.Analysis) (rmse, covered float64) {
	t.Helper()
	var sum, n, within float64
	for d, a := range all {
		value, truth := make([]float32, len(a.Value)), make([]float32, len(a.Value))
		v.granule.Transform.Forward(value, a.Value)
		v.granule.Transform.Forward(truth, v.truth[d])
		for c, flags := range a.Flags {
			if off := float64(value[c] - truth[c]); flags&infer.Interpolated != 0 && off == off {
				sum, n = sum+off*off, n+1
				if math.Abs(off) <= 1.645*float64(a.Sigma[c]) {
					within++
				}
			}
		}
	}
	if n < 1000 {
		t.Fatalf("%g cells are filled: that says little", n)
	}
	return math.Sqrt(sum / n), within / n
}

// planeOf returns the grid of a projection whose rows and columns run from top to
// bottom and from left to right.
func planeOf(t *testing.T, p geo.Projection, top, left, stepY, stepX float64, height, width int) field.Grid {
	t.Helper()
	lat, lon := make([]float64, height*width), make([]float64, height*width)
	for c := range lat {
		lat[c], lon[c] = p.Place(top-stepY*float64(c/width), left+stepX*float64(c%width))
	}
	g, err := field.NewPlane(lat, lon, width, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func polarProjection(t *testing.T, meridian, parallel float64) geo.Projection {
	t.Helper()
	attrs := map[string]float64{"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": meridian, "standard_parallel": parallel}
	p, err := geo.Of(geo.PolarStereographic, func(name string) (float64, bool) { v, ok := attrs[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The same sea on any grid is filled as well as on a regular one of the same step:
// polar stereographic where it is, moved onto the pole, under a rotated pole, and
// across the date line with longitudes that wrap. Figures are in docs/grids.md.
func TestASeaIsFilledAsWellOnEveryGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("fills fifteen days")
	}
	const within = 0.03
	days, of, step, long := 3, 26, 0.12, os.Getenv("LACUNA_LONG") != "" // long: as in docs/grids.md
	if long {
		days, of, step = 8, 44, 0.04
	}
	// Cells as wide as they are high, of a sea of 8 by 15.5 degrees about 44° N.
	height, width := int(8/step), int(15.5*math.Cos(44*math.Pi/180)/step)
	cfg := simulate.Config{Product: "blk-chl", Height: height, Width: width, Days: of, Seed: 7, Mapping: simulate.Regular}
	regular := viewOf(t, cfg)
	grids := map[string]view{}
	for _, m := range simulate.Mappings[1:] {
		cfg.Mapping = m
		grids[string(m)] = viewOf(t, cfg)
	}
	// The sea moved onto the pole, by a turn of the globe about its own middle.
	m := newMother(t, "blk-chl", 3*height, 3*width, of)
	south, north, west, east := m.grid.Bounds()
	pole := geo.Rotated{PoleLat: (south + north) / 2, PoleLon: (west + east) / 2}
	arctic, stepM := polarProjection(t, 30, 85), step*6371008.8*math.Pi/180
	grids["polar, over the pole"] = m.on(planeOf(t, arctic, stepM*float64(width)/2, -stepM*float64(width)/2, stepM, stepM, width, width), pole.Place)
	methods := map[string]func(Job) Choice{"oi": interpolated}
	if long {
		methods["starter"] = starterChoice(t, regular.granule)
	}
	for method, choose := range methods {
		want, covered := regular.rmse(t, regular.fill(t, choose, days))
		t.Logf("%s, regular %v: rmse %.4f, coverage %.3f", method, regular.granule.Fields[0].Grid, want, covered)
		for name, v := range grids {
			got, covered := v.rmse(t, v.fill(t, choose, days))
			t.Logf("%s, %s, %v: rmse %.4f, %+.2f %%, coverage %.3f", method, name, v.granule.Fields[0].Grid, got, 100*(got/want-1), covered)
			if math.Abs(got/want-1) > within {
				t.Errorf("%s, %s: the error is %.4f, on a regular grid %.4f", method, name, got, want)
			}
		}
	}
}

// A globe is filled across the meridian at which its grid begins: the step there is
// as long as that of the same places on a grid that begins elsewhere, for all
// methods and for sigma too. The tolerance is that of the other seams.
func TestAGlobeHasNoSeamWhereItsGridBegins(t *testing.T) {
	if testing.Short() {
		t.Skip("fills twelve days")
	}
	const width, half, days = 108, 54, 3
	m := newMother(t, "smos-sss", 54, width, 26)
	stay := func(lat, lon float64) (float64, float64) { return lat, lon }
	turned := make([]float64, width)
	for j := range turned {
		turned[j] = m.grid.Lon[(j+half)%width]
	}
	a, b := m.on(m.grid, stay), m.on(field.Grid{Lat: m.grid.Lat, Lon: field.Unwrap(turned)}, stay)
	if !a.granule.Fields[0].Grid.Periodic() || !b.granule.Fields[0].Grid.Periodic() {
		t.Fatal("the grids do not close")
	}
	type map3 struct{ value, sigma, departure []float32 }
	fill := func(v view) map[int]map3 {
		windows := func(j Job) Choice {
			c := starterChoice(t, a.granule)(j)
			c.Fill.Network.WindowCells = 64 // so that there are several
			return c
		}
		out := map[int]map3{}
		oi := v.fill(t, interpolated, days)
		for d, s := range v.fill(t, windows, days) {
			x := map3{oi[d].Value, oi[d].Sigma, make([]float32, len(s.Value))}
			for c := range x.departure {
				x.departure[c] = s.Value[c] - oi[d].Value[c]
			}
			out[d] = x
		}
		return out
	}
	begins, inside := fill(a), fill(b)
	for what, tt := range map[string]struct {
		of     func(map3) []float32
		within float64
	}{
		"interpolation":             {func(x map3) []float32 { return x.value }, within},
		"sigma":                     {func(x map3) []float32 { return x.sigma }, within},
		"departures of the network": {func(x map3) []float32 { return x.departure }, 0.25}, // its windows lie elsewhere, which alone makes some difference
	} {
		var sum [2]float64 // steps over the meridian
		n := 0
		for d := range begins {
			x, y := tt.of(begins[d]), tt.of(inside[d])
			for row := 0; row < len(x); row += width {
				over := [2]float64{float64(x[row] - x[row+width-1]), float64(y[row+half] - y[row+half-1])}
				if over[0] == over[0] && over[1] == over[1] { // land is NaN
					sum[0], sum[1], n = sum[0]+math.Abs(over[0]), sum[1]+math.Abs(over[1]), n+1
				}
			}
		}
		t.Logf("%s: %d steps of %.2g on average, %.4f of those inside", what, n, sum[0]/float64(n), sum[0]/sum[1])
		if n < 100 || math.Abs(sum[0]/sum[1]-1) > tt.within {
			t.Errorf("%s: %d steps over the meridian at which the grid begins are %.3f of the same inside", what, n, sum[0]/sum[1])
		}
	}
}
