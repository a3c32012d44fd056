package ingest

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/ingest/products"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTimesOfAllSpellings(t *testing.T) {
	tests := []struct {
		units, calendar string
		value           float64
		want            string // RFC 3339, or part of the error
	}{
		{"seconds since 1981-01-01", "", 86400, "1981-01-02T00:00:00Z"},
		{"seconds since 1981-01-01 00:00:00", "Gregorian", 1364256000, "2024-03-26T00:00:00Z"},
		{"days since 1970-01-01T00:00:00Z", "proleptic_gregorian", 0.5, "1970-01-01T12:00:00Z"},
		{"hours since 2000-1-1 6:0:0.0", "standard", 1, "2000-01-01T07:00:00Z"},
		{"minutes since 2000-01-01 00:00:00 UTC", "", 90, "2000-01-01T01:30:00Z"},
		{"hours since 2000-01-01 00:00:00 +02:00", "", 0, "1999-12-31T22:00:00Z"},
		{"hours since 2000-01-01 00:00 -0330", "", 0, "2000-01-01T03:30:00Z"},
		{"days since 19810101", "", 1, "1981-01-02T00:00:00Z"},
		{"weeks since 2020-02-29", "", 1, "2020-03-07T00:00:00Z"},
		{"months since 2018-01-31", "", 1, "2018-02-28T00:00:00Z"},
		{"months since 2018-01-01", "", 11.5, "2018-12-16T12:00:00Z"},
		{"years since 2020-02-29", "", 1, "2021-02-28T00:00:00Z"},
		{"nanoseconds since 1970-01-01", "", 1.6e18, "2020-09-13T12:26:40Z"},
		{"days since day-1 (year unknown)", "", 364, "1970-12-31T00:00:00Z"},
		// The standard calendar is Julian before 1582: cftime.num2date(738000,
		// "days since 0001-01-01", "standard") is 2021-07-28, proleptic 2021-07-30.
		{"days since 0001-01-01", "standard", 738000, "2021-07-28T00:00:00Z"},
		{"days since 0001-01-01", "proleptic_gregorian", 738000, "2021-07-30T00:00:00Z"},
		{"days since 1582-10-04", "gregorian", 1, "1582-10-15T00:00:00Z"},
		{"days since 2000-01-01", "noleap", 1, "noleap"},
		{"days since 2000-01-01", "", 1e300, "no date"},
		{"months since 2000-01-01", "", -1e300, "no date"},
		{"days since 2000-01-01", "", math.NaN(), "no date"},
		{"days", "", 1, `"days"`},
	}
	for _, tt := range tests {
		v := &headerVar{Name: "time", Type: "double", Attrs: []rawAttr{text("units", tt.units), text("calendar", tt.calendar)}}
		times, notes, err := timesOf(v, []float64{tt.value})
		got := ""
		if err != nil {
			got = wantBad(t, err).Problem
		} else {
			got = times[0].Format(time.RFC3339Nano)
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%g %s (%s) is %s, want %s", tt.value, tt.units, tt.calendar, got, tt.want)
		}
		if strings.Contains(tt.units, "unknown") != (len(notes) == 1 && strings.Contains(notes[0], "1970-01-01")) {
			t.Errorf("%s: notes %q", tt.units, notes)
		}
	}
}

func text(name, value string) rawAttr { return rawAttr{Name: name, Type: "char", Data: []byte(value)} }

func TestDatesInNamesAndAttributes(t *testing.T) {
	tests := []struct{ name, want string }{
		{"SMAP_L3_SSS_20210105_8DAYS_V5.0.nc", "2021-01-05T00:00:00Z"},
		{"20240326_cmems_obs-oc_blk.nc", "2024-03-26T00:00:00Z"},
		{"A2018213.L3m_DAY_SST.nc", "2018-08-01T00:00:00Z"},
		{"X2020366.nc", "2020-12-31T00:00:00Z"},
		{"sst-2018-08-01.nc", "2018-08-01T00:00:00Z"},
		{"20180801120000-OSISAF-L3C_GHRSST-SSTsubskin.nc", "2018-08-01T12:00:00Z"},
		{"CATDS_CSF2QA_20240101T000000_20240101T235959_334_1.nc", "2024-01-01T00:00:00Z"},
		{"00000000_99999999_20240101.nc", "2024-01-01T00:00:00Z"}, // numbers that are no date are skipped
		{"20241301.nc", ""},
		{"A2019366.nc", ""},
		{"chl.nc", ""},
		{"v123456789.nc", ""},
	}
	for _, tt := range tests {
		got := ""
		if at, ok := dateInName(tt.name); ok {
			got = at.Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("%s is of %q, want %q", tt.name, got, tt.want)
		}
	}
	h := &header{Attrs: []rawAttr{text("start_time", "08:00:00 UTC"), text("start_date", "2024-03-26")}}
	if at, note, err := dateWithout(h, "20200101.nc"); err != nil || at.Format(time.DateOnly) != "2024-03-26" || !strings.Contains(note, "start_date") {
		t.Errorf("got %v, %q, %v; attributes come before the name", at, note, err)
	}
}

// One stored array, read under different attributes.
func TestUnpacking(t *testing.T) {
	nan := float32(math.NaN())
	numbers := func(name, typ string, x ...float64) rawAttr {
		a := rawAttr{Name: name, Type: typ}
		for _, v := range x {
			switch typ {
			case "byte":
				a.Data = append(a.Data, byte(int8(v)))
			case "short":
				a.Data = append(a.Data, byte(int16(v)), byte(int16(v)>>8))
			case "float":
				a.Data = append(a.Data, le(float32(v))...)
			case "double":
				a.Data = append(a.Data, le(v)...)
			}
		}
		return a
	}
	tests := []struct {
		name     string
		typ      string
		attrs    []rawAttr
		raw      []byte
		want     []float32
		rejected []bool
	}{
		{"double missing_value of a float", "float", []rawAttr{numbers("missing_value", "double", 1e20)}, le([]float32{1e20, 1}), []float32{nan, 1}, []bool{false, false}},
		{"default fill of a float", "float", nil, le([]float32{9.96921e36, 1}), []float32{nan, 1}, []bool{false, false}},
		{"own fill replaces the default", "short", []rawAttr{numbers("_FillValue", "short", 0)}, le([]int16{-32767, 0}), []float32{-32767, nan}, []bool{false, false}},
		{"bytes have no default fill", "byte", nil, le([]int8{-127, 127}), []float32{-127, 127}, []bool{false, false}},
		{"unsigned bytes", "byte", []rawAttr{text("_Unsigned", "true"), numbers("_FillValue", "byte", -1)}, le([]int8{-1, -2}), []float32{nan, 254}, []bool{false, false}},
		{
			"unsigned range", "byte",
			[]rawAttr{text("_Unsigned", "true"), numbers("valid_range", "byte", 0, -56)},
			le([]int8{-56, -55}),
			[]float32{200, nan},
			[]bool{false, true},
		},
		{
			"range in stored numbers", "short",
			[]rawAttr{numbers("scale_factor", "double", 0.001), numbers("add_offset", "double", 30), numbers("valid_max", "short", 9999)},
			le([]int16{9999, 10000}),
			[]float32{39.999, nan},
			[]bool{false, true},
		},
		{
			"range of the type of the unpacked values", "short",
			[]rawAttr{numbers("scale_factor", "float", 0.5), numbers("valid_max", "float", 10)},
			le([]int16{20, 21}),
			[]float32{10, nan},
			[]bool{false, true},
		},
		{"float at the end of a double range", "float", []rawAttr{numbers("valid_min", "double", 0.01)}, le([]float32{0.01, 0.0099}), []float32{0.01, nan}, []bool{false, true}},
		{"double beyond single precision", "double", nil, le([]float64{1e300, math.Inf(-1)}), []float32{nan, nan}, []bool{true, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := codingOf(&headerVar{Type: tt.typ, Attrs: tt.attrs})
			must(t, err)
			got, rejected := make([]float32, len(tt.want)), make([]bool, len(tt.want))
			c.values(got, rejected, tt.raw)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("values differ (-want +got):\n%s", d)
			}
			if !slices.Equal(rejected, tt.rejected) {
				t.Errorf("rejected %v, want %v", rejected, tt.rejected)
			}
		})
	}
}

// le returns the little endian bytes of a number or a slice of them.
func le(x any) []byte {
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func TestRulesThatAreNotUnderstood(t *testing.T) {
	for _, text := range []string{"", "QC", "QC = 0", "QC == x", "QC & 0 == 0", "QC & -1 == 0", "== 4", "a b == 1", "QC == NaN"} {
		if r, err := parseRule(text); err == nil {
			t.Errorf("%q is taken for %+v", text, r)
		}
	}
}

func TestOptionsReportEverythingWrong(t *testing.T) {
	o := Options{Product: "nope", Transform: "sqrt", Range: &[2]float64{2, 1}, Quality: []string{"QC"}}
	err := o.Validate()
	for _, want := range []string{`"nope"`, `"sqrt"`, "valid_range", `"QC"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a message with %s", err, want)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value is refused: %v", err)
	}
	if err := (Config{}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("Validate() = %v, want three complaints", err)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestConfigSectionsDecode(t *testing.T) {
	cfg := DefaultConfig()
	must(t, yaml.UnmarshalWithOptions([]byte("memory_mib: 512\ncpu_time: 30s\n"), &cfg, yaml.Strict()))
	if want := (Config{MemoryMiB: 512, CPUTime: 30 * time.Second, Timeout: 2 * time.Minute}); cfg != want {
		t.Errorf("got %+v, want %+v", cfg, want)
	}
	var opt Options
	must(t, yaml.UnmarshalWithOptions([]byte("product: sst\nvariable: SST\ntransform: identity\nvalid_range: [-2, 40.5]\nquality: [QC == 0]\n"), &opt, yaml.Strict()))
	want := Options{Product: "sst", Variable: "SST", Transform: "identity", Range: &[2]float64{-2, 40.5}, Quality: []string{"QC == 0"}}
	if d := cmp.Diff(want, opt); d != "" {
		t.Errorf("options differ (-want +got):\n%s", d)
	}
}

func TestProductTableIsSound(t *testing.T) {
	table := products.All()
	if !slices.IsSortedFunc(table, func(a, b products.Product) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for _, p := range table {
		opt := Options{Product: p.Name, Transform: p.Transform, Range: &p.Range, Quality: p.Quality}
		if err := opt.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if p.Title == "" || p.Variable == "" || p.StandardName == "" || p.Units == "" || (p.Transform == "log10") != (p.Floor > 0) {
			t.Errorf("%s is incomplete: %+v", p.Name, p)
		}
	}
	for _, name := range []string{
		"cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D", "cmems_obs-oc_bal_bgc-plankton_nrt_l3-olci-300m_P1D",
		"cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D_202311", // with the tag of a release
		"cmems_obs-mob_glo_phy-sss_mynrt_smos-asc_P1D", "chlorophyll", "sst", "sss", products.GHRSST,
	} {
		if _, err := products.Find(name); err != nil {
			t.Error(err)
		}
	}
}

func TestEverySpellingOfDegrees(t *testing.T) {
	for _, u := range []string{"degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN", "degrees North", "Degrees_North"} {
		if !latKind.units(u) {
			t.Errorf("%q is not taken for latitude", u)
		}
		if lonKind.units(u) {
			t.Errorf("%q is taken for longitude", u)
		}
	}
	for _, u := range []string{"degrees_east", "degreesE", "degree_E", "degrees East"} {
		if !lonKind.units(u) {
			t.Errorf("%q is not taken for longitude", u)
		}
	}
	for _, u := range []string{"degrees", "", "degC", "north", "degrees_west"} {
		if latKind.units(u) || lonKind.units(u) {
			t.Errorf("%q is taken for a coordinate", u)
		}
	}
}
