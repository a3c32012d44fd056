package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/realdata"
)

// withError is a map of two cells, the second of which is a gap, with
// variables beside it.
func withError(variable, declared, numbers string) string {
	return fmt.Sprintf(`netcdf m { dimensions: time = 1 ; lat = 1 ; lon = 2 ;
variables: double time(time) ; time:units = "days since 2024-01-01" ; float lat(lat) ; lat:units = "degrees_north" ;
float lon(lon) ; lon:units = "degrees_east" ; %s %s
data: time = 0 ; lat = 40 ; lon = 10, 11 ; %s }`, variable, declared, numbers)
}

const (
	sstOf = `float sst(time, lat, lon) ; sst:standard_name = "sea_surface_temperature" ; sst:units = "kelvin" ; sst:_FillValue = -1.f ;`
	chlOf = `float CHL(time, lat, lon) ; CHL:standard_name = "mass_concentration_of_chlorophyll_a_in_sea_water" ; CHL:units = "mg m-3" ; CHL:_FillValue = -1.f ;`
)

func TestErrorsOfTheObservationsAreInTheSpaceOfTheTransform(t *testing.T) {
	t.Parallel()
	inDecades := func(r float64) float64 { return math.Sqrt(math.Log(1+r*r)) / math.Ln10 }
	tests := []struct {
		name              string
		variable, beside  string
		numbers           string
		want              float64 // 0: no error is found
		carried, leftOut  string
		transformIdentity bool
	}{
		{
			name: "deviation of GHRSST, packed, with its bias", variable: sstOf,
			beside: `byte sses_standard_deviation(time, lat, lon) ; sses_standard_deviation:units = "kelvin" ; sses_standard_deviation:scale_factor = 0.01 ;
				sses_standard_deviation:add_offset = 1. ; sses_standard_deviation:_FillValue = -128b ; byte sses_bias(time, lat, lon) ; sses_bias:units = "kelvin" ; sses_bias:scale_factor = 0.01 ;`,
			numbers: `sst = 290, -1 ; sses_standard_deviation = -60, -60 ; sses_bias = -30, 0 ;`, // 0.4 and -0.3
			want:    0.5, carried: "sses_standard_deviation sses_bias",
		},
		{
			name: "bias that was taken out already", variable: strings.ReplaceAll(sstOf, "sst", "adjusted_sst"),
			beside: `float sses_standard_deviation(time, lat, lon) ; sses_standard_deviation:units = "K" ;
				float sses_bias(time, lat, lon) ; sses_bias:units = "K" ;`,
			numbers: `adjusted_sst = 290, -1 ; sses_standard_deviation = 0.4, 0.4 ; sses_bias = -0.3, 0 ;`, want: 0.4,
		},
		{
			name: "modifier of the standard name", variable: chlOf,
			beside:  `float spread(time, lat, lon) ; spread:standard_name = "mass_concentration_of_chlorophyll_a_in_sea_water standard_error" ; spread:units = "mg m-3" ;`,
			numbers: `CHL = 2, -1 ; spread = 0.5, 0.5 ;`, want: inDecades(0.25), carried: "spread",
		},
		{
			name: "percent", variable: chlOf, beside: `float CHL_uncertainty(time, lat, lon) ; CHL_uncertainty:units = "%" ;`,
			numbers: `CHL = 2, -1 ; CHL_uncertainty = 30, 30 ;`, want: inDecades(0.3), carried: "CHL_uncertainty",
		},
		{
			name: "percent of a linear variable", variable: chlOf, beside: `float CHL_uncertainty(time, lat, lon) ; CHL_uncertainty:units = "%" ;`,
			numbers: `CHL = 2, -1 ; CHL_uncertainty = 30, 30 ;`, want: 0.6, transformIdentity: true,
		},
		{
			name: "of the logarithm, among the ancillary variables", variable: chlOf + ` CHL:ancillary_variables = "CHL_log10_bias CHL_log10_rmsd" ;`,
			beside:  `float CHL_log10_rmsd(time, lat, lon) ; float CHL_log10_bias(time, lat, lon) ;`,
			numbers: `CHL = 2, -1 ; CHL_log10_rmsd = 0.3, 0.3 ; CHL_log10_bias = 0.4, 0.4 ;`, want: 0.5, carried: "CHL_log10_rmsd CHL_log10_bias",
		},
		{
			name: "in units that are not those of the variable", variable: sstOf, beside: `float sst_error(time, lat, lon) ; sst_error:units = "W m-2" ;`,
			numbers: `sst = 290, -1 ; sst_error = 3, 3 ;`, leftOut: "sst_error",
		},
		{
			name: "spread of the values in a bin is no error", variable: chlOf, beside: `float CHL_stdev(time, lat, lon) ; CHL_stdev:units = "mg m-3" ;`,
			numbers: `CHL = 2, -1 ; CHL_stdev = 0.5, 0.5 ;`, leftOut: "CHL_stdev",
		},
		{
			name: "zero means unknown", variable: sstOf, beside: `float sst_error(time, lat, lon) ; sst_error:units = "kelvin" ;`,
			numbers: `sst = 290, -1 ; sst_error = 0, 3 ;`, want: math.NaN(),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := Options{}
			if tt.transformIdentity {
				opt.Transform = "identity"
			}
			if strings.Contains(tt.variable, "adjusted") {
				opt.Variable = "adjusted_sst"
			}
			g := mustRead(t, ncgen(t, "nc4", "m.nc", withError(tt.variable, tt.beside, tt.numbers)), opt)
			if tt.want == 0 {
				if g.Errors != nil {
					t.Errorf("errors are %v, want none", g.Errors)
				}
			} else if len(g.Errors) != 1 || !(math.Abs(float64(g.Errors[0][0])-tt.want) < 1e-6 || math.IsNaN(tt.want) && math.IsNaN(float64(g.Errors[0][0]))) {
				t.Errorf("errors are %v, want %g: %v", g.Errors, tt.want, g.Notes)
			} else if e := g.Errors[0][1]; e == e {
				t.Errorf("a gap has the error %g", e)
			}
			for _, name := range strings.Fields(tt.carried) {
				if v, ok := g.Source.Var(name); !ok || len(v.Raw) == 0 {
					t.Errorf("%s is not carried along", name)
				}
			}
			if _, ok := g.Source.Var(tt.leftOut); ok {
				t.Errorf("%s is carried along", tt.leftOut)
			}
		})
	}
}

func TestQualityIsCarriedAlongAndOtherMapsAreNot(t *testing.T) {
	t.Parallel()
	g := mustRead(t, ncgen(t, "nc4", "m.nc", withError(sstOf+` sst:ancillary_variables = "quality_level wind_speed" ;`,
		`byte quality_level(time, lat, lon) ; byte l2p_flags(time, lat, lon) ; float wind_speed(time, lat, lon) ;`,
		`sst = 290, 291 ; quality_level = 5, 2 ; l2p_flags = 0, 1 ; wind_speed = 3, 4 ;`)), Options{Quality: []string{"l2p_flags == 0"}})
	for name, want := range map[string]bool{"quality_level": true, "l2p_flags": true, "wind_speed": false} {
		if _, got := g.Source.Var(name); got != want {
			t.Errorf("%s is carried along: %v, want %v", name, got, want)
		}
	}
}

// Maps beside the variable must not be a reason to refuse a file that was read
// without them.
func TestMapsBesideTheVariableGiveWayToTheMemoryLimit(t *testing.T) {
	h := &header{
		Dims: []Dim{{Name: "lat", Len: 1000}, {Name: "lon", Len: 1000}},
		Vars: []headerVar{
			{Name: "lat", Type: "double", Dims: []int{0}, Attrs: []rawAttr{text("units", "degrees_north")}},
			{Name: "lon", Type: "double", Dims: []int{1}, Attrs: []rawAttr{text("units", "degrees_east")}},
			{Name: "sst", Type: "float", Dims: []int{0, 1}, Attrs: []rawAttr{text("units", "kelvin")}},
			{Name: "sst_error", Type: "float", Dims: []int{0, 1}, Attrs: []rawAttr{text("units", "kelvin")}},
			{Name: "qc", Type: "byte", Dims: []int{0, 1}},
		},
	}
	for limit, want := range map[int64][]int{20 << 20: {0, 1, 2, 3, 4}, 12 << 20: {0, 1, 2, 4}} {
		p, err := request{Want: wantGranule, Name: "20240101.nc", Options: Options{Quality: []string{"qc == 0"}}, MemoryBytes: limit, FileBytes: 1 << 20}.plan(h)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(p.reads); !slices.Equal(p.reads, want) || slices.Contains(p.source, 3) != (len(want) == 5) || (p.err.index >= 0) != (len(want) == 5) {
			t.Errorf("within %d MiB it reads %v and carries %v, want %v: %v", limit>>20, p.reads, p.source, want, p.notes)
		}
	}
}

func TestBoundsAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2024, 1, d, 0, 0, 0, 0, time.UTC) }
	sst := sstOf + ` %s`
	tests := []struct {
		name, declared, numbers string
		want                    [][2]time.Time
	}{
		{"bounds of time", `dimensions: nv = 2 ; variables: time:bounds = "span" ; double span(time, nv) ;`, `span = -1, 3 ;`, [][2]time.Time{{day(0), day(4)}}},
		{"bounds the wrong way round", `dimensions: nv = 2 ; variables: time:bounds = "span" ; double span(time, nv) ;`, `span = 1, 0 ;`, [][2]time.Time{{day(1), day(2)}}},
		{"bounds that span nothing", `dimensions: nv = 2 ; variables: time:bounds = "span" ; double span(time, nv) ;`, `span = 0, 0 ;`, nil},
		{"coverage of the file", `:time_coverage_start = "2024-01-01T00:00:00Z" ; :time_coverage_end = "2024-01-09T00:00:00Z" ;`, "", [][2]time.Time{{day(1), day(9)}}},
		{"coverage of the whole archive", `:time_coverage_start = "1997-09-04T00:00:00Z" ; :time_coverage_end = "2024-01-09T00:00:00Z" ;`, "", nil},
		{"coverage of other days", `:time_coverage_start = "2024-01-02T00:00:00Z" ; :time_coverage_end = "2024-01-03T00:00:00Z" ;`, "", nil},
		{"none", "", "", nil},
	}
	for _, tt := range tests {
		cdl := withError(fmt.Sprintf(sst, tt.declared), "", `sst = 290, 291 ; `+tt.numbers)
		if before, after, ok := strings.Cut(cdl, "dimensions: nv = 2 ; variables:"); ok { // CDL has one section of each
			cdl = strings.Replace(before, "lon = 2 ;", "lon = 2 ; nv = 2 ;", 1) + after
		}
		g := mustRead(t, ncgen(t, "nc4", "m.nc", cdl), Options{})
		if !slices.Equal(g.Bounds, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, g.Bounds, tt.want)
		}
	}
}

// A reader who asks for the error itself must get its numbers, which lie outside
// of the range of the quantity.
func TestAnErrorIsNotReadAsTheQuantity(t *testing.T) {
	t.Parallel()
	g := mustRead(t, ncgen(t, "nc4", "m.nc", withError(strings.Replace(sstOf, `sst:standard_name = "sea_surface_temperature" ;`, "", 1),
		`float sst_uncertainty(time, lat, lon) ; sst_uncertainty:units = "kelvin" ;`, `sst = 290, 291 ; sst_uncertainty = 0.25, 0.5 ;`)),
		Options{Variable: "sst_uncertainty"})
	if v := g.Fields[0].Values; v[0] != 0.25 || v[1] != 0.5 || g.Product != "" {
		t.Errorf("the error reads as %v of the product %q", v, g.Product)
	}
}

// A product of ours passes on the quality of its granule, and has values where that
// was low; its layout may have another name for the variable that is asked for.
func TestAProductIsReadWithItsFilledCellsUnderTheNameOfItsLayout(t *testing.T) {
	t.Parallel()
	cdl := withError(sstOf, "byte quality_level(time, lat, lon) ;", "sst = 290, 291 ; quality_level = 5, 0 ;")
	granule := mustRead(t, ncgen(t, "nc4", "granule.nc", cdl), Options{Variable: "sst"})
	product := mustRead(t, ncgen(t, "nc4", "product.nc", strings.Replace(cdl, "data:", `:lacuna_model = "oi" ; :lacuna_variables = "sst sst_uncertainty flags" ; data:`, 1)),
		Options{Variable: "SST_of_the_granule"})
	seen, filled := granule.Fields[0].Values, product.Fields[0].Values
	if seen[1] == seen[1] || filled[0] != 290 || filled[1] != 291 {
		t.Errorf("a cell of low quality is %v in a granule and %v in a product", seen[1], filled[1])
	}
}

// The salinity of SMAP comes with its uncertainty.
func TestErrorsOfRealSalinity(t *testing.T) {
	g := mustRead(t, realdata.Path(t, "smap_sss/SMAP_L3_SSS_20210105_8DAYS_V5.0.nc"), Options{Variable: "smap_sss"})
	seen, known := 0, 0
	for i, v := range g.Fields[0].Values {
		if v != v { // NaN
			continue
		}
		seen++
		if e := g.Errors[0][i]; e > 0 && e < 10 {
			known++
		}
	}
	if seen == 0 || known < seen*9/10 {
		t.Errorf("%d of %d observations have an error of 0 to 10", known, seen)
	}
}
