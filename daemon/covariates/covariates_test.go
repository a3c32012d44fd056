package covariates

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// granules is a Reader of files that hold nothing: their content is here, by name.
type granules map[string]ingest.Granule

func (g granules) Read(_ context.Context, path string, _ ingest.Options) (ingest.Granule, error) {
	found, ok := g[filepath.Base(path)]
	if !ok {
		return found, &ingest.BadGranule{File: filepath.Base(path), Problem: "it is no NetCDF file", Remedy: "fetch it again"}
	}
	return found, nil
}

func axis(first, step float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = first + step*float64(i)
	}
	return out
}

var (
	sea  = field.Grid{Lat: axis(41, 0.1, 12), Lon: axis(28, 0.1, 16)}
	wide = field.Grid{Lat: axis(40, 0.25, 20), Lon: axis(27, 0.25, 20)}
)

func at(d int) time.Time { return time.Date(2024, 5, d, 12, 0, 0, 0, time.UTC) }

// granule returns a file of constant maps, a day each.
func granule(g field.Grid, units string, value float32, days ...int) ingest.Granule {
	out := ingest.Granule{SHA256: "sum", Source: ingest.Source{Variable: "sst", Vars: []ingest.Var{{Name: "sst", Attrs: []ingest.Attr{{Name: "units", Value: units}}}}}}
	for _, d := range days {
		out.Fields = append(out.Fields, field.Field{Grid: g, Time: at(d), Values: slices.Repeat([]float32{value}, g.Len())})
	}
	return out
}

// setUp writes a file for each granule into a folder, and returns covariates that read
// them, with the sentences that they say.
func setUp(t *testing.T, files granules, list ...covariate.Config) (c *Covariates, folder string, said *[]string) {
	t.Helper()
	folder = t.TempDir()
	for name := range files {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range list {
		list[i].MaxAgeDays = 3
		if list[i].File != "" || list[i].Static == "" && list[i].Dataset == "" {
			list[i].File = filepath.Join(folder, list[i].File)
		}
	}
	said = new([]string)
	return &Covariates{List: list, Reader: files, Log: func(text string) { *said = append(*said, text) }}, folder, said
}

// Whatever is wrong with one map is said in one sentence, and the others are used.
func TestABadMapIsNamedAndTheOthersAreUsed(t *testing.T) {
	shifted := field.Grid{Lat: axis(51, 0.25, 20), Lon: axis(27, 0.25, 20)}
	swapped := field.Grid{Lat: axis(27, 0.25, 20), Lon: axis(40, 0.25, 20)}
	tests := []struct {
		name  string
		bad   map[string]ingest.Granule
		ahead bool
		want  string    // in the only sentence; empty: nothing is said
		maps  []float32 // value of days 3, 4 and 5; 0: none
	}{
		{name: "all is well", bad: granules{"b.nc": granule(wide, "kelvin", 290, 5)}, maps: []float32{288, 288, 290}},
		{name: "a unit that is known", bad: granules{"b.nc": granule(wide, "degree_Celsius", 16.85, 5)}, maps: []float32{288, 288, 290}},
		{name: "a unit of another quantity", bad: granules{"b.nc": granule(wide, "psu", 38, 5)}, want: `b.nc is left out: it is in "psu", and the others are in "kelvin", and no conversion is known`, maps: []float32{288, 288, 288}},
		{name: "a shifted grid", bad: granules{"b.nc": granule(shifted, "kelvin", 290, 5)}, want: "covers nothing of the granules'", maps: []float32{288, 288, 288}},
		{name: "swapped axes", bad: granules{"b.nc": granule(swapped, "kelvin", 290, 5)}, want: "look whether its axes are swapped or shifted", maps: []float32{288, 288, 288}},
		{name: "a day twice, and it differs", bad: granules{"b.nc": granule(wide, "kelvin", 290, 4)}, want: "it has 2024-05-04T12:00:00Z twice, in a.nc and in b.nc, and they differ: the first is used", maps: []float32{288, 288, 288}},
		{name: "a day twice, and it is the same", bad: granules{"b.nc": granule(wide, "kelvin", 288, 4)}, maps: []float32{288, 288, 288}},
		{name: "a later day in near real time", bad: granules{"b.nc": granule(wide, "kelvin", 290, 6)}, maps: []float32{288, 288, 288}},
		{name: "a later day that is nearer in delayed mode", bad: granules{"b.nc": granule(wide, "kelvin", 290, 6, 5)}, ahead: true, maps: []float32{288, 288, 290}},
		{name: "no granule at all", bad: granules{"b.txt": {}, "b.nc": {}}, want: "b.nc is left out: it is no NetCDF file; fetch it again", maps: []float32{288, 288, 288}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := granules{"a.nc": granule(wide, "kelvin", 288, 3, 4)}
			for name, g := range tt.bad {
				files[name] = g
			}
			c, _, said := setUp(t, files, covariate.Config{Name: "sst"})
			if strings.Contains(tt.name, "no granule") {
				delete(files, "b.nc")
			}
			ask := Request{Grid: sea, Times: []time.Time{at(3), at(4), at(5)}, Ahead: tt.ahead}
			for range 2 { // the second time everything comes from memory, and is not said again
				got, err := c.Terms(t.Context(), ask)
				if err != nil || len(got.Terms) != 1 || got.Terms[0].Units != "kelvin" {
					t.Fatalf("%+v, %v", got, err)
				}
				for i, m := range got.Terms[0].Maps {
					if math.Abs(float64(m[40]-tt.maps[i])) > 1e-3 {
						t.Errorf("day %d is %g, want %g", 3+i, m[40], tt.maps[i])
					}
				}
			}
			if n := len(*said); tt.want == "" && n > 0 || tt.want != "" && (n != 1 || !strings.Contains((*said)[0], tt.want) || !strings.HasPrefix((*said)[0], "covariate sst: ")) {
				t.Errorf("said %q, want %q", *said, tt.want)
			}
		})
	}
}

// A covariate that knows the future only is refused in near real time, and used later.
func TestACovariateFromTheFutureIsRefused(t *testing.T) {
	c, _, said := setUp(t, granules{"a.nc": granule(wide, "kelvin", 288, 6, 7)}, covariate.Config{Name: "sst"})
	got, err := c.Terms(t.Context(), Request{Grid: sea, Times: []time.Time{at(4), at(5)}})
	if err != nil || got.Terms[0].Maps[0] != nil || got.Terms[0].Maps[1] != nil || len(got.Inputs) != 0 {
		t.Errorf("%+v, %v: want no map", got, err)
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], "its first map is of 2024-05-06, later than days that are asked for, and a near-real-time product must not know of the future: it is refused") {
		t.Errorf("said %q", *said)
	}
	got, err = c.Terms(t.Context(), Request{Grid: sea, Times: []time.Time{at(4), at(5)}, Ahead: true})
	if err != nil || got.Terms[0].Maps[1] == nil || len(got.Inputs) != 1 {
		t.Errorf("in delayed mode: %+v, %v: want maps", got, err)
	}
}

// Gaps of the nearest day are filled by the next nearest that is not later; a template
// reads nothing of later days; the regression's units win.
func TestMapsOfATemplate(t *testing.T) {
	gappy := granule(wide, "degree_Celsius", 20, 5)
	for i := range gappy.Fields[0].Values {
		if i%wide.Width() < 8 {
			gappy.Fields[0].Values[i] = field.NaN()
		}
	}
	files := granules{"20240503.nc": granule(wide, "kelvin", 290.15, 3), "20240505.nc": gappy, "20240506.nc": granule(wide, "kelvin", 0, 6)}
	c, _, said := setUp(t, files, covariate.Config{Name: "sst", File: "{year}{month}{day}.nc", Gradient: true})
	got, err := c.Terms(t.Context(), Request{Grid: sea, Times: []time.Time{at(5)}, Units: func(string) string { return "degree_Celsius" }})
	if err != nil || len(*said) != 0 || len(got.Terms) != 2 || got.Terms[1].Name != "sst.gradient" {
		t.Fatalf("%+v, %v, said %q", got, err, *said)
	}
	m := got.Terms[0].Maps[0]
	if math.Abs(float64(m[0])-17) > 1e-3 || m[15] != 20 {
		t.Errorf("the map has %g in the gap and %g beside it, want 17 and 20 degrees", m[0], m[15])
	}
	if len(got.Inputs) != 2 || got.Inputs[0].Name != "20240503.nc" {
		t.Errorf("inputs are %+v", got.Inputs)
	}
	if names := Names(c.List); !slices.Equal(names, []string{"sst", "sst.gradient"}) {
		t.Errorf("names are %q", names)
	}
}

// Maps that stay are known of all days; the depth and the distance count by their logarithm.
func TestMapsThatStay(t *testing.T) {
	mask := make(field.Mask, sea.Len())
	for i := range mask {
		mask[i] = i%sea.Width() > 0
	}
	c, _, said := setUp(t, granules{"depth.nc": granule(wide, "m", -999, 1)},
		covariate.Config{Name: "depth", File: "depth.nc", Static: covariate.Bathymetry},
		covariate.Config{Name: "coast", Static: covariate.DistanceToCoast}, covariate.Config{Name: "season", Static: covariate.DayOfYear})
	got, err := c.Terms(t.Context(), Request{Grid: sea, Sea: mask, Times: []time.Time{at(3), at(29)}})
	if err != nil || len(*said) != 0 || len(got.Terms) != 4 {
		t.Fatalf("%+v, %v, said %q", got, err, *said)
	}
	var names []string
	for _, term := range got.Terms {
		names = append(names, term.Name)
		if len(term.Maps) != 2 || term.Maps[1] == nil {
			t.Errorf("%s has not a map of each day", term.Name)
		}
	}
	if !slices.Equal(names, Names(c.List)) {
		t.Errorf("names are %q and %q", names, Names(c.List))
	}
	if depth := got.Terms[0].Maps[1][5]; depth != 3 {
		t.Errorf("a depth of 999 m counts %g, want 3", depth)
	}
	if near, far := got.Terms[1].Maps[0][1], got.Terms[1].Maps[0][15]; near >= far || math.Abs(float64(near)-math.Log10(1+sea.StepKM())) > 1e-3 {
		t.Errorf("the distance counts %g beside land and %g far from it", near, far)
	}
}

// Granules of another dataset are maps like any others.
func TestMapsOfAnotherDataset(t *testing.T) {
	c, folder, _ := setUp(t, granules{"a.nc": granule(wide, "kelvin", 288, 3)}, covariate.Config{Name: "sst", Dataset: "sst-l4"})
	c.List[0].File = ""
	var asked [2]time.Time
	c.Granules = func(_ context.Context, dataset string, from, to time.Time, ahead bool) ([]Source, error) {
		if asked = [2]time.Time{from, to}; ahead {
			t.Error("later days are asked for")
		}
		return []Source{{filepath.Join(folder, "a.nc"), ingest.Options{Variable: dataset}}}, nil
	}
	got, err := c.Terms(t.Context(), Request{Grid: sea, Times: []time.Time{at(5)}})
	if err != nil || got.Terms[0].Maps[0] == nil || got.Terms[0].Maps[0][0] != 288 {
		t.Errorf("%+v, %v", got, err)
	}
	if asked[0].After(at(2)) || asked[1].After(at(6).Add(-12*time.Hour)) {
		t.Errorf("asked for granules from %v to %v: want three days back and none ahead", asked[0], asked[1])
	}
}

// A training is told every file by its name, of the days that it learns from and of those
// before them that may stand in, and of none after them.
func TestATrainingIsToldTheFilesAsTheyAre(t *testing.T) {
	c, folder, _ := setUp(t, granules{"20240504.nc": granule(wide, "kelvin", 288, 4), "20240506.nc": granule(wide, "kelvin", 289, 6), "20240508.nc": granule(wide, "kelvin", 290, 8), "depth.nc": granule(wide, "m", 90, 1)},
		covariate.Config{Name: "sst", File: "{year}{month}{day}.nc", Variable: "sst", Gradient: true, MaxAgeDays: 1},
		covariate.Config{Name: "depth", Static: covariate.Bathymetry, File: "depth.nc", MaxAgeDays: 3},
		covariate.Config{Name: "coast", Static: covariate.DistanceToCoast, MaxAgeDays: 3},
		covariate.Config{Name: "wind", File: "wind-{year}{month}{day}.nc", MaxAgeDays: 3})
	c.List[0].MaxAgeDays = 1
	got, err := c.Arguments(t.Context(), at(5), at(7))
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	want := []string{
		"--covariate", "sst=" + in("{year}{month}{day}.nc") + ":sst,gradient,max_age=1",
		"--covariate-file", "sst=" + in("20240504.nc"), "--covariate-file", "sst=" + in("20240506.nc"),
		"--covariate", "depth=" + in("depth.nc") + ":,bathymetry", "--covariate-file", "depth=" + in("depth.nc"),
		"--covariate", "coast=distance_to_coast",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the arguments are\n%q, want\n%q", got, want)
	}
	// By them the maps are the same, also where the files lie elsewhere.
	ask := Request{Grid: sea, Times: []time.Time{at(5), at(6)}}
	before, err := c.Terms(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	c.List[0].File, c.Files = "gone-{year}{month}{day}.nc", map[string][]string{"sst": {in("20240504.nc"), in("20240506.nc")}}
	after, err := c.Terms(t.Context(), ask)
	if err != nil || before.Terms[0].Maps[1][0] != 289 || !slices.Equal(after.Terms[0].Maps[0], before.Terms[0].Maps[0]) || !slices.Equal(after.Terms[0].Maps[1], before.Terms[0].Maps[1]) {
		t.Errorf("%v, and the maps are others", err)
	}
}
