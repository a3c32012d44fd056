package work

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
	"lacuna/publish/netcdf"
)

const side = 12 // cells of a small map

// sstDay writes a map of sea surface temperature whose observations come with an
// error for some of them, and reads it.
func sstDay(t *testing.T, w *Worker, day int) ingest.Granule {
	t.Helper()
	const missing = -1
	axis := make([]float64, side)
	sst, sigma, quality := make([]float32, side*side), make([]float32, side*side), make([]byte, side*side)
	for i := range axis {
		axis[i] = 35 + 0.05*float64(i)
	}
	for i := range sst {
		sst[i], sigma[i], quality[i] = missing, missing, 5
		if (i+day)%3 != 0 {
			sst[i] = 290 + float32(math.Sin(float64(i)/9))
		}
		if i%2 == 0 {
			sigma[i] = 0.2 + float32(i)/1000
		}
	}
	onGrid := []string{"lat", "lon"}
	fillValue := netcdf.Attr{Name: "_FillValue", Value: []float32{missing}}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("202404%02d_sst.nc", day))
	err := netcdf.Write(path, netcdf.File{
		Dims: []netcdf.Dim{{Name: "lat", Len: side}, {Name: "lon", Len: side}},
		Vars: []netcdf.Var{
			netcdf.Axis("lat", "degrees_north", axis), netcdf.Axis("lon", "degrees_east", axis),
			{Name: "sst", Type: "float", Dims: onGrid, Raw: netcdf.Floats(sst), Attrs: []netcdf.Attr{
				fillValue,
				{Name: "units", Value: "kelvin"},
				{Name: "standard_name", Value: "sea_surface_temperature"},
				{Name: "ancillary_variables", Value: "quality_flag"},
			}},
			{Name: "sst_uncertainty", Type: "float", Dims: onGrid, Raw: netcdf.Floats(sigma), Attrs: []netcdf.Attr{fillValue, {Name: "units", Value: "K"}}},
			{Name: "quality_flag", Type: "byte", Dims: onGrid, Raw: quality},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.Reader.Read(t.Context(), path, ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// From the granule to the product: a map without time gets one, its errors are
// the uncertainty of what it observed, and its quality is carried along.
func TestTheErrorsOfAGranuleAreInItsProduct(t *testing.T) {
	w := newTestWorker(t)
	g, before := sstDay(t, w, 2), sstDay(t, w, 1)
	sea := make(field.Mask, side*side)
	for i := range sea {
		sea[i] = true
	}
	made := time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)
	outcome, err := fill.Analyse(t.Context(), fill.Job{
		Dataset: "sst", Granule: g, History: []ingest.Granule{before}, Sea: sea, Fill: infer.DefaultConfig(), Revision: 1, Created: made,
		Widening: skill.Widening{Days: 7},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome.Product.CalibrationDays; got != 7 {
		t.Errorf("the product says that its calibration comes from %d days, want 7", got)
	}
	path := filepath.Join(t.TempDir(), "product.nc")
	if err := netcdf.WriteProduct(path, outcome.Product); err != nil {
		t.Fatal(err)
	}
	raw := func(name string) []byte {
		t.Helper()
		product, err := w.Reader.Read(t.Context(), path, ingest.Options{Variable: name, Transform: "identity"})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := product.Source.Var(name)
		if len(v.Dims) != 3 || v.Dims[0] != "time" {
			t.Errorf("%s runs along %v, want time first", name, v.Dims)
		}
		return v.Raw
	}
	number := func(raw []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) }
	sigma, given, flags := raw("sst_uncertainty"), raw("sst_uncertainty_input"), raw("flags")
	own := 0
	for i, v := range g.Fields[0].Values {
		switch observed := v == v; {
		case observed && i%2 == 0:
			own++
			if flags[i] != netcdf.OwnError || math.Abs(float64(number(sigma, i)-number(given, i))) > 1e-3*float64(number(given, i)) {
				t.Fatalf("observed cell %d: flags %d, uncertainty %g, the input gives %g", i, flags[i], number(sigma, i), number(given, i))
			}
		case observed && (flags[i] != 0 || !(number(sigma, i) > 0)):
			t.Fatalf("observed cell %d: flags %d, uncertainty %g, want the fitted one", i, flags[i], number(sigma, i))
		case !observed && (flags[i] != netcdf.Interpolated || !(number(sigma, i) > 0)):
			t.Fatalf("gap %d: flags %d, uncertainty %g", i, flags[i], number(sigma, i))
		}
	}
	if own < side {
		t.Fatalf("%d observations have an error of their own: the test says little", own)
	}
	if quality := raw("quality_flag"); len(quality) != side*side || quality[3] != 5 {
		t.Errorf("the quality of the input is %v", quality)
	}
}
