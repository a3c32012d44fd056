package simulate

import (
	"math"
	"testing"

	"lacuna/pipeline/field"
)

func TestTurbulenceHasUnitVarianceAndForgets(t *testing.T) {
	m := turbulence{longestKM: 400, shortestKM: 50, slope: 0.5, memoryDays: 4}.seeded(9)
	a, b, c := m.at(100), m.at(100.5), m.at(140)
	var sum, square, soon, later float64
	const n = 40000
	for k := range n {
		// Points spread over the sphere by the golden angle.
		z := 1 - 2*(float64(k)+0.5)/n
		sin, cos := math.Sincos(float64(k) * 2.399963)
		r := math.Sqrt(1 - z*z)
		x, y := earthRadiusKM*r*cos, earthRadiusKM*r*sin
		v := a.value(x, y, earthRadiusKM*z)
		sum += v
		square += v * v
		soon += v * b.value(x, y, earthRadiusKM*z)
		later += v * c.value(x, y, earthRadiusKM*z)
	}
	if mean, variance := sum/n, square/n; math.Abs(mean) > 0.03 || math.Abs(variance-1) > 0.1 {
		t.Errorf("mean %.3f, variance %.3f", mean, variance)
	}
	if soon/square < 0.9 || math.Abs(later/square) > 0.1 {
		t.Errorf("correlation %.2f after an eighth of the memory, %.2f after ten times", soon/square, later/square)
	}
}

func TestTurbulenceDriftsEast(t *testing.T) {
	m := turbulence{longestKM: 300, shortestKM: 100, slope: 1, memoryDays: 1e9, eastKMPerDay: 50, latDegrees: 0}.seeded(9)
	at := func(day, km float64) float64 {
		sin, cos := math.Sincos(km / earthRadiusKM)
		return m.at(day).value(earthRadiusKM*cos, earthRadiusKM*sin, 0)
	}
	for km := 0.0; km < 1000; km += 130 {
		if d := math.Abs(at(10, km+500) - at(0, km)); d > 1e-6 {
			t.Errorf("after 10 days the field 500 km east of %g km differs by %g", km, d)
		}
	}
}

func TestDistanceToLandOfAnIsland(t *testing.T) {
	var lat, lon []float64
	for i := range 41 {
		lat, lon = append(lat, -2+0.1*float64(i)), append(lon, 10+0.1*float64(i))
	}
	g, err := field.NewGrid(lat, lon)
	if err != nil {
		t.Fatal(err)
	}
	sea := make(field.Mask, g.Len())
	for i := range sea {
		sea[i] = i != 20*41+20
	}
	c := newChart(g, sea)
	for i := range 41 {
		for j := range 41 {
			want := 0.1 * kmPerDegree * math.Hypot(float64(i-20), float64(j-20))
			if got := float64(c.coastKM[i*41+j]); got < want*0.995 || got > want*1.085 {
				t.Fatalf("cell %d, %d is %.1f km from the island, want %.1f", i, j, got, want)
			}
		}
	}
}

func TestDistanceToLandCrossesTheSeam(t *testing.T) {
	w := newWorld(t, Config{Product: "smos-sss", Height: 60, Width: 84})
	c := w.chart
	for i := range c.h {
		a, b := float64(c.coastKM[i*c.w]), float64(c.coastKM[i*c.w+c.w-1])
		if math.Abs(a-b) > math.Abs(c.eastKM[i])+1 {
			t.Errorf("row %d: %.0f km from land on one side of the date line, %.0f on the other", i, a, b)
		}
	}
}

func TestEddiesHaveTheSpeedAskedFor(t *testing.T) {
	for _, r := range recipes() {
		w := newWorld(t, Config{Product: r.Name, Seed: 4, Height: r.region.demoHeight * 2 / 3, Width: r.region.demoWidth * 2 / 3})
		n, c := w.basin.nodes, w.chart
		sum, count := 0.0, 0.0
		for i, f := range w.basin.epochs(4000, 4000)[0].flow {
			row, col := min(i/n.w*n.step, c.h-1), w.basin.nodeColumn(i%n.w)
			if float64(c.coastKM[row*c.w+col]) > 2*r.current.coastKM && math.Abs(c.grid.Lat[row]) < 70 {
				v, u := float64(f[0])*c.northKM[row], float64(f[1])*c.eastKM[row]
				sum += u*u + v*v
				count++
			}
		}
		rms := math.Sqrt(sum / count)
		t.Logf("%s: %.1f km a day", r.Name, rms)
		// Coarse grids smooth the smallest eddies away.
		if want := r.current.speedKMPerDay; rms < want*0.5 || rms > want*1.4 {
			t.Errorf("%s: water moves %.1f km a day, want about %g", r.Name, rms, want)
		}
	}
}

func TestWaterDoesNotCrossTheCoast(t *testing.T) {
	w := newWorld(t, Config{Product: "blk-chl", Seed: 4})
	b := w.basin
	epochs := b.epochs(4000, 4004)
	ashore, all := 0, 0
	for i := 0; i < b.h; i += 2 {
		for j := 0; j < b.w; j += 2 {
			// Straits and lagoons of a cell or two have no interior.
			if float64(b.coastKM[i*b.w+j]) < 12 {
				continue
			}
			row, col := b.rowInside(float64(i)), b.colInside(float64(j))
			for k := range 20 {
				row, col = b.back(epochs[4-k/4], 0.5, row, col)
			}
			all++
			if !b.sea[int(row+0.5)*b.w+int(col+0.5)] {
				ashore++
			}
		}
	}
	if share := float64(ashore) / float64(all); share > 0.02 {
		t.Errorf("%.1f %% of the water came from land within ten days", 100*share)
	}
}

func TestOrbitsAreSunSynchronous(t *testing.T) {
	s := sensor{hour: 10, revsPerDay: 14 + 7.0/27, swathKM: 1270}
	for day := 8000; day < 8030; day++ {
		passes := s.passes(day)
		if n := len(passes); n != 14 && n != 15 {
			t.Fatalf("%d passes on one day", n)
		}
		for _, p := range passes {
			local := 24*(p.day-float64(day)) + p.nodeLon/15
			if d := math.Remainder(local-10, 24); math.Abs(d) > 1e-6 {
				t.Fatalf("the equator is crossed at %.2f h local time", local)
			}
		}
	}
}

func TestSwathIsAsWideAsTheSensorAndSlanted(t *testing.T) {
	up := sensor{hour: 6, ascending: true, revsPerDay: 14.4, swathKM: 1000}.passes(8000)[3]
	down := sensor{hour: 6, revsPerDay: 14.4, swathKM: 1000}.passes(8000)[3]
	if n, s := up.track(40).lon, up.track(-40).lon; n >= s {
		t.Errorf("an ascending pass runs from %g to %g degrees east", s, n)
	}
	if n, s := down.track(40).lon, down.track(-40).lon; s >= n {
		t.Errorf("a descending pass runs from %g to %g degrees east", n, s)
	}
	// The nearest point of the track to a place at the edge of the swath must
	// be half a swath away.
	edge := up.track(30)
	lon := edge.lon + 500/edge.kmPerLo
	nearest := math.Inf(1)
	for lat := 20.0; lat < 40; lat += 0.01 {
		dx := math.Remainder(lon-up.track(lat).lon, 360) * kmPerDegree * math.Cos((lat+30)/2*math.Pi/180)
		nearest = min(nearest, math.Hypot(dx, (lat-30)*kmPerDegree))
	}
	if math.Abs(nearest-500) > 15 {
		t.Errorf("the edge of the swath is %.0f km from the track, want 500", nearest)
	}
	if a := edge.across(lon, 1000); math.Abs(a-1) > 1e-9 {
		t.Errorf("place across the swath is %g, want 1", a)
	}
}

func TestEaseRowsHaveEqualAreaAndTheKnownEdge(t *testing.T) {
	lat := easeLatitudes(584)
	// The upper edge of the global 25 km grid is published as 85.0445664 N;
	// that of 584 rows is a little lower, as 292 cells do not fill it.
	if edge := easeLatitude(7314540.83); math.Abs(edge-85.0445664) > 1e-4 {
		t.Errorf("7314540.83 m is %.6f degrees north, want 85.0445664", edge)
	}
	if math.Abs(lat[0]+lat[583]) > 1e-9 || lat[0] < 80 || lat[0] < lat[1] {
		t.Errorf("rows run from %g to %g", lat[0], lat[583])
	}
	// Equal area: the band between rows shrinks as the parallels do.
	thin, thick := lat[60]-lat[61], lat[291]-lat[292]
	ratio := thick * math.Cos(lat[291]*math.Pi/180) / (thin * math.Cos((lat[60]+lat[61])/2*math.Pi/180))
	if math.Abs(ratio-1) > 0.01 {
		t.Errorf("areas differ by the factor %g", ratio)
	}
}
