package daemon

import (
	"strings"
	"testing"

	"lacuna/pipeline/field"
)

func TestThePinnedGridIsTheOnlyOne(t *testing.T) {
	d := newDays(t)
	d.deliver(t, "g")
	d.b.once(t)
	named := d.grid(t).Pin
	d.deliver(t, "ooo")
	d.b.once(t)
	d.want(t, "appp") // most have the other
	cfg, err := parseConfig("lacuna.yaml", []byte("datasets:\n  - name: sea\n    archive: {dir: "+d.b.archive()+"}\n    grid: "+named+"\n"))
	if err != nil {
		t.Fatalf("%s, as it is shown, is not taken: %v", named, err)
	}
	d.b.cfg.Datasets[0].Grid = cfg.Datasets[0].Grid
	d.b.once(t)
	d.want(t, "appp") // nothing came that has it
	d.deliver(t, "g")
	d.b.once(t)
	d.want(t, "paaap")
	d.deliver(t, "oooooo")
	d.b.once(t)
	d.want(t, "paaapaaaaaa")
	s := d.grid(t)
	if s.Why != "the configuration names it" || !s.Settled || s.Pinned != named {
		t.Errorf("the grid is %+v", s)
	}
	d.b.operate(t, func(o *Operations) error {
		aside, err := o.Quarantine(t.Context(), "sea")
		if len(aside) != 9 || !strings.Contains(aside[0].Reason, "is configured as") {
			t.Errorf("set aside: %+v", aside)
		}
		return err
	})
}

func TestAGridIsNamedByShapeAndEnds(t *testing.T) {
	axis := func(from, to float64, n int) (x []float64) {
		for i := range n {
			x = append(x, from+(to-from)*float64(i)/float64(n-1))
		}
		return x
	}
	grid := field.Grid{Lat: axis(47, 41, 61), Lon: axis(27, 42, 151)} // a tenth of a degree, from the north
	pin := PinnedGrid{Shape: Shape{61, 151}, Lat: [2]float64{41, 47}, Lon: [2]float64{27, 42}}
	for name, c := range map[string]struct {
		pin  PinnedGrid
		want bool
	}{
		"as it is":              {pin, true},
		"from the north":        {PinnedGrid{pin.Shape, [2]float64{47, 41}, pin.Lon}, true},
		"rounded":               {PinnedGrid{pin.Shape, [2]float64{41.004, 47}, pin.Lon}, true},
		"half a cell off":       {PinnedGrid{pin.Shape, [2]float64{41.05, 47.05}, pin.Lon}, false},
		"another shape":         {PinnedGrid{Shape{60, 151}, pin.Lat, pin.Lon}, false},
		"another end of a line": {PinnedGrid{pin.Shape, pin.Lat, [2]float64{27, 43}}, false},
	} {
		if got := c.pin.has(grid); got != c.want {
			t.Errorf("%s: has() = %v, want %v", name, got, c.want)
		}
	}
	if got := pinOf(grid); got != pin {
		t.Errorf("pinOf() = %v, want %v", got, pin)
	}
	for _, bad := range []PinnedGrid{{}, {Shape: pin.Shape, Lat: [2]float64{41, 95}, Lon: pin.Lon}, {Shape: pin.Shape, Lat: pin.Lat}} {
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
