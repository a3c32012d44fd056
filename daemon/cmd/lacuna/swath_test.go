package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
)

// temperature is the truth of the passes: smooth, and warmer by the day.
func temperature(day int, lat, lon float64) float64 {
	return 18 + 2*math.Sin(3*lat) + 1.5*math.Cos(2*lon) + 0.05*float64(day)
}

// writePass writes a pass of a day as a Level-2 file: slanted lines of pixels of
// about a kilometre, some without a place, some under clouds.
func writePass(t *testing.T, folder string, day, pass int) string {
	t.Helper()
	const lines, pixels = 160, 120
	numbers := map[string][]float32{}
	for i := range lines {
		for j := range pixels {
			lat := 43 + 0.009*float64(i) + 0.002*float64(j)
			lon := 30 + float64(pass)*0.7 + 0.013*float64(j) - 0.004*float64(i)
			sst := temperature(day, lat, lon) + 0.3*math.Sin(float64(7919*(i*pixels+j)+day)) // noise of 0.2
			quality := float32(5)
			if (i+13*day)/40%2 == 0 && j > 30 { // cloud, and what is left of it is cold and marked so
				sst, quality = sst-8, 1
			}
			if i == 3 {
				lat, lon = -999, -999
			}
			numbers["lat"], numbers["lon"] = append(numbers["lat"], float32(lat)), append(numbers["lon"], float32(lon))
			numbers["sst"], numbers["quality_level"] = append(numbers["sst"], float32(sst)), append(numbers["quality_level"], quality)
		}
	}
	variable := func(name string, attrs ...netcdf.Attr) netcdf.Var {
		raw, err := binary.Append(nil, binary.LittleEndian, numbers[name])
		if err != nil {
			t.Fatal(err)
		}
		return netcdf.Var{Name: name, Type: "float", Dims: []string{"nj", "ni"}, Raw: raw, Attrs: append(attrs, netcdf.Attr{Name: "_FillValue", Value: []float32{-999}})}
	}
	seconds, err := binary.Append(nil, binary.LittleEndian, []int32{int32(86400*day + 36000 + 6000*pass)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, fmt.Sprintf("202406%02d_pass%d.nc", day+1, pass))
	err = netcdf.Write(path, netcdf.File{
		Dims: []netcdf.Dim{{Name: "time", Len: 1}, {Name: "nj", Len: lines}, {Name: "ni", Len: pixels}},
		Vars: []netcdf.Var{
			{Name: "time", Type: "int", Dims: []string{"time"}, Raw: seconds, Attrs: []netcdf.Attr{{Name: "units", Value: "seconds since 2024-06-01"}}},
			variable("lat", netcdf.Attr{Name: "units", Value: "degrees_north"}), variable("lon", netcdf.Attr{Name: "units", Value: "degrees_east"}),
			variable("sst", netcdf.Attr{Name: "standard_name", Value: "sea_surface_temperature"}, netcdf.Attr{Name: "units", Value: "degC"}),
			variable("quality_level", netcdf.Attr{Name: "flag_meanings", Value: "bad good"}),
		},
		Attrs: []netcdf.Attr{{Name: "processing_level", Value: "L2P"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A folder of Level-2 files is an archive once lacuna grid has binned it: it is
// filled, with the errors that the bins gave.
func TestSwathsAreBinnedAndFilled(t *testing.T) {
	l2, archive, out := t.TempDir(), filepath.Join(t.TempDir(), "l3"), t.TempDir()
	last := ""
	for day := range 6 {
		for pass := range 2 {
			last = writePass(t, l2, day, pass)
		}
	}
	if status, _, stderr := lacuna("fill", last, "-o", out); status != 1 || !strings.Contains(stderr, "it is a swath and no grid") || !strings.Contains(stderr, "lacuna grid IN.nc -o DIR --bbox") {
		t.Fatalf("a swath is filled with the status %d:\n%s", status, stderr)
	}
	status, stdout, stderr := lacuna("grid", l2, "-o", archive, "--bbox", "30,43,31.8,44.4", "--step", "0.05", "--quality", "quality_level >= 4")
	files := strings.Fields(stdout)
	if status != 0 || len(files) != 6 || !strings.HasSuffix(files[5], "l3/20240606_sst_l3.nc") {
		t.Fatalf("status %d, files %v\n%s", status, files, stderr)
	}
	binned, err := testReader(t).Read(t.Context(), files[5], ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkTemperatures(t, binned, func(c int) bool { return binned.Fields[0].Observed(c) }, 0.15)
	if binned.Errors == nil {
		t.Errorf("the errors of the bins are not taken up: %v", binned.Notes)
	}
	status, stdout, stderr = lacuna("fill", files[5], "-o", out, "--history", archive, "--model", "oi")
	if status != 0 {
		t.Fatal(stderr)
	}
	filled, err := testReader(t).Read(t.Context(), strings.TrimSpace(stdout), ingest.Options{Variable: "sst"})
	if err != nil {
		t.Fatal(err)
	}
	before, after := binned.Fields[0].ObservedMask().Count(), filled.Fields[0].ObservedMask().Count()
	if after != filled.Fields[0].Grid.Len() || before > after*9/10 {
		t.Errorf("%d of %d cells were seen, %d are filled", before, filled.Fields[0].Grid.Len(), after)
	}
	checkTemperatures(t, filled, func(c int) bool { lat, _ := filled.Fields[0].Grid.Place(c/36, c%36); return lat < 44 }, 0.5)

	if status, _, stderr := lacuna("grid", l2, "-o", archive); status != 2 || !strings.Contains(stderr, "--bbox WEST,SOUTH,EAST,NORTH or --like FILE is required") {
		t.Errorf("without a box: status %d, %s", status, stderr)
	}
	if status, _, stderr := lacuna("grid", "shwo"); status != 2 || !strings.Contains(stderr, `unknown command "shwo"`) {
		t.Errorf("a word that is no command: status %d, %s", status, stderr)
	}
}

// checkTemperatures checks the root mean square error of some cells.
func checkTemperatures(t *testing.T, g ingest.Granule, some func(c int) bool, most float64) {
	t.Helper()
	f := g.Fields[0]
	sum, n := 0.0, 0.0
	for c, v := range f.Values {
		if lat, lon := f.Grid.Place(c/f.Grid.Width(), c%f.Grid.Width()); some(c) {
			sum, n = sum+math.Pow(float64(v)-temperature(5, lat, lon), 2), n+1
		}
	}
	if rmse := math.Sqrt(sum / n); !(rmse < most) || n < 300 {
		t.Errorf("%g cells have an error of %g, want below %g", n, rmse, most)
	}
}
