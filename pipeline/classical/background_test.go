package classical

import (
	"math"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

func TestClimatologyIsTheGaussianMeanOfTheObservations(t *testing.T) {
	s := coast(cloudy(40, 44, 5, 12))
	e := Climatology(s, 4)
	sigma := smoothCells * s.Grid.StepKM()
	w := s.Grid.Width()
	for _, at := range []int{20*w + 20, 3*w + 40, 39*w + 16} {
		sum, weight := 0.0, 0.0
		x0, y0, z0 := s.Grid.Cartesian(at/w, at%w)
		for f := range s.Frames {
			for c, v := range s.Frames[f].Values {
				if s.observed(f, c) {
					x, y, z := s.Grid.Cartesian(c/w, c%w)
					d2 := (x-x0)*(x-x0) + (y-y0)*(y-y0) + (z-z0)*(z-z0)
					k := math.Exp(-d2 / 2 / sigma / sigma)
					sum += k * float64(v)
					weight += k
				}
			}
		}
		const tolerance = 0.03 // for unit variance: coarse cells, and the cut at three sigma
		if d := math.Abs(float64(e.Mean[at]) - sum/weight); d > tolerance {
			t.Errorf("mean map at cell %d is %v, the weighted mean %v", at, e.Mean[at], sum/weight)
		}
	}
}

func TestSpreadOfTheClimatologyIsThatOfTheObservations(t *testing.T) {
	const n = 40
	high, low := gappy(n), gappy(n)
	for i := range n {
		high[i], low[i] = 12, 8
	}
	e := Climatology(line(2, high, low), 1)
	for i := range n {
		if math.Abs(float64(e.Mean[i])-10) > 1e-4 || math.Abs(float64(e.Sigma[i])-2) > 1e-4 {
			t.Fatalf("cell %d of a field that is 12 one day and 8 the next is %v ± %v", i, e.Mean[i], e.Sigma[i])
		}
	}
}

func TestPersistenceTakesTheLastObservationThatIsYoungEnough(t *testing.T) {
	nan := field.NaN()
	s := line(5,
		[]float32{1, 2, 3, nan},
		[]float32{nan, 5, nan, nan},
		[]float32{nan, nan, 9, nan},
		[]float32{70, 70, 70, 70}, // the future
	)
	e := Persistence(s, 2, 24*time.Hour)
	if e.Mean[1] != 5 || e.Mean[2] != 9 {
		t.Errorf("last observations are %v, want 5 and 9 in the middle", e.Mean)
	}
	clim := Climatology(s, 2)
	for _, i := range []int{0, 3} {
		if e.Mean[i] != clim.Mean[i] || e.Sigma[i] != clim.Sigma[i] {
			t.Errorf("cell %d without a young observation is %v ± %v, want the climatology %v ± %v",
				i, e.Mean[i], e.Sigma[i], clim.Mean[i], clim.Sigma[i])
		}
	}
}

func TestSigmaOfPersistenceIsTheChangeThatTheDataShow(t *testing.T) {
	const n = 50
	days := make([][]float32, 8)
	for d := range days {
		days[d] = gappy(n)
	}
	for i := range n {
		// Cells seen daily change by 1, cells seen every third day by 4.
		for d := range days {
			switch {
			case i < n/2:
				days[d][i] = float32(d % 2)
			case d%3 == 0:
				days[d][i] = float32(d / 3 % 2 * 4)
			}
		}
	}
	days[7] = gappy(n)
	e := Persistence(line(5, days...), 7, 10*24*time.Hour)
	if math.Abs(float64(e.Sigma[0])-1) > 1e-6 {
		t.Errorf("sigma after a day is %v, want the daily change of 1", e.Sigma[0])
	}
	older := Persistence(line(5, append(days, gappy(n), gappy(n))...), 9, 10*24*time.Hour)
	if math.Abs(float64(older.Sigma[n-1])-4) > 1e-6 || older.Sigma[0] < e.Sigma[0] {
		t.Errorf("sigma after three days is %v (and %v), want the three-day change of 4", older.Sigma[n-1], older.Sigma[0])
	}
	seen := Persistence(line(5, days...), 6, 10*24*time.Hour)
	if math.Abs(float64(seen.Sigma[0])-math.Sqrt2/2) > 1e-6 {
		t.Errorf("sigma of a cell seen at the target is %v, want 1/√2", seen.Sigma[0])
	}
}

func TestUnevenGridIsSmoothedAtTrueDistances(t *testing.T) {
	// Two values close together and one as far in cells but ten times as far
	// in kilometres from the cell between them.
	s := Series{Grid: field.Grid{Lat: []float64{0}, Lon: []float64{0, 0.1, 1.1}}}
	s.Frames = []Frame{{Time: noon, Values: []float32{1, field.NaN(), -1}}}
	m := newSmoother(s.Grid, 30)
	sum := m.gather()
	sum[m.coarse(0)], sum[m.coarse(2)] = 1, -1
	got := m.at(m.smooth(sum), 0, 1)
	near, far := 0.1*kilometresPerDegree/30, 1.0*kilometresPerDegree/30
	want := math.Exp(-near*near/2) - math.Exp(-far*far/2)
	if far > reach {
		want = math.Exp(-near * near / 2)
	}
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("smoothed sum is %v, want %v", got, want)
	}
}
