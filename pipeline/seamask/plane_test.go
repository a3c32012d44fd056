package seamask

import (
	"testing"

	"lacuna/internal/geo"
	"lacuna/pipeline/field"
)

// A plane with the places of a regular grid has its mask, but for coasts that half
// fill a cell.
func TestTheMaskOfAPlaneIsThatOfItsPlaces(t *testing.T) {
	for name, g := range map[string]field.Grid{
		"Black Sea, 4 km":         {Lat: axis(40.02, 0.04, 190), Lon: axis(27.02, 0.05, 300)},
		"across the date line":    {Lat: axis(52.5, 0.2, 60), Lon: axis(170.1, 0.2, 120)},
		"finer than the mask":     {Lat: axis(44.0, 0.004, 100), Lon: axis(33.0, 0.004, 120)},
		"coarse, round the globe": {Lat: axis(-80, 2, 80), Lon: axis(0, 2.5, 144)},
	} {
		w := g.Width()
		lat, lon := make([]float64, g.Len()), make([]float64, g.Len())
		for c := range lat {
			lat[c], lon[c] = g.Lat[c/w], field.Wrap(g.Lon[c%w])
		}
		plane, err := field.NewPlane(lat, lon, w, true, false)
		if err != nil {
			t.Fatal(err)
		}
		want, got := builtin(t, g.Lat, g.Lon), field.Mask(nil)
		if got, err = Builtin(plane); err != nil {
			t.Fatal(err)
		}
		differ := 0
		for c := range got {
			if got[c] != want[c] {
				differ++
			}
		}
		if most := len(got) / 100; differ > most {
			t.Errorf("%s: %d of %d cells differ", name, differ, len(got))
		}
	}
}

func TestAPolarGridHasGreenlandAndThePoleInTheSea(t *testing.T) {
	attrs := map[string]float64{"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": -45}
	p, err := geo.Of(geo.PolarStereographic, func(name string) (float64, bool) { v, ok := attrs[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	const side, stepM = 161, 25_000
	lat, lon := make([]float64, side*side), make([]float64, side*side)
	for c := range lat {
		lat[c], lon[c] = p.Place(float64(80-c/side)*stepM, float64(c%side-80)*stepM)
	}
	g, err := field.NewPlane(lat, lon, side, false, false)
	if err != nil {
		t.Fatal(err)
	}
	sea, err := Builtin(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		lat, lon float64
		sea      bool
	}{
		"north pole": {90, 0, true}, "Greenland": {75, -40, false}, "Barents Sea": {75, 38, true}, "Svalbard": {78.6, 16, false},
		"Chukchi Sea, at the date line": {73, 180, true},
	} {
		y, x := p.Project(tt.lat, tt.lon)
		if at := (80-int(y/stepM+80.5)+80)*side + int(x/stepM+80.5); sea[at] != tt.sea {
			t.Errorf("%s: sea is %v", name, sea[at])
		}
	}
}
