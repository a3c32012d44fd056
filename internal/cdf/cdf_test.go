package cdf

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lacuna/internal/cdl"
)

func sample(t *testing.T) cdl.File {
	t.Helper()
	f := cdl.File{
		Dims:  []cdl.Dim{{Name: "time", Len: 1, Unlimited: true}, {Name: "lat", Len: 3}, {Name: "lon", Len: 5}},
		Attrs: []cdl.Attr{{Name: "title", Value: "sea"}, {Name: "empty", Value: ""}},
	}
	add := func(name string, dims []string, numbers any, attrs ...cdl.Attr) {
		raw, err := binary.Append(nil, binary.LittleEndian, numbers)
		if err != nil {
			t.Fatal(err)
		}
		f.Vars = append(f.Vars, cdl.Var{Name: name, Type: cdl.TypeOf(numbers), Dims: dims, Attrs: attrs, Raw: raw})
	}
	add("time", []string{"time"}, []int64{1 << 40}, cdl.Attr{Name: "units", Value: "seconds since 1970-01-01"})
	add("lat", []string{"lat"}, []float64{40, 41, 42.5})
	add("lon", []string{"lon"}, []float32{1, 2, 3, 4, 5})
	var values []int16
	var flags []uint8
	for i := range 15 {
		values, flags = append(values, int16(i*1000-7000)), append(flags, uint8(240+i))
	}
	add("chl", []string{"time", "lat", "lon"}, values, cdl.Attr{Name: "_FillValue", Value: []int16{-32768}}, cdl.Attr{Name: "flags", Value: []uint8{1, 2, 3}})
	add("flag", []string{"time", "lat", "lon"}, flags)
	add("wide", []string{"lat"}, []uint64{1, 1 << 63, 3})
	return f
}

func TestTheFileHasTheSizeThatWasSaidAndAlwaysTheSameBytes(t *testing.T) {
	f := sample(t)
	bare := cdl.File{Dims: f.Dims, Attrs: f.Attrs}
	for _, v := range f.Vars {
		v.Raw = nil
		bare.Vars = append(bare.Vars, v)
	}
	size, err := Size(bare)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Encode(f)
	if err != nil || int64(len(first)) != size {
		t.Fatalf("Encode: %d bytes, %v; Size said %d", len(first), err, size)
	}
	if second, err := Encode(f); err != nil || !bytes.Equal(first, second) {
		t.Errorf("two files of one content differ, %v", err)
	}
}

func TestNetCDFReadsWhatWasWritten(t *testing.T) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON does not name a Python; make test sets it")
	}
	file, err := Encode(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.nc")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", `
import sys, netCDF4, numpy as np
d = netCDF4.Dataset(sys.argv[1]); d.set_auto_mask(False)
assert d.data_model == "NETCDF3_64BIT_DATA", d.data_model
assert d.title == "sea" and d.empty == ""
assert d["time"][:].tolist() == [2**40] and d["time"].units == "seconds since 1970-01-01"
assert d["lat"][:].tolist() == [40, 41, 42.5] and d["lon"][:].tolist() == [1, 2, 3, 4, 5]
assert d["chl"][:].tolist() == [[[1000 * (5 * y + x) - 7000 for x in range(5)] for y in range(3)]]
assert d["chl"]._FillValue == -32768 and d["chl"].flags.tolist() == [1, 2, 3]
assert d["flag"][:].ravel().tolist() == list(range(240, 255))
assert d["wide"][:].tolist() == [1, 2**63, 3] and d["wide"].dtype == np.uint64
`, path).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNumbersThatDoNotFitAreRefused(t *testing.T) {
	for name, edit := range map[string]func(*cdl.File){
		"too few numbers":  func(f *cdl.File) { f.Vars[3].Raw = f.Vars[3].Raw[2:] },
		"no such type":     func(f *cdl.File) { f.Vars[3].Type = "string" },
		"no such dim":      func(f *cdl.File) { f.Vars[3].Dims = []string{"depth"} },
		"an odd attribute": func(f *cdl.File) { f.Attrs = append(f.Attrs, cdl.Attr{Name: "x", Value: 3}) },
	} {
		f := sample(t)
		edit(&f)
		if _, err := Encode(f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
