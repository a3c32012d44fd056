package netcdf

import (
	"math"
	"testing"

	"lacuna/internal/cdl"
)

func TestPackingStoresTheNearestAllowedNumber(t *testing.T) {
	kelvin := []Attr{{Name: "scale_factor", Value: []float64{0.01}}, {Name: "add_offset", Value: []float64{273.15}}, {Name: "_FillValue", Value: []int16{-32768}}}
	plus := func(attrs []Attr, more ...Attr) []Attr { return append(append([]Attr(nil), attrs...), more...) }
	tests := []struct {
		name     string
		typ      string
		attrs    []Attr
		physical float64
		want     float64 // stored
	}{
		{"zero", "short", kelvin, 273.15, 0},
		{"rounded up", "short", kelvin, 283.156, 1001},
		{"rounded down", "short", kelvin, 283.154, 1000},
		{"below the offset", "short", kelvin, 271.35, -180},
		{"clamped to the type", "short", kelvin, 1000, 32767},
		{"clamped to the type and off the fill value", "short", kelvin, -1000, -32767},
		{"clamped to valid_max", "short", plus(kelvin, Attr{Name: "valid_max", Value: []int16{4500}}), 400, 4500},
		{"clamped to valid_min", "short", plus(kelvin, Attr{Name: "valid_min", Value: []int16{-300}}), 200, -300},
		{"clamped to valid_range", "short", plus(kelvin, Attr{Name: "valid_range", Value: []int16{-300, 4500}}), 200, -300},
		{"limits in physical units", "short", plus(kelvin, Attr{Name: "valid_min", Value: []float64{270.15}}, Attr{Name: "valid_max", Value: []float32{318.15}}), 200, -300},
		{"limits that exclude everything are ignored", "short", plus(kelvin, Attr{Name: "valid_range", Value: []int16{10, -10}}), 274.15, 100},
		{"not the fill value by accident", "byte", []Attr{{Name: "_FillValue", Value: []int8{5}}}, 5, 4},
		{"not the missing value by accident", "byte", []Attr{{Name: "_FillValue", Value: []int8{5}}, {Name: "missing_value", Value: []int8{4}}}, 5, 3},
		{"unsigned bytes", "byte", []Attr{{Name: "_Unsigned", Value: "true"}, {Name: "_FillValue", Value: []int8{-1}}}, 200, 200},
		{"unsigned fill value", "byte", []Attr{{Name: "_Unsigned", Value: "true"}, {Name: "_FillValue", Value: []int8{-1}}}, 300, 254},
		{"negative scale", "short", []Attr{{Name: "scale_factor", Value: []float64{-0.5}}, {Name: "_FillValue", Value: []int16{-32768}}}, 3, -6},
		{"float as it is", "float", []Attr{{Name: "_FillValue", Value: []float32{-999}}}, 0.1, float64(float32(0.1))},
		{"float clamped", "float", []Attr{{Name: "valid_min", Value: []float32{0.01}}}, 0.001, float64(float32(0.01))},
		{"float limits of another type", "float", []Attr{{Name: "valid_max", Value: []float64{100}}}, 250, 100},
		{"float off its fill value", "float", []Attr{{Name: "_FillValue", Value: []float32{0}}}, 0, math.SmallestNonzeroFloat32},
		{"minus zero is the fill value zero", "float", []Attr{{Name: "_FillValue", Value: []float32{0}}}, math.Copysign(0, -1), math.SmallestNonzeroFloat32},
		{"double as it is", "double", nil, 0.1, 0.1},
		{"int64", "int64", []Attr{{Name: "scale_factor", Value: []float64{1e-9}}}, 2, 2e9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _, err := newPacking(Var{Name: "x", Type: tt.typ, Attrs: tt.attrs}, nil)
			if err != nil {
				t.Fatal(err)
			}
			cell := make([]byte, p.size)
			p.put(cell, tt.physical)
			if got := number(cell, p.typ); got != tt.want {
				t.Errorf("put(%v) stored %v, want %v", tt.physical, got, tt.want)
			}
		})
	}
}

func TestAFillValueIsFoundThatIsNoObservation(t *testing.T) {
	everywhere := func(int) bool { return true }
	tests := []struct {
		name string
		v    Var
		want any
	}{
		{"default of the library", Var{Type: "float", Raw: raw("float", 1, 2)}, []float32{9.9692099683868690e+36}},
		{"default is taken", Var{Type: "short", Raw: raw("short", -32767, 2)}, []int16{-32768}},
		{"defaults and limits are taken", Var{Type: "byte", Raw: raw("byte", -127, -128, 127, -126)}, []int8{-125}},
		{"missing_value serves", Var{Type: "short", Raw: raw("short", 1), Attrs: []Attr{{Name: "missing_value", Value: []int16{-9}}}}, []int16{-9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, v, err := newPacking(tt.v, everywhere)
			if err != nil {
				t.Fatal(err)
			}
			got := cdl.Numbers(value(v.Attrs, "_FillValue"))
			if want := cdl.Numbers(tt.want); len(got) != 1 || got[0] != want[0] {
				t.Errorf("_FillValue = %v, want %v", got, want)
			}
		})
	}
	full := make([]byte, 256)
	for i := range full {
		full[i] = byte(i)
	}
	if _, _, err := newPacking(Var{Type: "ubyte", Raw: full}, everywhere); err == nil {
		t.Error("a variable that uses all 256 numbers got a fill value")
	}
}

func TestLimitsTakeTheTypeOfTheirVariable(t *testing.T) {
	v := Var{Name: "SST", Type: "float", Attrs: []Attr{
		{Name: "missing_value", Value: []float64{99999}}, {Name: "valid_min", Value: []int16{-2}}, {Name: "actual_range", Value: []float64{1, 2}},
	}}
	_, mended, err := newPacking(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"missing_value", "valid_min", "_FillValue"} {
		if got := cdl.TypeOf(value(mended.Attrs, name)); got != "float" {
			t.Errorf("%s has type %q, want float", name, got)
		}
	}
	if value(mended.Attrs, "actual_range") != nil {
		t.Error("actual_range is kept, though filled pixels may lie outside")
	}
	packed := Var{Name: "x", Type: "short", Attrs: []Attr{{Name: "missing_value", Value: []float64{1e20}}, {Name: "_FillValue", Value: []int16{-1}}}}
	if _, mended, _ = newPacking(packed, nil); value(mended.Attrs, "missing_value") != nil {
		t.Error("a missing value that the type cannot hold is kept")
	}
}

func TestNumbersSurviveEveryType(t *testing.T) {
	for _, typ := range []string{"byte", "ubyte", "short", "ushort", "int", "uint", "int64", "uint64", "float", "double"} {
		lo, hi := limits(typ)
		for _, x := range []float64{lo, 0, 1, hi} {
			if got := number(appendNumber(nil, typ, x), typ); got != x {
				t.Errorf("%s: %v came back as %v", typ, x, got)
			}
		}
		if got := cdl.TypeOf(attrFromRaw(raw(typ, 1, 2), typ)); got != typ {
			t.Errorf("attribute of type %s came back as %s", typ, got)
		}
	}
}
