package ingest

import (
	"slices"
	"strings"
	"testing"
)

// groupCDL keeps coordinates at the root, maps in groups, and one name in two of
// them.
const groupCDL = `netcdf g { dimensions: lat = 2 ; lon = 3 ;
variables: double lat(lat) ; lat:units = "degrees_north" ; double lon(lon) ; lon:units = "degrees_east" ;
data: lat = 40, 41 ; lon = 10, 11, 12 ;
group: geophysical { dimensions: time = 1 ;
  variables: double time(time) ; time:units = "days since 2024-05-01" ;
  float chl(time, lat, lon) ; chl:standard_name = "mass_concentration_of_chlorophyll_a_in_sea_water" ; chl:units = "mg m-3" ;
  data: time = 0 ; chl = 1, 2, 3, 4, 5, 6 ;
  group: quality { variables: byte flags(lat, lon) ; data: flags = 0, 1, 0, 1, 0, 1 ; } }
group: other { variables: float chl(lat, lon) ; chl:units = "1" ; data: chl = 9, 9, 9, 9, 9, 9 ; } }`

func TestVariablesInGroupsAreRead(t *testing.T) {
	path := ncgen(t, "nc4", "g.nc", groupCDL)
	g := mustRead(t, path, Options{Variable: "chl", Quality: []string{"flags == 0"}})
	f := g.Fields[0]
	if f.Time.Format("2006-01-02") != "2024-05-01" || !slices.Equal(f.Grid.Lat, []float64{40, 41}) || !slices.Equal(f.Grid.Lon, []float64{10, 11, 12}) {
		t.Errorf("time %v, grid %v", f.Time, f.Grid)
	}
	for i, want := range []float32{1, 0, 3, 0, 5, 0} {
		if refused := want == 0; refused != g.Rejected[0][i] || !refused && f.Values[i] != want {
			t.Errorf("cell %d is %v, refused %v; want %v", i, f.Values[i], g.Rejected[0][i], want)
		}
	}
	if !slices.ContainsFunc(g.Notes, func(n string) bool { return strings.Contains(n, "groups geophysical, geophysical/quality, other") }) {
		t.Errorf("the notes say nothing of the groups: %q", g.Notes)
	}
	if v, ok := g.Source.Var("chl"); !ok || len(v.Raw) != 24 {
		t.Errorf("the product would carry %+v", v)
	}
}

func TestAGroupIsReadWithThoseAboveIt(t *testing.T) {
	path := ncgen(t, "nc4", "20240501.nc", groupCDL)
	g := mustRead(t, path, Options{Group: "other"})
	if got := g.Fields[0].Values; g.Source.Variable != "chl" || !slices.Equal(got, []float32{9, 9, 9, 9, 9, 9}) {
		t.Errorf("variable %s has %v", g.Source.Variable, got)
	}
	g = mustRead(t, path, Options{Variable: "other_chl"}) // the name that it has among all groups
	if got := g.Fields[0].Values[0]; got != 9 {
		t.Errorf("other_chl begins with %v", got)
	}
	_, err := reader(t, "decode").Read(t.Context(), path, Options{Group: "geo"})
	if b := wantBad(t, err); !strings.Contains(b.Problem, `no group "geo"`) || !strings.Contains(b.Remedy, "geophysical, other") {
		t.Errorf("%v", err)
	}
}

func TestWhatStandsAtTheRootIsMeantBeforeWhatLiesInAGroup(t *testing.T) {
	path := ncgen(t, "nc4", "20240501.nc", `netcdf r { dimensions: lat = 2 ; lon = 3 ;
variables: double lat(lat) ; lat:units = "degrees_north" ; double lon(lon) ; lon:units = "degrees_east" ; float v(lat, lon) ;
data: lat = 40, 41 ; lon = 10, 11, 12 ; v = 1, 2, 3, 4, 5, 6 ;
group: other { variables: float v(lat, lon) ; float w(lat, lon) ; data: v = 9, 9, 9, 9, 9, 9 ; w = 8, 8, 8, 8, 8, 8 ; } }`)
	if g := mustRead(t, path, Options{}); g.Source.Variable != "v" || g.Fields[0].Values[5] != 6 {
		t.Errorf("read is %s, its last value %v", g.Source.Variable, g.Fields[0].Values[5])
	}
	if g := mustRead(t, path, Options{Variable: "w"}); g.Fields[0].Values[5] != 8 {
		t.Errorf("w has %v", g.Fields[0].Values[5])
	}
	if g := mustRead(t, path, Options{Variable: "v", Group: "other"}); g.Fields[0].Values[5] != 9 {
		t.Errorf("v of the group has %v, that of the root above it", g.Fields[0].Values[5])
	}
}
