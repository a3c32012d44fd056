package fill

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
)

func numbers(t *testing.T, data any) []byte {
	t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// dailyGranule returns a granule of two by two cells at noon of a day of June
// 2024, with bounds of its time and a variable of its quality.
func dailyGranule(t *testing.T, d int) ingest.Granule {
	t.Helper()
	grid, err := field.NewGrid([]float64{40, 41}, []float64{10, 11})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2024, 6, d, 12, 0, 0, 0, time.UTC)
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	hours := noon.Sub(epoch).Hours()
	maps := []string{"time", "lat", "lon"}
	return ingest.Granule{
		Name: noon.Format("20060102") + ".nc", SHA256: noon.Format("20060102") + "00000000000000000000000000000000000000000000000000000000",
		Fields: []field.Field{{Grid: grid, Time: noon, Values: []float32{1, 2, 3, field.NaN()}}},
		Source: ingest.Source{
			Variable: "SST", Dims: []ingest.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: 2}, {Name: "lon", Len: 2}, {Name: "nv", Len: 2}},
			Attrs: []ingest.Attr{
				{Name: "license", Value: "free"},
				{Name: "sensor", Value: "A"},
				{Name: "orbit", Value: []int32{int32(d)}},
				{Name: "history", Value: "made"},
				{Name: "title", Value: "SST of " + noon.Format(time.DateOnly)},
			},
			Vars: []ingest.Var{
				{
					Name: "time", Type: "double", Dims: maps[:1], Raw: numbers(t, []float64{hours}),
					Attrs: []ingest.Attr{{Name: "units", Value: "hours since 2024-01-01"}, {Name: "bounds", Value: "time_bnds"}},
				},
				{Name: "time_bnds", Type: "double", Dims: []string{"time", "nv"}, Raw: numbers(t, []float64{hours - 12, hours + 12})},
				{Name: "lat", Type: "double", Dims: maps[1:2], Raw: numbers(t, grid.Lat), Attrs: []ingest.Attr{{Name: "units", Value: "degrees_north"}}},
				{Name: "lon", Type: "double", Dims: maps[2:], Raw: numbers(t, grid.Lon), Attrs: []ingest.Attr{{Name: "units", Value: "degrees_east"}}},
				{
					Name: "SST", Type: "short", Dims: maps, Raw: numbers(t, []int16{1, 2, 3, -9}),
					Attrs: []ingest.Attr{{Name: "_FillValue", Value: []int16{-9}}, {Name: "units", Value: "degree_Celsius"}},
				},
				{Name: "quality", Type: "byte", Dims: maps, Raw: numbers(t, []int8{5, 5, 5, 0})},
			},
		},
	}
}

func TestAbsentGranuleIsLikeItsNeighboursWithoutAnObservation(t *testing.T) {
	around := []ingest.Granule{dailyGranule(t, 4), dailyGranule(t, 2)}
	third := time.Date(2024, 6, 3, 12, 0, 0, 0, time.UTC)
	around[0].Bounds = [][2]time.Time{{third.Add(12 * time.Hour), third.Add(36 * time.Hour)}} // those of the fourth
	g, err := Absent("2024/20240603.nc", third, around)
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "20240603.nc" || g.SHA256 != "" || !g.Empty() || len(g.Fields) != 1 || !g.Fields[0].Time.Equal(third) {
		t.Errorf("it is %s (%s), empty %v, at %v", g.Name, g.SHA256, g.Empty(), field.Times(g.Fields))
	}
	if want := [2]time.Time{third.Add(-12 * time.Hour), third.Add(12 * time.Hour)}; len(g.Bounds) != 1 || g.Bounds[0] != want {
		t.Errorf("it covers %v, want %v", g.Bounds, want)
	}
	noon := third.Sub(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).Hours()
	for name, want := range map[string]any{
		"time": []float64{noon}, "time_bnds": []float64{noon - 12, noon + 12}, "lat": []float64{40, 41},
		"SST": []int16{-9, -9, -9, -9}, "quality": []int8{-127, -127, -127, -127},
	} {
		if v, _ := g.Source.Var(name); !slices.Equal(v.Raw, numbers(t, want)) {
			t.Errorf("%s has the bytes %v, want those of %v", name, v.Raw, want)
		}
	}
	var names []string
	for _, a := range g.Source.Attrs {
		names = append(names, a.Name)
	}
	if !slices.Equal(names, []string{"license", "sensor"}) {
		t.Errorf("its attributes are %v, want those that all days share", names)
	}
	if v, _ := around[0].Source.Var("SST"); !slices.Equal(v.Raw, numbers(t, []int16{1, 2, 3, -9})) {
		t.Error("the neighbour has changed")
	}
}

func TestProductOfAnAbsentGranuleSaysSo(t *testing.T) {
	around := []ingest.Granule{dailyGranule(t, 2), dailyGranule(t, 4)}
	third := time.Date(2024, 6, 3, 12, 0, 0, 0, time.UTC)
	g, err := Absent("20240603.nc", third, around)
	if err != nil {
		t.Fatal(err)
	}
	fill := infer.DefaultConfig()
	fill.Method, fill.FutureDays = "climatology", 5
	job := Job{Dataset: "sea", Granule: g, History: around, Fill: fill, Revision: 1, Created: third}
	absent, err := Analyse(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	if absent.Observed != 0 || absent.Product.Input() != netcdf.NoGranule || len(absent.Product.Inputs) != 2 || absent.Product.Mode != netcdf.Delayed {
		t.Errorf("observed %v, input %s of %d files, %s", absent.Observed, absent.Product.Input(), len(absent.Product.Inputs), absent.Product.Mode)
	}
	if sigma := absent.Product.Sigma[0]; !(sigma >= 0) || absent.Product.Flags[0] != netcdf.Interpolated {
		t.Errorf("the first cell has sigma %v and the flags %#x", sigma, absent.Product.Flags[0])
	}
	file, err := absent.Product.File()
	if err != nil {
		t.Fatalf("it cannot be written: %v", err)
	}
	said := map[string]any{}
	for _, a := range file.Attrs {
		said[a.Name] = a.Value
	}
	if said["lacuna_input"] != "no-granule" || said["time_coverage_start"] == nil || said["license"] != "free" {
		t.Errorf("its attributes are %v", said)
	}
	job.Granule = dailyGranule(t, 3)
	job.Granule.Fields[0].Values = slices.Repeat([]float32{field.NaN()}, 4)
	dark, err := Analyse(t.Context(), job, nil)
	if err != nil || dark.Product.Input() != netcdf.CloudedOut {
		t.Errorf("a granule without an observation: %s, %v", dark.Product.Input(), err)
	}
	job.Granule = dailyGranule(t, 3)
	seen, err := Analyse(t.Context(), job, nil)
	if err != nil || seen.Product.Input() != netcdf.Seen {
		t.Errorf("a granule with observations: %s, %v", seen.Product.Input(), err)
	}
}
