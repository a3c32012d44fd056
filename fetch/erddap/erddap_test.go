package erddap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
	"lacuna/fetch/erddap/erddaptest"
	"lacuna/fetch/series"
	"lacuna/internal/bbox"
)

func config(s *erddaptest.Server) Config {
	cfg := DefaultConfig()
	cfg.URL, cfg.Dataset, cfg.Variables = s.URL+"/erddap", "sea", []string{"chlorophyll"}
	cfg.Web.Timeout = 5 * time.Second
	return cfg
}

func open(t *testing.T, cfg Config) *series.Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestERDDAPConforms(t *testing.T) {
	archivetest.RunSeries(t, func(t *testing.T) archivetest.SeriesFixture {
		s := erddaptest.New(t, erddaptest.Axis(40, 0.5, 9), erddaptest.Axis(27, 0.5, 31))
		s.Put(archivetest.SeriesStart(), 0)
		return archivetest.SeriesFixture{
			Archive: open(t, config(s)),
			Put:     s.Put,
			Remove:  func(at time.Time) { s.Set(func(s *erddaptest.Server) { delete(s.Maps, at.Unix()) }) },
			Sever:   func() { s.Set(func(s *erddaptest.Server) { s.Down = true }) },
			Value: func(content []byte) (float32, error) {
				return value(content, 9, 31, func(y, x int) float32 { return float32(y) + float32(x)/100 })
			},
		}
	})
}

// value returns what the numbers at the end of a file have in common, beside a
// pattern of rows and columns.
func value(content []byte, rows, columns int, pattern func(y, x int) float32) (float32, error) {
	numbers := content[len(content)-4*rows*columns:]
	at := func(i int) float32 {
		b := numbers[4*i:]
		return math.Float32frombits(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
	}
	base := at(0) - pattern(0, 0)
	for i := range rows * columns {
		if got, want := at(i), base+pattern(i/columns, i%columns); math.Abs(float64(got-want)) > 1e-4 {
			return 0, fmt.Errorf("cell %d has %v, want %v", i, got, want)
		}
	}
	return base, nil
}

func list(t *testing.T, a fetch.Archive, scope fetch.Scope) []fetch.Object {
	t.Helper()
	objects, err := a.List(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func read(t *testing.T, a fetch.Archive, o fetch.Object) ([]byte, error) {
	t.Helper()
	r, err := a.Open(t.Context(), o, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// described is what netCDF reads of a file.
type described struct {
	Title, Long string
	Time        float64
	Lat, Lon    []float64
	Values      [][]float64
	Quality     [][]int
	Attributes  []string
}

// describe has netCDF read a file.
func describe(t *testing.T, content []byte) described {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON does not name a Python; make test sets it")
	}
	path := filepath.Join(t.TempDir(), "x.nc")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, python, path)
}

func run(t *testing.T, python, place string) (d described) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import sys, json, netCDF4
d = netCDF4.Dataset(sys.argv[1]); d.set_auto_mask(False)
print(json.dumps({"Title": d.title, "Long": d["chlorophyll"].long_name, "Time": float(d["time"][0]), "Lat": d["latitude"][:].tolist(),
  "Lon": d["longitude"][:].tolist(), "Values": d["chlorophyll"][0, 0].astype(float).tolist(),
  "Quality": d["quality"][0, 0].astype(int).tolist() if "quality" in d.variables else [], "Attributes": d.ncattrs()}))
`, place)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	if err != nil {
		t.Fatalf("netCDF cannot read %s: %v\n%s", place, err, complaint.String())
	}
	return d
}

func TestAnObjectIsTheMapOfItsTimeInTheBox(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(47, -0.5, 15), erddaptest.Axis(27, 0.5, 31)) // latitudes downwards
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s.Put(at, 100)
	s.Put(at.AddDate(0, 0, 1), 200)
	cfg := config(s)
	cfg.Variables = []string{"chlorophyll", "quality"}
	cfg.Box = bbox.Box{West: 28, South: 41, East: 30, North: 42}
	a := open(t, cfg)
	objects := list(t, a, fetch.Scope{})
	if len(objects) != 2 || objects[1].Name != "2024/05/sea_20240502T120000Z.nc" {
		t.Fatalf("List() = %+v", objects)
	}
	content, err := read(t, a, objects[1])
	if err != nil {
		t.Fatal(err)
	}
	d := describe(t, content)
	if d.Title != "A sea; with {braces}" || d.Long != `Chlorophyll "a", daily` || d.Time != float64(at.AddDate(0, 0, 1).Unix()) {
		t.Errorf("title %q, name %q, time %v", d.Title, d.Long, d.Time)
	}
	if slices.Contains(d.Attributes, "history") || slices.Contains(d.Attributes, "time_coverage_end") {
		t.Errorf("attributes that change every day are kept: %q", d.Attributes)
	}
	if !slices.Equal(d.Lat, []float64{42, 41.5, 41}) || !slices.Equal(d.Lon, []float64{28, 28.5, 29, 29.5, 30}) {
		t.Errorf("the grid is %v by %v", d.Lat, d.Lon)
	}
	for y, row := range d.Values {
		for x, got := range row {
			if want := 200 + float64(y+10) + float64(x+2)/100; math.Abs(got-want) > 1e-4 {
				t.Errorf("row %d, column %d is %v, want %v", y, x, got, want)
			}
			if want := (y+10)*10 + x + 2; d.Quality[y][x] != want {
				t.Errorf("quality at row %d, column %d is %d, want %d", y, x, d.Quality[y][x], want)
			}
		}
	}
	if s.Agent != "lacuna/test" {
		t.Errorf("the server saw %q", s.Agent)
	}
}

func TestABoxAcrossTheDateLineIsOneMap(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(-1, 1, 3), erddaptest.Axis(-179, 2, 180))
	s.Put(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), 10)
	cfg := config(s)
	cfg.Box = bbox.Box{West: 176, South: -5, East: -176, North: 5}
	a := open(t, cfg)
	content, err := read(t, a, list(t, a, fetch.Scope{})[0])
	if err != nil {
		t.Fatal(err)
	}
	d := describe(t, content)
	if !slices.Equal(d.Lon, []float64{177, 179, 181, 183}) {
		t.Errorf("longitudes are %v, want them to go on across the date line", d.Lon)
	}
	for y, row := range d.Values {
		for x, column := range []int{178, 179, 0, 1} {
			if want := 10 + float64(y) + float64(column)/100; math.Abs(row[x]-want) > 1e-4 {
				t.Errorf("row %d, column %d is %v, want %v", y, x, row[x], want)
			}
		}
	}
}

// TestTheServerOfThisTestSpeaksOPeNDAP has another client, netCDF-C, read from
// the server that the others rely on.
func TestTheServerOfThisTestSpeaksOPeNDAP(t *testing.T) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON does not name a Python; make test sets it")
	}
	s := erddaptest.New(t, erddaptest.Axis(40, 1, 3), erddaptest.Axis(27, 1, 5))
	s.Put(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), 7)
	d := run(t, python, s.URL+"/erddap/griddap/sea")
	if d.Long != `Chlorophyll "a", daily` && d.Long != `Chlorophyll \"a\", daily` || len(d.Values) != 3 || math.Abs(d.Values[2][4]-9.04) > 1e-4 || d.Quality[1][3] != 13 {
		t.Errorf("netCDF-C reads %+v", d)
	}
}

func TestAListingAsksForLittle(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(40, 1, 3), erddaptest.Axis(27, 1, 5))
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		s.Put(start.AddDate(0, 0, i), 1)
	}
	a := open(t, config(s))
	objects := list(t, a, fetch.Scope{Since: start.AddDate(0, 0, 95).Add(7 * time.Hour)})
	if len(objects) != 5 {
		t.Errorf("List() shows %d objects, want 5", len(objects))
	}
	if len(s.Asked) != 3 || !strings.Contains(s.Asked[2], "time[(1712275200):1:(last)]") {
		t.Errorf("asked was %q", s.Asked)
	}
	s.Asked = nil
	if objects := list(t, a, fetch.Scope{Since: start.AddDate(2, 0, 0)}); len(objects) != 0 || strings.Contains(s.Asked[2], "time") {
		t.Errorf("after the end of the series: %d objects, asked was %q", len(objects), s.Asked)
	}
}

func TestATimeThatTheSeriesHasTwiceIsToldAndTheOthersCome(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(40, 1, 3), erddaptest.Axis(27, 1, 5))
	for day := 1; day <= 3; day++ {
		s.Put(time.Date(2024, 5, day, 0, 0, 0, 0, time.UTC), 1)
	}
	s.Twice = true
	objects, err := open(t, config(s)).List(t.Context(), fetch.Scope{})
	if len(objects) != 3 || !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "has 2024-05-01T00:00:00Z twice") {
		t.Errorf("List() = %d objects, %v; want three and the sentence", len(objects), err)
	}
}

func TestFaultsOfAServerAreToldInASentence(t *testing.T) {
	page := func(ending string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, ending) {
				return false
			}
			fmt.Fprint(w, "\n<!DOCTYPE html><html><title>ERDDAP is restarting</title></html>")
			return true
		}
	}
	for _, tt := range []struct {
		name  string
		edit  func(*Config)
		fault func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		{name: "a web page for attributes", fault: page(".das"), want: "answered with a web page"},
		{name: "a web page for numbers", fault: page(".dods"), want: "answered with a web page"},
		{name: "an error with status 200", fault: func(w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, "Error {\n    code=500;\n    message=\"the data is being reloaded\";\n}\n")
			return true
		}, want: "the data is being reloaded"},
		{name: "an error with its own status", fault: func(w http.ResponseWriter, _ *http.Request) bool {
			erddaptest.Refuse(w, http.StatusInternalServerError, "out of memory")
			return true
		}, want: "out of memory"},
		{name: "half of the numbers", fault: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, ".dods") {
				return false
			}
			fmt.Fprint(w, "Dataset {\n  Float64 latitude[latitude = 3];\n} sea;\n\nData:\n\x00\x00\x00\x03\x00\x00\x00\x03\x00")
			return true
		}, want: "unexpected EOF"},
		{name: "an absurd shape", fault: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, ".dods") {
				return false
			}
			fmt.Fprint(w, "Dataset {\n  Float64 latitude[latitude = 99999999999];\n} sea;\n\nData:\n")
			return true
		}, want: "more than was asked for"},
		{name: "a table", fault: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, ".dds") {
				return false
			}
			fmt.Fprint(w, "Dataset {\n  Sequence {\n    Float64 time;\n  } s;\n} s;\n")
			return true
		}, want: "no part of a grid"},
		{name: "another dataset", edit: func(c *Config) { c.Dataset = "other" }, want: "unknown datasetID"},
		{name: "another variable", edit: func(c *Config) { c.Variables = []string{"chl"} }, want: "set variables to some of"},
		{name: "a box elsewhere", edit: func(c *Config) { c.Box = bbox.Box{West: -20, South: 40, East: -10, North: 45} }, want: "no longitude lies in the bbox"},
		{name: "a map too large", edit: func(c *Config) { c.MaxMiB = 0; c.MaxMiB = 1 }, want: "set bbox, or raise max_mib"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := erddaptest.New(t, erddaptest.Axis(40, 0.01, 300), erddaptest.Axis(27, 0.01, 900))
			s.Put(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), 1)
			s.Fault = tt.fault
			cfg := config(s)
			if tt.edit != nil {
				tt.edit(&cfg)
			}
			objects, err := open(t, cfg).List(t.Context(), fetch.Scope{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(objects) != 0 {
				t.Errorf("List() = %v, %v; want an error with %q", objects, err, tt.want)
			}
		})
	}
}

func TestAGridThatMovedSinceItWasListedIsFoundOut(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(40, 1, 3), erddaptest.Axis(27, 1, 5))
	s.Put(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), 1)
	a := open(t, config(s))
	before := list(t, a, fetch.Scope{})[0]
	s.Set(func(s *erddaptest.Server) { s.Lon = erddaptest.Axis(27.5, 1, 5) })
	if _, err := read(t, a, before); !errors.Is(err, fetch.ErrChanged) {
		t.Errorf("reading from a shifted grid: %v, want ErrChanged", err)
	}
	if after := list(t, a, fetch.Scope{})[0]; after.ETag == before.ETag {
		t.Error("a shifted grid is listed as before")
	}
}

func TestERDDAPIsBounded(t *testing.T) {
	s := erddaptest.New(t, erddaptest.Axis(40, 1, 3), erddaptest.Axis(27, 1, 5))
	start := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 500 {
		s.Put(start.AddDate(0, 0, i), 1)
	}
	cfg := config(s)
	cfg.MaxObjects = 100
	archivetest.CheckBounded(t, open(t, cfg), "max_objects", 100)
}

func TestERDDAPConfigFaultsNameTheKey(t *testing.T) {
	good := DefaultConfig()
	good.URL, good.Dataset, good.Variables = "https://erddap.example.org/erddap", "sea", []string{"chl"}
	archivetest.CheckConfigs(t, good, "hunter2", "erddap", func(c Config) error { _, err := New(c, fetch.Politeness{}); return err },
		[]archivetest.ConfigCase[Config]{
			{Name: "no address", Edit: func(c *Config) { c.URL = "" }, Key: "url"},
			{Name: "a password in the address", Edit: func(c *Config) { c.URL = "https://u:hunter2@x.example" }, Key: "url"},
			{Name: "no dataset", Edit: func(c *Config) { c.Dataset = "" }, Key: "dataset"},
			{Name: "a path as dataset", Edit: func(c *Config) { c.Dataset = "../x" }, Key: "dataset"},
			{Name: "no variables", Edit: func(c *Config) { c.Variables = nil }, Key: "variables"},
			{Name: "a constraint as variable", Edit: func(c *Config) { c.Variables = []string{"x[0]"} }, Key: "variables"},
			{Name: "reread", Edit: func(c *Config) { c.Reread = -1 }, Key: "reread"},
			{Name: "size", Edit: func(c *Config) { c.MaxMiB = 0 }, Key: "max_mib"},
			{Name: "objects", Edit: func(c *Config) { c.MaxObjects = 0 }, Key: "max_objects"},
		})
}

func FuzzDODS(f *testing.F) {
	f.Add([]byte("Dataset {\n  GRID {\n    ARRAY:\n      Byte q[time = 1][lat = 2];\n    MAPS:\n      Float64 time[time = 1];\n  } q;\n} s;\n\nData:\n\x00\x00\x00\x02\x00\x00\x00\x02\x01\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("Attributes {\n x { Float64 a 1.0, 2; String b \"x\\\"y\"; }\n}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		arrays, err := parseDODS(text, 1<<20)
		for _, a := range arrays {
			if err == nil && len(a.raw) > 1<<20 {
				t.Errorf("an array of %d bytes of an answer of %d", len(a.raw), len(text))
			}
		}
		_, _ = parseDAS(text)
	})
}

func TestTheExampleOfTheHandbookWorks(t *testing.T) {
	cfg := DefaultConfig()
	box, err := bbox.Of(archivetest.Example(t, "erddap", &cfg))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := erddaptest.New(t, erddaptest.Axis(-89, 2, 90), erddaptest.Axis(-179, 2, 180))
	s.Put(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC), 1)
	cfg.URL, cfg.Dataset, cfg.Box = s.URL+"/erddap", "sea", box // the dataset of our server
	a := open(t, cfg)
	objects := list(t, a, fetch.Scope{})
	content, err := read(t, a, objects[0])
	if err != nil {
		t.Fatal(err)
	}
	const rows, columns = 20, 25 // of two degrees from 20 south to 20 north, and from 160 east to 150 west
	if got := len(content) - len(content)%4; got < 4*rows*columns || len(s.Asked) != 5 {
		t.Errorf("%d bytes in %d requests, want a map of %d by %d in two", len(content), len(s.Asked)-3, rows, columns)
	}
	if !strings.Contains(s.Asked[3], "[35:1:54][170:1:179]") || !strings.Contains(s.Asked[4], "[35:1:54][0:1:14]") {
		t.Errorf("asked was %q", s.Asked[3:])
	}
}
