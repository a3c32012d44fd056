package measure

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/internal/cdf"
	"lacuna/internal/cdl"
	"lacuna/pipeline/matchup"
	"lacuna/pipeline/simulate"
)

// planted is the bias of the test's products, in decades, and their sigma.
const (
	planted      = 0.1
	plantedSigma = 0.05
)

func raw[T any](t *testing.T, values []T) []byte {
	t.Helper()
	out, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// seaWithBuoys writes the products of a simulated sea, each cell by a factor of
// 10^planted too large, every other one filled and those with a lower one than told;
// and a table of buoys that measured the truth, in units of its own. Times are
// those of midnight, with bounds.
func seaWithBuoys(t *testing.T, shift time.Duration) (products, table string) {
	t.Helper()
	const days = 4
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 30, Width: 40, Days: days, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	grid, sea := w.Grid(), w.Sea()
	var rows strings.Builder
	rows.WriteString("time,latitude,longitude,platform,depth,chla\nUTC,degrees_north,degrees_east,,m,g m-3\n")
	for n := range days {
		truth := w.Day(n).Truth
		midnight := truth.Time.UTC().Truncate(24 * time.Hour)
		value, sigma, flags := make([]float32, grid.Len()), make([]float32, grid.Len()), make([]byte, grid.Len())
		for i, v := range truth.Values {
			value[i], sigma[i], flags[i] = float32(math.NaN()), float32(math.NaN()), 1
			if !sea[i] {
				continue
			}
			flags[i], sigma[i] = byte(2*(i%2)), plantedSigma
			value[i] = float32(float64(v) * math.Pow(10, planted*float64(1+i%2)))
			if i%7 == 0 {
				at := midnight.Add(time.Duration(i%24) * time.Hour).Add(shift)
				fmt.Fprintf(&rows, "%s,%.5f,%.5f,buoy%d,1,%g\n", at.Format(time.RFC3339), grid.Lat[i/grid.Width()], grid.Lon[i%grid.Width()], i, float64(v)/1000)
				fmt.Fprintf(&rows, "%s,%.5f,%.5f,buoy%d,400,%g\n", at.Format(time.RFC3339), grid.Lat[i/grid.Width()], grid.Lon[i%grid.Width()], i, 77.0)
			}
		}
		since := midnight.Sub(time.Unix(0, 0)).Hours() / 24
		maps := []string{"time", "lat", "lon"}
		attrs := func(pairs ...string) (all []cdl.Attr) {
			for i := 0; i < len(pairs); i += 2 {
				all = append(all, cdl.Attr{Name: pairs[i], Value: pairs[i+1]})
			}
			return all
		}
		file, err := cdf.Encode(cdl.File{
			Dims: []cdl.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: grid.Height()}, {Name: "lon", Len: grid.Width()}, {Name: "nv", Len: 2}},
			Vars: []cdl.Var{
				{Name: "time", Type: "double", Dims: []string{"time"}, Attrs: attrs("units", "days since 1970-01-01", "standard_name", "time", "bounds", "time_bnds"), Raw: raw(t, []float64{since})},
				{Name: "time_bnds", Type: "double", Dims: []string{"time", "nv"}, Raw: raw(t, []float64{since, since + 1})},
				{Name: "lat", Type: "double", Dims: []string{"lat"}, Attrs: attrs("units", "degrees_north", "standard_name", "latitude"), Raw: raw(t, grid.Lat)},
				{Name: "lon", Type: "double", Dims: []string{"lon"}, Attrs: attrs("units", "degrees_east", "standard_name", "longitude"), Raw: raw(t, grid.Lon)},
				{Name: "CHL", Type: "float", Dims: maps, Attrs: attrs("units", "milligram m^-3", "standard_name", "mass_concentration_of_chlorophyll_a_in_sea_water",
					"ancillary_variables", "CHL_uncertainty flags"), Raw: raw(t, value)},
				{Name: "CHL_uncertainty", Type: "float", Dims: maps, Attrs: attrs("units", "1"), Raw: raw(t, sigma)},
				{Name: "flags", Type: "ubyte", Dims: maps, Raw: flags},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s_l4.nc", midnight.Format("20060102"))), file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table = filepath.Join(t.TempDir(), "buoys.csv")
	if err := os.WriteFile(table, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, table
}

func matchupOf(t *testing.T, args ...string) matchupReport {
	t.Helper()
	stdout, stderr, err := clitest.Run(t, matchupCommand(), append(args, "--json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var r matchupReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return r
}

func TestMatchupFindsWhatWasPlanted(t *testing.T) {
	products, table := seaWithBuoys(t, 0)
	picture := filepath.Join(t.TempDir(), "pairs.png")
	r := matchupOf(t, "--insitu", table, "--plot", picture, products)
	if r.Space != "log10" || r.Converted != "g m-3" || r.Products != 4 || len(r.Scores) != 3 || r.Passed["too deep"] == 0 || r.Passed["too deep"] != r.Read-r.Scores[0].Readings {
		t.Fatalf("report is %+v", r)
	}
	want := map[string][2]float64{"observed": {planted, 0}, "filled": {2 * planted, 0}} // bias, coverage: 0.1 and 0.2 are beyond 1.645 · 0.05
	for _, s := range r.Scores[1:] {
		if s.N == 0 || math.Abs(*s.Bias-want[s.Cells][0]) > 1e-3 || math.Abs(*s.RMSE-*s.Bias) > 1e-3 || *s.Coverage90 != want[s.Cells][1] ||
			math.Abs(*s.Sigma-plantedSigma) > 1e-6 || *s.Correlation < 0.999 {
			t.Errorf("%s: n %d, bias %s, RMSE %s, in 90 %% %s", s.Cells, s.N, measured("%.4f", s.Bias), measured("%.4f", s.RMSE), percent(s.Coverage90))
		}
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	stdout, _, err := clitest.Run(t, matchupCommand(), "--insitu", table, products)
	if err != nil || !strings.Contains(stdout, "observed") || !strings.Contains(stdout, "converted from g m-3") || !strings.Contains(stdout, "too deep") {
		t.Errorf("the table is %s (%v)", stdout, err)
	}
}

// A list in NetCDF, decoded by the confined process, gives what the table gives.
func TestMatchupReadsNetCDF(t *testing.T) {
	products, table := seaWithBuoys(t, 0)
	text, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	list, err := matchup.ReadCSV(text, []string{"CHL"}, matchup.Columns{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var when, lat, lon, value []float64
	var id []int32
	for _, o := range list.Observations {
		var n int32
		if _, err := fmt.Sscanf(o.Platform, "buoy%d", &n); err != nil {
			t.Fatal(err)
		}
		when, lat, lon, value, id = append(when, float64(o.Time.Unix())), append(lat, o.Lat), append(lon, o.Lon), append(value, o.Value), append(id, n)
	}
	column := func(name, typ, units string, raw []byte) cdl.Var {
		return cdl.Var{Name: name, Type: typ, Dims: []string{"obs"}, Attrs: []cdl.Attr{{Name: "units", Value: units}}, Raw: raw}
	}
	file, err := cdf.Encode(cdl.File{Dims: []cdl.Dim{{Name: "obs", Len: len(id)}}, Vars: []cdl.Var{
		column("time", "double", "seconds since 1970-01-01", raw(t, when)), column("lat", "double", "degrees_north", raw(t, lat)),
		column("lon", "double", "degrees_east", raw(t, lon)), column("station", "int", "1", raw(t, id)), column("chla", "double", "g m-3", raw(t, value)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	nc := filepath.Join(t.TempDir(), "buoys.nc")
	if err := os.WriteFile(nc, file, 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(matchupOf(t, "--insitu", table, products).Scores, matchupOf(t, "--insitu", nc, products).Scores, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("scores by table and by NetCDF (-table +NetCDF):\n%s", diff)
	}
}

// Products bear the time of midnight and stand for the day after it: a day too
// late is seen.
func TestMatchupOfAnotherDayIsWorse(t *testing.T) {
	products, table := seaWithBuoys(t, 0)
	_, late := seaWithBuoys(t, 24*time.Hour)
	right, wrong := matchupOf(t, "--insitu", table, products), matchupOf(t, "--insitu", late, products)
	if *wrong.Scores[0].RMSE < 1.01**right.Scores[0].RMSE || *wrong.Scores[1].Spread < 0.005 || *right.Scores[1].Spread > 0.001 {
		t.Errorf("RMSE is %.4f on the day and %.4f on the next", *right.Scores[0].RMSE, *wrong.Scores[0].RMSE)
	}
	if wrong.Passed["no product in time"] == 0 {
		t.Errorf("the last day has no product, and %v", wrong.Passed)
	}
}

func TestMatchupSaysWhatIsWrong(t *testing.T) {
	products, table := seaWithBuoys(t, 0)
	for name, tt := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"no table":        {[]string{products}, "--insitu", true},
		"a wrong radius":  {[]string{"--insitu", table, "--radius", "-1", products}, "--radius", true},
		"a wrong plot":    {[]string{"--insitu", table, "--plot", "a.gif", products}, ".png", true},
		"other units":     {[]string{"--insitu", table, "--units", "degC", products}, "cannot be converted", false},
		"no such column":  {[]string{"--insitu", table, "--value-column", "fluorescence", products}, "--value-column", false},
		"no product":      {[]string{"--insitu", table, t.TempDir()}, "no product below", false},
		"too deep it all": {[]string{"--insitu", table, "--max-depth", "0.5", products}, "nothing to compare", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := clitest.Run(t, matchupCommand(), tt.args...)
			var usage cli.UsageError
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &usage) != tt.usage {
				t.Errorf("error is %v, want one with %q (of usage: %v)", err, tt.want, tt.usage)
			}
		})
	}
}
