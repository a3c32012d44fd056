package covariate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

func axis(first, step float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = first + step*float64(i)
	}
	return out
}

// sampled returns a function of place on a grid.
func sampled(g field.Grid, f func(lat, lon float64) float64) []float32 {
	out := make([]float32, g.Len())
	for i := range out {
		lat, lon := g.Place(i/g.Width(), i%g.Width())
		out[i] = float32(f(lat, lon))
	}
	return out
}

func regridded(t *testing.T, from, to field.Grid, values []float32) []float32 {
	t.Helper()
	r, err := NewRegridder(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return r.Apply(values)
}

// A map that is linear in latitude and longitude is the same on every grid: finer,
// coarser, shifted by a part of a cell, from the north or in the other count of longitudes.
func TestALinearMapIsTheSameOnEveryGrid(t *testing.T) {
	plain := func(lat, lon float64) float64 { return 3 + 0.5*lat - 0.2*lon }
	from := field.Grid{Lat: axis(40, 0.1, 60), Lon: axis(27, 0.1, 80)}
	for name, to := range map[string]field.Grid{
		"finer":          {Lat: axis(41, 0.04, 50), Lon: axis(28, 0.03, 90)},
		"coarser":        {Lat: axis(41, 0.37, 10), Lon: axis(28, 0.29, 12)},
		"shifted":        {Lat: axis(41.033, 0.1, 30), Lon: axis(28.071, 0.1, 30)},
		"from the north": {Lat: axis(45, -0.1, 30), Lon: axis(34, -0.1, 40)},
	} {
		got, want := regridded(t, from, to, sampled(from, plain)), sampled(to, plain)
		for i := range got {
			// A cell is centred by area, which is not quite its middle.
			if math.Abs(float64(got[i]-want[i])) > 2e-3 {
				t.Errorf("%s: cell %d is %g, want %g", name, i, got[i], want[i])
				break
			}
		}
	}
	turned := field.Grid{Lat: axis(41, 0.1, 20), Lon: axis(28-360, 0.1, 20)}
	same := field.Grid{Lat: turned.Lat, Lon: axis(28, 0.1, 20)}
	if a, b := regridded(t, from, turned, sampled(from, plain)), regridded(t, from, same, sampled(from, plain)); !slices.Equal(a, b) {
		t.Error("another count of the longitudes gives another map")
	}
}

// The mean over the area is kept, however fine or coarse the target is.
func TestRegriddingConservesTheMean(t *testing.T) {
	wavy := func(lat, lon float64) float64 {
		return 10 + math.Sin(2*math.Pi*lat/1.5)*math.Cos(2*math.Pi*lon/2) + 0.3*lat
	}
	from := field.Grid{Lat: axis(30.125, 0.25, 80), Lon: axis(0.125, 0.25, 80)}
	values := sampled(from, wavy)
	mean := func(g field.Grid, v []float32, south, north, west, east float64) float64 {
		sum, area := 0.0, 0.0
		for i, x := range v {
			lat, lon := g.Place(i/g.Width(), i%g.Width())
			if lat > south && lat < north && lon > west && lon < east {
				w := math.Cos(lat * math.Pi / 180)
				sum, area = sum+w*float64(x), area+w
			}
		}
		return sum / area
	}
	want := mean(from, values, 32, 46, 2, 16)
	for _, step := range []float64{0.1, 1, 2} {
		to := field.Grid{Lat: axis(32+step/2, step, int(14/step)), Lon: axis(2+step/2, step, int(14/step))}
		if got := mean(to, regridded(t, from, to, values), 0, 90, 0, 180); math.Abs(got-want) > 2e-3*want {
			t.Errorf("at a step of %g the mean is %.5f, want %.5f", step, got, want)
		}
	}
}

// The seam of a grid that goes round does not show, nor is the lattice of a coarse one seen
// on a fine one.
func TestNeitherSeamNorLatticeShows(t *testing.T) {
	wave := func(lat, lon float64) float64 { return math.Sin(lon*math.Pi/90) + lat/30 }
	from := field.Grid{Lat: axis(-9, 2, 10), Lon: axis(1, 2, 180)}
	to := field.Grid{Lat: axis(-3, 0.25, 24), Lon: axis(355, 0.25, 40)} // across Greenwich
	got := regridded(t, from, to, sampled(from, wave))
	steepest := 0.0
	for i := range got {
		if i%to.Width() > 0 {
			steepest = max(steepest, math.Abs(float64(got[i]-got[i-1])))
		}
		lat, lon := to.Place(i/to.Width(), i%to.Width())
		if math.Abs(float64(got[i])-wave(lat, lon)) > 5e-3 {
			t.Fatalf("at %g, %g it is %g, want %g", lat, lon, got[i], wave(lat, lon))
		}
	}
	if most := 0.25 * math.Pi / 90 * 1.05; steepest > most {
		t.Errorf("the steepest step is %g, that of the wave is %g", steepest, most)
	}
}

func TestACellNeedsHalfOfItsArea(t *testing.T) {
	from := field.Grid{Lat: axis(0.05, 0.1, 40), Lon: axis(0.05, 0.1, 40)}
	values := sampled(from, func(_, lon float64) float64 {
		if lon < 1.3 {
			return math.NaN()
		}
		return 7
	})
	to := field.Grid{Lat: axis(0.5, 1, 4), Lon: axis(0.5, 1, 4)}
	got := regridded(t, from, to, values)[4:8]
	if got[0] == got[0] || got[1] != 7 || got[2] != 7 {
		t.Errorf("a row is %v, want a gap, and then the value of what is known", got)
	}
	wide := field.Grid{Lat: axis(0.5, 1, 4), Lon: axis(3.5, 1, 3)} // the last two lie beyond the map
	if got := regridded(t, from, wide, values); got[0] != 7 || got[1] == got[1] {
		t.Errorf("beyond the edge a row is %v", got[:3])
	}
}

func TestGridsThatCannotBeUsedAreNamed(t *testing.T) {
	to := field.Grid{Lat: axis(40, 0.1, 60), Lon: axis(27, 0.1, 80)}
	swapped := field.Grid{Lat: axis(27, 0.1, 80), Lon: axis(40, 0.1, 60)}
	_, err := NewRegridder(swapped, to)
	if err == nil || !strings.Contains(err.Error(), "axes are swapped or shifted") {
		t.Errorf("swapped axes: %v", err)
	}
	lat, lon := make([]float64, 16), make([]float64, 16)
	for i := range lat {
		lat[i], lon[i] = 41+0.1*float64(i/4)+0.05*float64(i%4), 28+0.1*float64(i%4)-0.05*float64(i/4)
	}
	turned, err := field.NewPlane(lat, lon, 4, true, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewRegridder(turned, to); err == nil || !strings.Contains(err.Error(), "cdo remapcon") {
		t.Errorf("a curvilinear covariate: %v", err)
	}
	// The granules themselves may be on such a grid.
	plain := func(lat, lon float64) float64 { return lat - lon/2 }
	got, want := regridded(t, to, turned, sampled(to, plain)), sampled(turned, plain)
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-3 {
			t.Errorf("cell %d of a turned grid is %g, want %g", i, got[i], want[i])
		}
	}
}

func TestTheNearestMapIsNotOfTheFuture(t *testing.T) {
	day := func(d, hour int) time.Time { return time.Date(2024, 5, d, hour, 0, 0, 0, time.UTC) }
	const week = 7 * 24 * time.Hour
	tests := []struct {
		name  string
		times []time.Time
		ahead bool
		most  time.Duration
		want  int
	}{
		{"the same day", []time.Time{day(9, 12), day(10, 12), day(11, 0)}, false, week, 1},
		{"the same date at another hour is no future", []time.Time{day(9, 23), day(10, 23)}, false, week, 1},
		{"the last before", []time.Time{day(7, 12), day(8, 12), day(11, 0)}, false, week, 1},
		{"a later one in delayed mode", []time.Time{day(7, 12), day(8, 12), day(11, 0)}, true, week, 2},
		{"an earlier one that is as near", []time.Time{day(11, 0), day(9, 0)}, true, week, 1},
		{"nothing but the future", []time.Time{day(11, 0), day(12, 0)}, false, week, -1},
		{"too old", []time.Time{day(5, 12)}, false, 4 * 24 * time.Hour, -1},
		{"just not too old", []time.Time{day(6, 0)}, false, 4 * 24 * time.Hour, 0},
		{"none", nil, true, week, -1},
	}
	for _, tt := range tests {
		if got := Nearest(tt.times, day(10, 6), tt.most, tt.ahead); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestTheGradientIsPerKilometre(t *testing.T) {
	g := field.Grid{Lat: axis(40, 0.1, 8), Lon: axis(27, 0.1, 9)}
	values := sampled(g, func(lat, _ float64) float64 { return 2 * lat })
	values[3*9+4] = field.NaN()
	got := Gradient(values, g)
	want := float32(2 / kilometresPerDegree)
	for i, v := range got {
		if missing := i == 3*9+4; missing != (v != v) || !missing && math.Abs(float64(v/want)-1) > 1e-3 {
			t.Errorf("cell %d has the gradient %g, want %g", i, v, want)
		}
	}
}
