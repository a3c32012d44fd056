package matchup

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// What is planted into the products of a simulated sea, in decades.
const (
	plantedBias   = 0.08
	observedNoise = 0.05
	filledNoise   = 0.20
	insituNoise   = 0.02
	days          = 24
)

// trial is a simulated sea with products of a known error, and measurements.
type trial struct {
	transform field.Transform
	maps      []Map
	obs       []Observation
}

// newTrial plants bias and some of the noise into the truth of a sea, and lets
// platforms measure it: each a few times a day, in one cell of the sea.
func newTrial(t *testing.T, noise float32) trial {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 56, Days: days, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := trial{transform: field.Transform{Log10: true, Floor: 1e-4}}
	grid, sea := w.Grid(), w.Sea()
	latStep, lonStep := grid.Lat[1]-grid.Lat[0], grid.Lon[1]-grid.Lon[0]
	for n := range days {
		truth := w.Day(n).Truth
		noon := truth.Time.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
		m := Map{Grid: grid, Time: noon, Values: make([]float32, grid.Len()), Sigma: make([]float32, grid.Len()), Filled: make([]bool, grid.Len())}
		for i, v := range truth.Values {
			m.Filled[i] = r.IntN(2) == 0
			m.Sigma[i] = observedNoise
			if m.Filled[i] {
				m.Sigma[i] = filledNoise
			}
			m.Sigma[i] *= noise
			m.Values[i] = float32(math.NaN())
			if sea[i] && v > 0 {
				m.Values[i] = float32(math.Pow(10, math.Log10(float64(v))+plantedBias+float64(m.Sigma[i])*r.NormFloat64()))
			}
		}
		all.maps = append(all.maps, m)
		for k := 0; k < 60; {
			row, col := r.IntN(grid.Height()), r.IntN(grid.Width())
			v := truth.Values[row*grid.Width()+col]
			if !sea[row*grid.Width()+col] || !(v > 0) {
				continue
			}
			k++
			for range 3 {
				all.obs = append(all.obs, Observation{
					Platform: fmt.Sprintf("buoy %d of day %d", k, n),
					Time:     noon.Add(time.Duration((r.Float64() - 0.5) * 23 * float64(time.Hour))),
					Lat:      grid.Lat[row] + (r.Float64()-0.5)*0.9*latStep, Lon: grid.Lon[col] + (r.Float64()-0.5)*0.9*lonStep,
					Value: math.Pow(10, math.Log10(float64(v))+insituNoise*r.NormFloat64()),
				})
			}
		}
	}
	return all
}

func (tr trial) score(t *testing.T, w Window) map[string]Scores {
	t.Helper()
	m := NewMatcher(tr.obs, w, tr.transform)
	for _, one := range tr.maps {
		m.Add(one)
	}
	pairs, _ := m.Pairs()
	all := map[string]Scores{}
	for _, s := range Score(pairs) {
		all[s.Cells] = s
	}
	return all
}

var day = Window{Within: 12 * time.Hour}

func near3(t *testing.T, what string, got *float64, want, tolerance float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > tolerance {
		t.Errorf("%s is %v, want %.4f ± %.4f", what, show(got), want, tolerance)
	}
}

func show(x *float64) string {
	if x == nil {
		return "not told"
	}
	return fmt.Sprintf("%.4f", *x)
}

func TestPlantedErrorsAreFound(t *testing.T) {
	tr := newTrial(t, 1)
	scores := tr.score(t, day)
	if n := scores[All].N; n != 60*days || scores[All].Readings != 3*n || scores[All].Platforms != n {
		t.Fatalf("%+v, want %d pairs of three readings", scores[All], 60*days)
	}
	// The median of three readings has a variance of 0.449 of that of one.
	insitu := insituNoise * math.Sqrt(0.449)
	for kind, noise := range map[string]float64{Observed: observedNoise, Filled: filledNoise} {
		s, spread := scores[kind], math.Hypot(noise, insitu)
		error := 4 * spread / math.Sqrt(float64(s.N)) // four standard errors
		near3(t, kind+": bias", s.Bias, plantedBias, error)
		near3(t, kind+": RMSE", s.RMSE, math.Hypot(plantedBias, spread), error)
		near3(t, kind+": robust spread", s.Spread, spread, 2*error)
		near3(t, kind+": sigma", s.Sigma, noise, 1e-6)
		// The share of errors N(bias, spread) within 1.645 sigma.
		within := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
		share := within((z90*noise-plantedBias)/spread) - within((-z90*noise-plantedBias)/spread)
		near3(t, kind+": coverage", s.Coverage90, share, 4*math.Sqrt(share*(1-share)/float64(s.N)))
	}
	if *scores[Observed].Correlation <= *scores[Filled].Correlation || *scores[Observed].Correlation > 1 {
		t.Errorf("correlations are %s observed, %s filled", show(scores[Observed].Correlation), show(scores[Filled].Correlation))
	}
}

// A day or a cell too far is seen in the scores: nothing else would tell.
func TestOneDayOrOneCellOffIsWorse(t *testing.T) {
	right := newTrial(t, 0) // without noise that would hide it
	base := right.score(t, day)[All]
	grid := right.maps[0].Grid
	for name, shift := range map[string]func(*Observation){
		"a day":              func(o *Observation) { o.Time = o.Time.AddDate(0, 0, 1) },
		"a column":           func(o *Observation) { o.Lon += grid.Lon[1] - grid.Lon[0] },
		"a row":              func(o *Observation) { o.Lat += grid.Lat[1] - grid.Lat[0] },
		"a column westwards": func(o *Observation) { o.Lon -= grid.Lon[1] - grid.Lon[0] },
	} {
		off := right
		off.obs = append([]Observation(nil), right.obs...)
		for i := range off.obs {
			shift(&off.obs[i])
		}
		got := off.score(t, day)[All]
		if *got.Spread < 1.5**base.Spread || *got.RMSE < 1.02**base.RMSE || *got.Correlation > *base.Correlation {
			t.Errorf("%s off: spread %.4f, RMSE %.4f; %.4f and %.4f where it is right", name, *got.Spread, *got.RMSE, *base.Spread, *base.RMSE)
		}
	}
	turned := right
	turned.obs = append([]Observation(nil), right.obs...)
	for i := range turned.obs {
		turned.obs[i].Lon += 360
	}
	near3(t, "RMSE with longitudes of another turn", turned.score(t, day)[All].RMSE, *base.RMSE, 1e-9)
}

// flat is a map of two by three cells in which cell i has the value i + 1.
func flat(hour int) Map {
	g, err := field.NewGrid([]float64{40, 41}, []float64{10, 11, 12})
	if err != nil {
		panic(err)
	}
	return Map{Grid: g, Time: time.Date(2024, 5, 1, hour, 0, 0, 0, time.UTC), Values: []float32{1, 2, 3, 4, 5, 6}}
}

func at(lat, lon float64, hour int, value float64, platform string) Observation {
	return Observation{Lat: lat, Lon: lon, Time: time.Date(2024, 5, 1, hour, 0, 0, 0, time.UTC), Value: value, Platform: platform}
}

func TestPlatformCountsOnceADay(t *testing.T) {
	obs := []Observation{at(40, 12, 11, 3, "ship")}
	for i := range 1000 { // a buoy that is two too low, and one reading that is wild
		obs = append(obs, at(40, 10, 12, 3+1e-3*float64(i%3-1), "buoy"))
	}
	obs = append(obs, at(40, 10, 12, 900, "buoy"))
	m := NewMatcher(obs, day, field.Transform{})
	m.Add(flat(12))
	pairs, _ := m.Pairs()
	s := Score(pairs)[0]
	if len(pairs) != 2 || s.N != 2 || s.Readings != 1002 {
		t.Fatalf("pairs are %+v", pairs)
	}
	near3(t, "bias", s.Bias, -1, 1e-9) // the mean of 0 and -2
	if s.Coverage90 != nil || s.Sigma != nil || s.Correlation != nil {
		t.Errorf("%+v has figures that nobody can know", s)
	}
}

func TestWindowsHold(t *testing.T) {
	gap := flat(12)
	gap.Values[1] = float32(math.NaN())
	later := flat(18)
	later.Values = []float32{10, 20, 30, 40, 50, 60}
	for name, tt := range map[string]struct {
		obs    Observation
		window Window
		maps   []Map
		want   float64 // the product; 0: none
		why    string
	}{
		"in a cell":                  {at(40.4, 11.4, 12, 1, ""), day, []Map{flat(12)}, 2, ""},
		"on the edge of the grid":    {at(39.5, 9.5, 12, 1, ""), day, []Map{flat(12)}, 1, ""},
		"outside of the grid":        {at(39.4, 10, 12, 1, ""), day, []Map{flat(12)}, 0, "outside of the grid"},
		"too late":                   {at(40, 10, 18, 1, ""), Window{Within: 5 * time.Hour}, []Map{flat(12)}, 0, "no product in time"},
		"just in time":               {at(40, 10, 17, 1, ""), Window{Within: 5 * time.Hour}, []Map{flat(12)}, 1, ""},
		"the nearer of two, last":    {at(40, 10, 16, 1, ""), day, []Map{flat(12), later}, 10, ""},
		"the nearer of two, first":   {at(40, 10, 14, 1, ""), day, []Map{flat(12), later}, 1, ""},
		"midnight is of the new day": {at(40, 10, 15, 1, ""), day, []Map{flat(12), later}, 10, ""},
		"in whatever order":          {at(40, 10, 15, 1, ""), day, []Map{later, flat(12)}, 10, ""},
		"a gap":                      {at(40, 11, 12, 1, ""), day, []Map{gap}, 0, "no value near"},
		"a gap with a neighbour":     {at(40, 11.1, 12, 1, ""), Window{RadiusKM: 90, Within: time.Hour}, []Map{gap}, 3, ""},
		"a gap, neighbours too far":  {at(40, 11, 12, 1, ""), Window{RadiusKM: 80, Within: time.Hour}, []Map{gap}, 0, "no value near"},
		"a gap, the later map is it": {at(40, 11, 14, 1, ""), day, []Map{gap, later}, 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMatcher([]Observation{tt.obs}, tt.window, field.Transform{})
			for _, one := range tt.maps {
				m.Add(one)
			}
			pairs, passed := m.Pairs()
			switch {
			case tt.want == 0 && (len(pairs) > 0 || passed[tt.why] != 1):
				t.Errorf("pairs %+v, passed over %v, want none because %s", pairs, passed, tt.why)
			case tt.want != 0 && (len(pairs) != 1 || pairs[0].Product != tt.want):
				t.Errorf("pairs %+v (%v), want the product %g", pairs, passed, tt.want)
			}
		})
	}
}

func TestUnitsAreConverted(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		x, want  float64
	}{
		{"degC", "kelvin", 10, 283.15}, {"degree_F", "degC", 50, 10}, {"K", "K", 280, 280}, {"ug/l", "milligram m^-3", 2, 2}, {"g m-3", "mg/m3", 0.001, 1}, {"", "psu", 35, 35},
	} {
		got, changed, err := Convert([]Observation{{Value: tt.x}}, tt.from, tt.to)
		if err != nil || math.Abs(got[0].Value-tt.want) > 1e-9 || changed != (tt.x != tt.want) {
			t.Errorf("%g %s is %v %s (%v), want %g", tt.x, tt.from, got, tt.to, err, tt.want)
		}
	}
	for _, units := range [][2]string{{"degC", "mg m-3"}, {"V", "mg m-3"}} {
		if _, _, err := Convert([]Observation{{Value: 1}}, units[0], units[1]); err == nil || !strings.Contains(err.Error(), "--units") {
			t.Errorf("Convert from %s to %s = %v, want an error with the remedy", units[0], units[1], err)
		}
	}
}

func TestZeroIsNotALogarithm(t *testing.T) {
	m := NewMatcher([]Observation{at(40, 10, 12, 0, ""), at(40, 10, 12, 10, "")}, day, field.Transform{Log10: true, Floor: 0.01})
	m.Add(flat(12))
	pairs, passed := m.Pairs()
	if len(pairs) != 1 || pairs[0].InSitu != 1 || pairs[0].Product != 0 || passed["not positive"] != 1 {
		t.Errorf("pairs %+v, passed over %v", pairs, passed)
	}
}
