package classical

import (
	"math"
	"testing"

	"lacuna/internal/geo"
	"lacuna/pipeline/field"
)

// onto returns the series on a grid whose cells are given by their places: those
// of its own grid, moved by a rotation of the globe.
func onto(t *testing.T, s Series, r geo.Rotated) Series {
	t.Helper()
	n, w := s.Grid.Len(), s.Grid.Width()
	lat, lon := make([]float64, n), make([]float64, n)
	for c := range lat {
		lat[c], lon[c] = r.Place(s.Grid.Lat[c/w], s.Grid.Lon[c%w])
	}
	g, err := field.NewPlane(lat, lon, w, s.Grid.Lat[0] < s.Grid.Lat[1], false)
	if err != nil {
		t.Fatal(err)
	}
	out := clone(s)
	out.Grid = g
	return out
}

// A sea does not know its coordinates: moved over a pole or across the date line
// it is filled as before, but for cells that are equally far from two observations
// and have room for one. The tolerance, of unit variance, is theirs.
func TestASeaThatIsMovedIsFilledAsBefore(t *testing.T) {
	s := cloudy(24, 30, 3, 11)
	middle := s.Grid.Lat[12]
	for name, pole := range map[string]geo.Rotated{
		"nowhere":              {PoleLat: 90, PoleLon: 180},
		"onto the north pole":  {PoleLat: middle, PoleLon: 10, Turn: s.Grid.Lon[15]},
		"across the date line": {PoleLat: 60, PoleLon: 180, Turn: s.Grid.Lon[15]},
	} {
		moved := onto(t, s, pole)
		for method, fill := range methods(t, s.Grid) {
			const tolerance = 0.03 // with sectors by the compass it is 0.08 at the pole
			if d := rootMeanSquare(fill(s, 2), fill(moved, 2)); !(d <= tolerance) {
				t.Errorf("%s, %s: estimates differ by %g", name, method, d)
			}
		}
	}
}

func rootMeanSquare(a, b Estimate) float64 {
	sum := 0.0
	for i := range a.Mean {
		m, s := float64(a.Mean[i]-b.Mean[i]), float64(a.Sigma[i]-b.Sigma[i])
		sum += m*m + s*s
	}
	return math.Sqrt(sum / float64(len(a.Mean)))
}

// Round a ring of cells the first column is as near to the last as to the second:
// it does not matter where the ring begins.
func TestARingIsFilledAcrossItsEnds(t *testing.T) {
	const rotate = 10
	band := func(s Series) Series { // circles close to a pole have no step along them
		s = clone(s)
		s.Grid = field.Grid{Lat: s.Grid.Lat[4:16], Lon: s.Grid.Lon}
		for f := range s.Frames {
			s.Frames[f].Values = s.Frames[f].Values[4*40 : 16*40]
		}
		return onto(t, s, geo.Rotated{PoleLat: 30, PoleLon: 70})
	}
	s, turned := band(globe(0)), band(globe(rotate))
	if !s.Grid.Periodic() {
		t.Fatal("the ring does not close")
	}
	w := s.Grid.Width()
	for name, method := range methods(t, s.Grid) {
		a, b := method(s, 2), method(turned, 2)
		back := gaps(len(a.Mean))
		for c := range b.Mean {
			to := c/w*w + ((c%w+rotate-20)%w+w)%w
			back.Mean[to], back.Sigma[to] = b.Mean[c], b.Sigma[c]
		}
		const tolerance = 0.03 // ties are decided by rounding; where the ends are open it is ten times as much
		if d := rootMeanSquare(a, back); !(d <= tolerance) {
			t.Errorf("%s differs by %g where the ring begins elsewhere", name, d)
		}
	}
}
