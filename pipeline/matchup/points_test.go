package matchup

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/internal/cdl"
)

func raw[T any](t *testing.T, values ...T) []byte {
	t.Helper()
	out, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// profiles are two profiles of a station, packed, as Copernicus has them.
func profiles(t *testing.T) cdl.File {
	t.Helper()
	along := []string{"TIME", "DEPTH"}
	return cdl.File{
		Dims:  []cdl.Dim{{Name: "TIME", Len: 2}, {Name: "DEPTH", Len: 3}, {Name: "LATITUDE", Len: 1}, {Name: "LONGITUDE", Len: 2}},
		Attrs: []cdl.Attr{{Name: "platform_code", Value: "6901 "}},
		Vars: []cdl.Var{
			{Name: "TIME", Type: "double", Dims: []string{"TIME"}, Attrs: []cdl.Attr{{Name: "units", Value: "days since 1950-01-01T00:00:00Z"}}, Raw: raw(t, 27149.25, 27150.5)},
			{Name: "LATITUDE", Type: "float", Dims: []string{"LATITUDE"}, Raw: raw[float32](t, 43.5)},
			{Name: "LONGITUDE", Type: "float", Dims: []string{"LONGITUDE"}, Raw: raw[float32](t, 330, 331)},
			{Name: "DEPH", Type: "float", Dims: along, Raw: raw[float32](t, 1, 5, 50, 2, 6, 60)},
			{Name: "TEMP", Type: "short", Dims: along, Attrs: []cdl.Attr{
				{Name: "units", Value: "degrees_C"}, {Name: "scale_factor", Value: []float32{0.5}}, {Name: "add_offset", Value: []float64{10}}, {Name: "_FillValue", Value: []int16{-99}},
			}, Raw: raw[int16](t, 2, 4, 1, -99, 6, 1)},
			{Name: "TEMP_QC", Type: "byte", Dims: along, Raw: raw[int8](t, 1, 4, 1, 1, 2, 1)},
		},
	}
}

func TestProfilesAreRead(t *testing.T) {
	table, err := FromFile(profiles(t), []string{"analysed_sst"}, Columns{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []Observation{
		{Time: time.Date(2024, 5, 1, 6, 0, 0, 0, time.UTC), Lat: 43.5, Lon: -30, Value: 11, Platform: "6901"},
		{Time: time.Date(2024, 5, 2, 12, 0, 0, 0, time.UTC), Lat: 43.5, Lon: -29, Value: 13, Platform: "6901"},
	}
	if len(table.Observations) != 2 || table.Observations[0] != want[0] || table.Observations[1] != want[1] || table.Units != "degrees_C" {
		t.Errorf("read %+v in %s, want %+v", table.Observations, table.Units, want)
	}
	if p := table.Passed; p["too deep"] != 2 || p["no value"] != 1 || p["not flagged good"] != 1 {
		t.Errorf("passed over %v", p)
	}
}

func TestListNamesItsPlatforms(t *testing.T) {
	obs := []string{"obs"}
	f := cdl.File{
		Dims: []cdl.Dim{{Name: "obs", Len: 2}, {Name: "letters", Len: 4}},
		Vars: []cdl.Var{
			{Name: "time", Type: "int", Dims: obs, Attrs: []cdl.Attr{{Name: "units", Value: "hours since 2024-05-01"}}, Raw: raw[int32](t, 1, 2)},
			{Name: "lat", Type: "double", Dims: obs, Raw: raw(t, 40.0, 41)},
			{Name: "lon", Type: "double", Dims: obs, Raw: raw(t, 10.0, math.NaN())},
			{Name: "station", Type: "char", Dims: []string{"obs", "letters"}, Raw: []byte("B1  B22\x00")},
			{Name: "chl", Type: "double", Dims: obs, Raw: raw(t, 0.1, 0.2)},
		},
	}
	table, err := FromFile(f, []string{"CHL"}, Columns{}, 10)
	if err != nil || len(table.Observations) != 1 || table.Observations[0].Platform != "B1" || table.Passed["no place"] != 1 {
		t.Errorf("read %+v, passed over %v, %v", table.Observations, table.Passed, err)
	}
	f.Vars[3] = cdl.Var{Name: "wmo", Type: "int", Dims: obs, Raw: raw[int32](t, 1501234, 2)}
	if table, err = FromFile(f, []string{"CHL"}, Columns{}, 10); err != nil || table.Observations[0].Platform != "1501234" {
		t.Errorf("read %+v, %v", table.Observations, err)
	}
	f.Vars[1].Dims, f.Vars[1].Raw = []string{"letters"}, raw(t, 1.0, 2, 3, 4)
	if _, err := FromFile(f, []string{"CHL"}, Columns{}, 10); err == nil || !strings.Contains(err.Error(), "lat (letters) has not the dimension of chl (obs)") {
		t.Errorf("FromFile() = %v of latitudes of another length", err)
	}
}
