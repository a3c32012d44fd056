package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/products"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"
)

var nan = float32(math.NaN())

func TestEveryFormatReadsTheSame(t *testing.T) {
	formats := map[string]string{
		"classic": "NetCDF-3 classic", "64-bit-offset": "NetCDF-3 64-bit offset", "cdf5": "NetCDF-3 64-bit data",
		"nc4": "NetCDF-4", "nc7": "NetCDF-4 classic model",
	}
	for kind, name := range formats {
		t.Run(kind, func(t *testing.T) {
			path := fixture(t, kind, "plankton")
			g := mustRead(t, path, Options{})
			if g.Format != name {
				t.Errorf("format %q, want %q", g.Format, name)
			}
			checkPlankton(t, g)
			file, err := os.ReadFile(path)
			must(t, err)
			if sum := sha256.Sum256(file); g.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("SHA256 %s, want %x", g.SHA256, sum)
			}
		})
	}
}

// checkPlankton compares a granule with testdata/plankton.cdl as read by eye.
func checkPlankton(t *testing.T, g Granule) {
	t.Helper()
	grid := field.Grid{Lat: []float64{40, 41, 42.5}, Lon: []float64{27, 28, 29, 30}}
	want := []field.Field{
		{Grid: grid, Time: time.Date(2024, 3, 26, 0, 0, 0, 0, time.UTC), Values: []float32{
			0.5, 0.01, 100, nan, // 0.01 and 100 are the ends of the valid range
			nan, nan, nan, nan,
			1, 2, 3, nan,
		}},
		{Grid: grid, Time: time.Date(2024, 3, 27, 0, 0, 0, 0, time.UTC), Values: []float32{
			nan, nan, nan, nan,
			nan, 7.25, nan, nan,
			nan, nan, nan, 8,
		}},
	}
	if d := cmp.Diff(want, g.Fields, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("fields differ (-want +got):\n%s", d)
	}
	rejected := make(field.Mask, 12)
	rejected[3], rejected[11] = true, true // 0.005 and 101
	if d := cmp.Diff([]field.Mask{rejected, make(field.Mask, 12)}, g.Rejected); d != "" {
		t.Errorf("rejected differ (-want +got):\n%s", d)
	}
	if g.Product != "chlorophyll" || g.Transform != (field.Transform{Log10: true, Floor: 0.001}) {
		t.Errorf("product %q, transform %+v", g.Product, g.Transform)
	}
}

func TestSourceCarriesTheStoredNumbers(t *testing.T) {
	g := mustRead(t, fixture(t, "nc4", "plankton"), Options{})
	var vars []string
	for _, v := range g.Source.Vars {
		vars = append(vars, v.Name)
	}
	if want := []string{"time", "lat", "lon", "lat_bnds", "crs", "CHL", "QC"}; !slices.Equal(vars, want) {
		t.Errorf("carries %v, want %v", vars, want)
	}
	dims := []Dim{{Name: "time", Len: 2, Unlimited: true}, {Name: "lat", Len: 3, Unlimited: false}, {Name: "lon", Len: 4, Unlimited: false}, {Name: "bnds", Len: 2, Unlimited: false}}
	if d := cmp.Diff(dims, g.Source.Dims); d != "" {
		t.Errorf("dimensions differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Attr{{Name: "title", Value: "a small map"}, {Name: "levels", Value: []int32{1, 2, 3}}}, g.Source.Attrs); d != "" {
		t.Errorf("attributes differ (-want +got):\n%s", d)
	}
	chl, _ := g.Source.Var("CHL")
	stored := viewed[float32](chl.Raw)
	if len(stored) != 24 || stored[3] != 0.005 || stored[4] != -999 || !math.IsNaN(float64(stored[5])) || !math.IsInf(float64(stored[6]), 1) {
		t.Errorf("stored numbers of CHL changed: %v", stored)
	}
	if chl.Type != "float" || !slices.Equal(chl.Dims, []string{"time", "lat", "lon"}) {
		t.Errorf("CHL is %s%v", chl.Type, chl.Dims)
	}
	if !slices.ContainsFunc(chl.Attrs, func(a Attr) bool { return a.Name == "valid_min" && cmp.Equal(a.Value, []float32{0.01}) }) {
		t.Errorf("attributes of CHL are %v", chl.Attrs)
	}
	if lat, _ := g.Source.Var("lat"); !slices.Equal(viewed[float32](lat.Raw), []float32{40, 41, 42.5}) {
		t.Errorf("latitude changed: % x", lat.Raw)
	}
}

func TestPackedKelvinWithQualityLevel(t *testing.T) {
	g := mustRead(t, fixture(t, "nc4", "sst"), Options{})
	f := g.Fields[0]
	if g.Product != products.GHRSST || g.Transform.Log10 {
		t.Errorf("product %s, transform %v", g.Product, g.Transform)
	}
	if want := time.Date(2017, 5, 14, 5, 30, 0, 0, time.UTC); !f.Time.Equal(want) {
		t.Errorf("time %v, want %v", f.Time, want)
	}
	if !slices.Equal(f.Grid.Lat, []float64{35, 34.5}) || !slices.Equal(f.Grid.Lon, []float64{10, 11, 12}) {
		t.Errorf("grid %v", f.Grid)
	}
	// 1500 is 288.15 K; 4600 exceeds valid_range in stored numbers; -32000 and
	// -32001 are missing, -32767 is the default fill; 2000 has quality 3.
	if d := cmp.Diff([]float32{288.15, nan, nan, nan, nan, nan}, f.Values, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("values differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff(field.Mask{false, true, false, false, false, true}, g.Rejected[0]); d != "" {
		t.Errorf("rejected differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff(field.Mask{true, true, false, true, false, true}, f.Sea); d != "" {
		t.Errorf("sea differs (-want +got):\n%s", d)
	}
	v, _ := g.Source.Var("sea_surface_temperature")
	if !slices.ContainsFunc(v.Attrs, func(a Attr) bool { return a.Name == "comment" && a.Value == "as a string" }) {
		t.Errorf("string attribute is lost: %v", v.Attrs)
	}
	if _, ok := g.Source.Var("depth"); !ok {
		t.Error("the coordinate of the singleton depth is not carried")
	}
}

func TestQualityRules(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	tests := []struct {
		name     string
		rules    []string
		rejected []int // cells of both frames beyond those out of range
	}{
		{"equal", []string{"QC == 0"}, []int{9, 10, 23}}, // 10 has no quality: not known to be good
		{"several must all hold", []string{"QC < 4", "QC != 1"}, []int{9, 10, 23}},
		{"bits of a mask that serves all times", []string{"flags & 6 == 0"}, []int{9, 17}},
		{"bits in hex", []string{"flags&0x8!=0x8"}, []int{8}},
		{"at least", []string{"QC >= 0"}, []int{10}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := mustRead(t, path, Options{Quality: tt.rules})
			var got []int
			for i := range 24 {
				if i != 3 && i != 11 && g.Rejected[i/12][i%12] {
					got = append(got, i)
					if g.Fields[i/12].Observed(i % 12) {
						t.Errorf("cell %d is rejected and still has a value", i)
					}
				}
			}
			if !slices.Equal(got, tt.rejected) {
				t.Errorf("rejected %v, want %v", got, tt.rejected)
			}
		})
	}
}

func TestOptionsOverrideWhatTheFileSays(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	g := mustRead(t, path, Options{Transform: "identity", Range: &[2]float64{0.4, 2}})
	if g.Transform.Log10 {
		t.Error("the transform of the options is not used")
	}
	if got := field.Summarise(g.Fields[0].Values, g.Fields[1].Values); got.N != 3 || got.Min != 0.5 || got.Max != 2 {
		t.Errorf("got %d values in %g..%g, want 3 in 0.5..2", got.N, got.Min, got.Max)
	}
	if g := mustRead(t, path, Options{Variable: "MICRO"}); g.Source.Variable != "MICRO" || g.Product != "" {
		t.Errorf("read %s as %q", g.Source.Variable, g.Product)
	}
	product := "cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D"
	if g := mustRead(t, path, Options{Product: product, Variable: "MICRO"}); !g.Transform.Log10 || g.Product != product {
		t.Errorf("read MICRO as %q with %v", g.Product, g.Transform)
	}
}

func TestDatasetIsKnownByFileNameEvenWhileInterim(t *testing.T) {
	cdl, err := os.ReadFile("testdata/plankton.cdl")
	must(t, err)
	path := ncgen(t, "nc4", "20241021_cmems_obs-oc_med_bgc-plankton_myint_l3-multi-1km_P1D.nc", string(cdl))
	if g := mustRead(t, path, Options{}); g.Product != "cmems_obs-oc_med_bgc-plankton_my_l3-multi-1km_P1D" {
		t.Errorf("product %q", g.Product)
	}
}

func TestReadSeaTakesMasksOfAllKinds(t *testing.T) {
	grid := field.Grid{Lat: []float64{1, 2}, Lon: []float64{3, 4}}
	cdl := `netcdf m { dimensions: lat = 2 ; lon = 2 ;
variables: double lat(lat) ; double lon(lon) ; byte NAME(lat, lon) ; ATTRS
data: lat = 1, 2 ; lon = 3, 4 ; NAME = DATA ; }`
	tests := []struct{ name, variable, attrs, data string }{
		{"named sea", "sea", "", "1, 0, 0, 1"},
		{"named mask", "mask", "", "1, 0, 0, 1"},
		{"mask that says 1 is land", "mask", `mask:long_name = "1 = land" ;`, "0, 1, 1, 0"},
		{"CF sea", "m", `m:standard_name = "sea_binary_mask" ;`, "1, 0, 0, 1"},
		{"CF land", "m", `m:standard_name = "land_binary_mask" ;`, "0, 1, 1, 0"},
		{"flag values", "mask", `mask:flag_values = 0b, 5b ; mask:flag_meanings = "land sea" ;`, "5, 0, 0, 5"},
		{"flag masks", "mask", `mask:flag_masks = 1b, 2b, 4b ; mask:flag_meanings = "water land lake" ;`, "1, 2, 6, 1"},
		{"only land is flagged", "mask", `mask:flag_masks = 2b, 4b ; mask:flag_meanings = "land ice" ;`, "4, 2, 6, 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.NewReplacer("NAME", tt.variable, "ATTRS", tt.attrs, "DATA", tt.data).Replace(cdl)
			mask, err := reader(t, "decode").ReadSea(t.Context(), ncgen(t, "classic", "m.nc", text), grid)
			must(t, err)
			if d := cmp.Diff(field.Mask{true, false, false, true}, mask); d != "" {
				t.Errorf("mask differs (-want +got):\n%s", d)
			}
		})
	}
	t.Run("of another grid", func(t *testing.T) {
		text := strings.NewReplacer("NAME", "sea", "ATTRS", "", "DATA", "1, 0, 0, 1").Replace(cdl)
		_, err := reader(t, "decode").ReadSea(t.Context(), ncgen(t, "classic", "m.nc", text), field.Grid{Lat: []float64{1, 2}, Lon: []float64{3, 4.5}})
		if b := wantBad(t, err); !strings.Contains(b.Problem, "grid") {
			t.Errorf("got %v", b)
		}
	})
}

func TestSmallestMemoryLimitIsEnoughForAGranule(t *testing.T) {
	if raceEnabled() {
		t.Skip("the race detector takes more memory than the limit allows")
	}
	runtime.LockOSThread() // HDF5 is quiet on its first thread only
	path := blkGranule(t)
	g, err := reader(t, "decode", func(c *Config) { c.MemoryMiB = minMemoryMiB }).Read(t.Context(), path, Options{})
	must(t, err)
	if f := g.Fields[0]; f.Grid.Height() != 790 || f.Grid.Width() != 1101 || g.Product != "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D" {
		t.Errorf("read %v as %s", f.Grid, g.Product)
	}
}

// A reader that reads often keeps a child ready; it must be as good as any
// other, and its death must not be blamed on the next file.
func TestSpareChildrenDecodeAndMayDie(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	r := reader(t, "decode")
	for i := range 4 {
		g, err := r.Read(t.Context(), path, Options{})
		must(t, err)
		checkPlankton(t, g)
		r.standby.mu.Lock()
		spare := r.standby.spare
		r.standby.mu.Unlock()
		if (spare != nil) != (i > 0) {
			t.Fatalf("after %d reads there is a spare child: %v", i+1, spare != nil)
		}
		if i == 2 {
			spare.kill()
			_, _ = io.Copy(io.Discard, spare.stdout) // until it is gone
		}
	}
	r.standby.dismiss()
	if r.standby.spare != nil || r.standby.template != nil {
		t.Error("the spare child or its template is still there")
	}
}

func TestReaderServesManyAtOnce(t *testing.T) {
	path := fixture(t, "classic", "plankton")
	r := reader(t, "decode")
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			granule, err := r.Read(t.Context(), path, Options{})
			if err == nil {
				checkPlankton(t, granule)
			}
			return err
		})
	}
	must(t, g.Wait())
}
