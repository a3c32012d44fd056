package gridpin

import (
	"testing"

	"lacuna/pipeline/field"
)

func TestAGridIsNamedByShapeAndEnds(t *testing.T) {
	axis := func(from, to float64, n int) (x []float64) {
		for i := range n {
			x = append(x, from+(to-from)*float64(i)/float64(n-1))
		}
		return x
	}
	grid := field.Grid{Lat: axis(47, 41, 61), Lon: axis(27, 42, 151)} // a tenth of a degree, from the north
	pin := Pin{Shape: Shape{61, 151}, Lat: [2]float64{41, 47}, Lon: [2]float64{27, 42}}
	for name, c := range map[string]struct {
		pin  Pin
		want bool
	}{
		"as it is":              {pin, true},
		"from the north":        {Pin{pin.Shape, [2]float64{47, 41}, pin.Lon}, true},
		"rounded":               {Pin{pin.Shape, [2]float64{41.004, 47}, pin.Lon}, true},
		"half a cell off":       {Pin{pin.Shape, [2]float64{41.05, 47.05}, pin.Lon}, false},
		"another shape":         {Pin{Shape{60, 151}, pin.Lat, pin.Lon}, false},
		"another end of a line": {Pin{pin.Shape, pin.Lat, [2]float64{27, 43}}, false},
	} {
		if got := c.pin.Has(grid); got != c.want {
			t.Errorf("%s: Has() = %v, want %v", name, got, c.want)
		}
	}
	across := field.Grid{Lat: grid.Lat, Lon: axis(170, 190, 151)}
	for _, lon := range [][2]float64{{170, 190}, {170, -170}, {-170, 170}, {-190, -170}} {
		if !(Pin{pin.Shape, pin.Lat, lon}).Has(across) {
			t.Errorf("a grid across the date line is not known by its ends %v", lon)
		}
	}
	if (Pin{pin.Shape, pin.Lat, [2]float64{170, 180}}).Has(across) || Of(across).Lon != [2]float64{170, 190} {
		t.Errorf("a grid across the date line is pinned as %v", Of(across))
	}
	if got := Of(grid); got != pin {
		t.Errorf("Of() = %v, want %v", got, pin)
	}
	for _, bad := range []Pin{{}, {Shape: pin.Shape, Lat: [2]float64{41, 95}, Lon: pin.Lon}, {Shape: pin.Shape, Lat: pin.Lat}} {
		if bad.Validate() == nil {
			t.Errorf("Validate() takes %v", bad)
		}
	}
	if err := pin.Validate(); err != nil {
		t.Error(err)
	}
	var shape Shape
	for text, ok := range map[string]bool{"18000x36000": true, "2x2": true, "": false, "61": false, "61x": false, "61x151x2": false, "-1x5": false, "1x5": false, "5x200001": false} {
		if err := shape.UnmarshalText([]byte(text)); (err == nil) != ok || ok && shape.String() != text {
			t.Errorf("shape %q is read as %v, %v", text, shape, err)
		}
	}
}
