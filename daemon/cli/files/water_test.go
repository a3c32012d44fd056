package files

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/onboard"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
	"lacuna/publish/netcdf/compliance"
)

// A region is a made-up series of sea surface temperatures: values and clouds are
// functions of day, row and column, whatever the coordinates say.
type region struct {
	lat, lon []float64 // as they are stored
	plane    bool      // stored as lat(y, x) and lon(y, x)
	tilt     float64   // by how much a row of such coordinates climbs, in degrees a column
	days     int
	water    func(i, j int) bool
	clear    func(day, i, j int) bool
}

func truth(day, i, j int) float64 {
	return 14 + 3*math.Sin(float64(j)/6) + 2*math.Cos(float64(i)/5) + 0.05*float64(day)
}

// write writes a file for each day and returns their folder and the last of them.
func (r region) write(t *testing.T) (folder, last string) {
	t.Helper()
	folder = t.TempDir()
	for day := range r.days {
		last = filepath.Join(folder, fmt.Sprintf("202406%02d_sst.nc", day+1))
		var sst []float64
		for i := range r.lat {
			for j := range r.lon {
				v := -999.0
				if r.water(i, j) && r.clear(day, i, j) {
					v = truth(day, i, j)
				}
				sst = append(sst, v)
			}
		}
		f := netcdf.File{
			Dims: []netcdf.Dim{{Name: "time", Len: 1}, {Name: "y", Len: len(r.lat)}, {Name: "x", Len: len(r.lon)}},
			Vars: append(r.coordinates(),
				netcdf.Var{Name: "time", Type: "double", Dims: []string{"time"}, Raw: stored("double", float64(day)), Attrs: []netcdf.Attr{{Name: "units", Value: "days since 2024-06-01"}}},
				netcdf.Var{Name: "sst", Type: "float", Dims: []string{"time", "y", "x"}, Raw: stored("float", sst...), Attrs: []netcdf.Attr{
					{Name: "standard_name", Value: "sea_surface_temperature"}, {Name: "units", Value: "degC"}, {Name: "_FillValue", Value: []float32{-999}},
				}}),
		}
		if err := netcdf.Write(last, f); err != nil {
			t.Fatal(err)
		}
	}
	return folder, last
}

func (r region) coordinates() []netcdf.Var {
	north, east := []netcdf.Attr{{Name: "units", Value: "degrees_north"}}, []netcdf.Attr{{Name: "units", Value: "degrees_east"}}
	if !r.plane {
		return []netcdf.Var{
			{Name: "lat", Type: "float", Dims: []string{"y"}, Attrs: north, Raw: stored("float", r.lat...)},
			{Name: "lon", Type: "float", Dims: []string{"x"}, Attrs: east, Raw: stored("float", r.lon...)},
		}
	}
	var lat, lon []float64
	for _, y := range r.lat {
		for j, x := range r.lon {
			lat, lon = append(lat, y+r.tilt*float64(j)), append(lon, x)
		}
	}
	return []netcdf.Var{
		{Name: "lat", Type: "float", Dims: []string{"y", "x"}, Attrs: north, Raw: stored("float", lat...)},
		{Name: "lon", Type: "float", Dims: []string{"y", "x"}, Attrs: east, Raw: stored("float", lon...)},
	}
}

func stored(typ string, x ...float64) []byte {
	var raw []byte
	for _, v := range x {
		if typ == "float" {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		} else {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	}
	return raw
}

func steps(from, step float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = from + step*float64(i)
	}
	return x
}

// filled is a product as a user reads it.
type filled struct {
	field.Field
	path    string
	flags   []float32
	stderr  string
	seaMask string
	lon     ingest.Var
}

// fillLast fills the last day of a region with the others as history.
func fillLast(t *testing.T, r region, args ...string) filled {
	t.Helper()
	folder, last := r.write(t)
	stdout, stderr, err := clitest.Run(t, fillCommand(), append([]string{last, "-o", t.TempDir(), "--history", folder, "--model", "oi"}, args...)...)
	if err != nil {
		t.Fatal(err, stderr)
	}
	reader, err := cli.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) ingest.Granule {
		g, err := reader.Read(t.Context(), strings.TrimSpace(stdout), ingest.Options{Variable: name})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := read("sst")
	out := filled{path: strings.TrimSpace(stdout), Field: g.Fields[0], flags: read("flags").Fields[0].Values, stderr: stderr}
	out.lon, _ = g.Source.Var("lon")
	for _, a := range g.Source.Attrs {
		if text, ok := a.Value.(string); ok && a.Name == "lacuna_sea_mask" {
			out.seaMask = text
		}
	}
	return out
}

// stripes lets every third stripe of three rows through the clouds, which move on.
func stripes(day, i, _ int) bool { return (i+day)/3%3 == 0 }

func TestALakeIsFilledByTheMaskThatItsDaysShow(t *testing.T) {
	lake := region{
		lat: steps(46.8, 0.08, 24), lon: steps(-89, 0.12, 28), days: 12, // Lake Superior, which is land to the built-in mask
		water: func(i, j int) bool { y, x := float64(i)-11.5, float64(j)-13.5; return y*y/81+x*x/121 < 1 },
		clear: stripes,
	}
	got := fillLast(t, lake)
	sum, n := 0.0, 0.0
	for c, v := range got.Values {
		i, j := c/28, c%28
		if got.flags[c] == 2 {
			sum, n = sum+math.Pow(float64(v)-truth(11, i, j), 2), n+1
		}
		switch water := lake.water(i, j); {
		case !water && (v == v || got.flags[c] != 1):
			t.Fatalf("cell %d, %d of the land is %g with the flags %v", i, j, v, got.flags[c])
		case water && lake.clear(11, i, j) != (got.flags[c] == 0) || water && v != v:
			t.Fatalf("cell %d, %d of the lake is %g with the flags %v", i, j, v, got.flags[c])
		}
	}
	if rmse := math.Sqrt(sum / n); !(rmse < 0.7) { // the lake varies by 2.6
		t.Errorf("%g cells of the lake are filled with an error of %g", n, rmse)
	}
	for _, want := range []string{"the built-in sea mask calls 100 % of the observed cells land", "learned from 12 days, 2024-06-01 to 2024-06-12 instead"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("standard error has no %q:\n%s", want, got.stderr)
		}
	}
	if !strings.HasPrefix(got.seaMask, "learned: the cells that were observed on at least one of 12 days") {
		t.Errorf("the product says %q of its sea mask", got.seaMask)
	}

	if got := fillLast(t, lake, "--mask", "builtin"); !strings.Contains(got.stderr, "where no gap is filled: set the sea mask to learned") {
		t.Errorf("with the built-in mask nothing is filled, and nobody is told:\n%s", got.stderr)
	}
}

// The twin of a region has the same maps under other coordinates: what fills one
// must fill the other.
func checkTwins(t *testing.T, what string, a, b filled, tolerance float64) {
	t.Helper()
	gaps := 0
	for c := range a.Values {
		x, y := float64(a.Values[c]), float64(b.Values[c])
		if a.flags[c] != b.flags[c] || !(math.Abs(x-y) <= tolerance) {
			t.Fatalf("%s: cell %d is %g with the flags %v, and %g with the flags %v", what, c, x, a.flags[c], y, b.flags[c])
		}
		if a.flags[c] == 2 {
			gaps++
		}
	}
	if gaps < len(a.Values)/10 {
		t.Fatalf("%s: %d of %d cells are filled: the test says little", what, gaps, len(a.Values))
	}
}

func TestRegularCoordinatesThatAreMapsGiveTheSameProduct(t *testing.T) {
	sea := region{
		lat: steps(42.6, 1.0/15, 18), lon: steps(30.3, 1.0/15, 30), days: 4, // of no exact float
		water: func(int, int) bool { return true }, clear: stripes,
	}
	lines := fillLast(t, sea)
	sea.plane = true
	maps := fillLast(t, sea)
	checkTwins(t, "maps of coordinates", lines, maps, 1e-4)
	if !maps.Grid.Same(lines.Grid) || len(maps.lon.Dims) != 1 {
		t.Errorf("the product is on %v with lon%v, want %v with an axis", maps.Grid, maps.lon.Dims, lines.Grid)
	}

	sea.lon = steps(-179.9, -1.0/15, 30) // westwards, across the date line
	for j := range sea.lon {
		sea.lon[j] = field.Wrap(sea.lon[j])
	}
	across := fillLast(t, sea)
	sea.tilt = 0.002 // no regular grid any more, and a few hundred metres off
	tilted := fillLast(t, sea)
	checkTwins(t, "a bent grid across the date line", across, tilted, 0.15)
	if tilted.Grid.Plane == nil || !slices.Equal(tilted.lon.Dims, []string{"y", "x"}) {
		t.Errorf("the product is on %v with lon%v, want the coordinates of each cell", tilted.Grid, tilted.lon.Dims)
	}
	compliance.Check(t, maps.path, across.path, tilted.path)
}

func TestAGapAcrossTheDateLineIsFilledAsAnyOther(t *testing.T) {
	const columns = 40
	pacific := func(lon []float64) region {
		return region{
			lat: steps(17, 0.25, 20), lon: lon, days: 4, water: func(int, int) bool { return true },
			clear: func(day, i, j int) bool { // a cloud over the date line, on every day, and others that move on
				return (i < 6 || i > 13 || j < 14 || j > 25) && (i*i+3*j+7*day)%11 > 2
			},
		}
	}
	counted := steps(175, 0.25, columns)
	jumping := make([]float64, columns)
	for j, lon := range counted {
		jumping[j] = field.Wrap(lon)
	}
	away := fillLast(t, pacific(steps(-150, 0.25, columns))) // the same far from the date line
	plain := fillLast(t, pacific(counted))
	for name, got := range map[string]filled{"counted on": plain, "with a jump": fillLast(t, pacific(jumping))} {
		checkTwins(t, name, plain, got, 1e-5)
		checkTwins(t, name, away, got, 0.2) // of two observations at one distance rounding decides which counts
		for j := 1; j < columns; j++ {
			if step := got.Grid.Lon[j] - got.Grid.Lon[j-1]; math.Abs(step-0.25) > 1e-4 {
				t.Fatalf("%s: the longitudes of the product step by %g at column %d", name, step, j)
			}
		}
		const dateLine = 20 // its column
		within, over, n := 0.0, 0.0, 0.0
		for i := 6; i <= 13; i++ {
			row := got.Values[i*columns:]
			over += math.Abs(float64(row[dateLine] - row[dateLine-1]))
			within += (math.Abs(float64(row[dateLine-1]-row[dateLine-2])) + math.Abs(float64(row[dateLine+1]-row[dateLine]))) / 2
			n++
		}
		if math.Abs(over-within)/n > 0.2 || math.Abs(float64(got.Values[10*columns+dateLine])-truth(3, 10, dateLine)) > 0.5 {
			t.Errorf("%s: the mean step over the date line is %.3f, beside it %.3f; %g in the middle, the truth is %g", name, over/n, within/n,
				got.Values[10*columns+dateLine], truth(3, 10, dateLine))
		}
	}
}

func TestWhatNoDayEverShowedIsFlagged(t *testing.T) {
	blind := func(i, j int) bool { return i >= 4 && i < 10 && j >= 8 && j < 16 }
	sea := region{
		lat: steps(42.6, 0.07, 18), lon: steps(30.3, 0.07, 30), days: 12,
		water: func(int, int) bool { return true },
		clear: func(day, i, j int) bool { return !blind(i, j) && stripes(day, i, j) },
	}
	got := fillLast(t, sea)
	for c, flags := range got.flags {
		i, j := c/30, c%30
		want := float32(2)
		switch {
		case blind(i, j):
			want = 2 | 32
		case sea.clear(11, i, j):
			want = 0
		}
		if flags != want {
			t.Fatalf("cell %d, %d has the flags %v, want %v", i, j, flags, want)
		}
	}
	sea.days = 3 // too few to say never
	for c, flags := range fillLast(t, sea).flags {
		if flags >= 32 {
			t.Fatalf("cell %d has the flags %v after three days", c, flags)
		}
	}
}

func TestInspectAndInitTellThatAGranuleIsOfALake(t *testing.T) {
	_, last := region{
		lat: steps(46.8, 0.08, 24), lon: steps(-89, 0.12, 28), days: 1,
		water: func(i, j int) bool { return i > 4 && j > 4 }, clear: stripes,
	}.write(t)
	stdout, _, err := clitest.Run(t, inspectCommand(), last)
	if err != nil || !strings.Contains(stdout, "(learned mask)") || !strings.Contains(stdout, "calls 100 % of the observed cells land") {
		t.Errorf("inspect says %v\n%s", err, stdout)
	}

	reader, err := cli.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	sample, err := onboard.LookAt(t.Context(), reader, []string{last}, ingest.Options{})
	if err != nil || sample.SeaMask != "learned" || sample.Coverage == 0 {
		t.Errorf("init takes the mask %q with a coverage of %g, %v", sample.SeaMask, sample.Coverage, err)
	}
}
