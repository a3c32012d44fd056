package netcdf

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/internal/cdl"
)

func TestCoordinatesAreMendedWhereCFDemands(t *testing.T) {
	tests := []struct {
		name, variable, attr, want string
		product                    func() Product
	}{
		{"no attributes", "lat", "units", "degrees_north", gulfOfMaine},
		{"no attributes", "lon", "standard_name", "longitude", gulfOfMaine},
		{"spelled with a blank", "lat", "units", "degrees_north", alboran},
		{"spelled with a blank", "lon", "units", "degrees_east", alboran},
		{"time is kept", "time", "units", "days since 2017-01-01", alboran},
		{"time without a year", "time", "units", "days since 1970-01-01", testRegion},
		{"time without a year tells it", "time", "comment", `the input counts "days since day-1 (year unknown)", which names no date; 1970-01-01 stands in for it`, testRegion},
		{"months can be decoded", "time", "calendar", "360_day", gulfOfMaineMonthly},
		{"calendar in lower case", "time", "calendar", "gregorian", blackSea},
		{"time is added", "time", "units", "seconds since 1970-01-01 00:00:00", smap},
		{"auxiliary coordinates are pointed at", "smap_sss", "coordinates", "depth mode model revision observed_fraction", smap},
		{"units that UDUNITS knows", "SST", "units", "degree_Celsius", alboran},
		{"the words of the input", "SST", "input_units", "degree Celsius", alboran},
		{"practical salinity", "Sea_Surface_Salinity", "units", "1e-3", smos},
		{"no dangling references", "sea_surface_temperature", "ancillary_variables", "quality_level sses_bias sses_standard_deviation sea_surface_temperature_uncertainty flags", ghrsst},
		{"maps of the input in words", "sses_bias", "long_name", "sses bias of the input", ghrsst},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFile(t, tt.product())
			v, ok := f.variable(tt.variable)
			if got := text(v.Attrs, tt.attr); !ok || got != tt.want {
				t.Errorf("%s:%s = %q, want %q", tt.variable, tt.attr, got, tt.want)
			}
			for _, name := range []string{"lat", "lon", "time", "depth"} {
				c, _ := f.variable(name)
				if value(c.Attrs, "_FillValue") != nil || value(c.Attrs, "missing_value") != nil {
					t.Errorf("coordinate %s has a fill value", name)
				}
			}
		})
	}
}

func TestAddedTimeIsThatOfTheGranule(t *testing.T) {
	f := mustFile(t, smap())
	v, _ := f.variable("time")
	got := time.Unix(int64(number(v.Raw, v.Type)), 0).UTC()
	if want := day(2021, 1, 5); !got.Equal(want) || !slices.Equal(v.Dims, []string{"time"}) {
		t.Errorf("time is %v along %v, want %v along time", got, v.Dims, want)
	}
}

func TestTimeIsAddedAlongATimeDimensionThatHasNone(t *testing.T) {
	p := gulfOfMaine()
	p.Source.Vars = p.Source.Vars[1:]
	f := mustFile(t, p)
	v, _ := f.variable("time")
	if len(v.Dims) != 1 || number(v.Raw[8:], v.Type) != float64(day(2018, 8, 2).Unix()) {
		t.Errorf("time runs along %v with %x", v.Dims, v.Raw)
	}
}

func TestUncertaintySaysItsSpace(t *testing.T) {
	sst, _ := mustFile(t, ghrsst()).variable("sea_surface_temperature_uncertainty")
	if got, want := text(sst.Attrs, "standard_name"), "sea_surface_subskin_temperature standard_error"; got != want {
		t.Errorf("standard_name = %q, want %q", got, want)
	}
	if got := text(sst.Attrs, "units"); got != "kelvin" {
		t.Errorf("units = %q, want those of the variable", got)
	}
	chl, _ := mustFile(t, blackSea()).variable("CHL_uncertainty")
	if got := text(chl.Attrs, "units"); got != "1" {
		t.Errorf("units of a logarithm are %q, want 1", got)
	}
	if got := text(chl.Attrs, "comment"); !strings.Contains(got, "log10(CHL / (milligram m^-3))") {
		t.Errorf("comment = %q, want it to name the logarithm", got)
	}
	if value(chl.Attrs, "standard_name") != nil {
		t.Error("the deviation of a logarithm carries the standard name of a concentration")
	}
}

func TestUncertaintySaysFromHowManyDaysItsCalibrationComes(t *testing.T) {
	v, _ := mustFile(t, emptyDay()).variable("CHL_uncertainty")
	if got := cdl.Numbers(value(v.Attrs, "calibration_days")); len(got) != 1 || got[0] != 12 {
		t.Errorf("calibration_days = %v, want 12", got)
	}
	if v, _ = mustFile(t, blackSea()).variable("CHL_uncertainty"); value(v.Attrs, "calibration_days") != nil {
		t.Error("an uncertainty that was not calibrated says so from some days")
	}
}

func TestAProductSaysHowFarAModelWasFollowedAndWhatDoesNotHold(t *testing.T) {
	p := blackSea()
	for _, name := range []string{"lacuna_trust_model", "lacuna_trust_weight", "lacuna_trust_days", "lacuna_caveats"} {
		if got := value(mustFile(t, p).Attrs, name); got != nil {
			t.Errorf("%s = %v without a model that has to be trusted", name, got)
		}
	}
	p.Trust, p.Caveats = &Trust{Model: "starter", Weight: 0.4, Days: 23}, []string{"one", "two"}
	got := mustFile(t, p).Attrs
	weight, days := cdl.Numbers(value(got, "lacuna_trust_weight")), cdl.Numbers(value(got, "lacuna_trust_days"))
	if text(got, "lacuna_trust_model") != "starter" || len(weight) != 1 || weight[0] != 0.4 || len(days) != 1 || days[0] != 23 || text(got, "lacuna_caveats") != "one\ntwo" {
		t.Errorf("%q to %v from %v days, caveats %q", text(got, "lacuna_trust_model"), weight, days, text(got, "lacuna_caveats"))
	}
}

func TestGlobalsOfTheInputSurviveWhereTheyAreStillTrue(t *testing.T) {
	got := mustFile(t, blackSea()).Attrs
	want := map[string]any{ // nil: absent
		"processing_level": "L4", "product_level": nil, "source_product_level": "L3",
		"title": "Gap-free analysis of Chlorophyll a concentration", "source_title": "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D",
		"institution": "Lacuna", "source_institution": "CNR-GOS",
		"creation_date": nil, "source_creation_date": "Tue Mar 26 2024", "start_date": "2024-03-25",
		"naming_authority": "lacuna", "source_naming_authority": "CMEMS",
		"cmems_product_id": nil, "source_cmems_product_id": "OCEANCOLOUR_BLK_BGC_L3_MY_009_153",
		"source":               "surface observation; gaps filled by optimal interpolation in space and time",
		"Conventions":          "CF-1.8, ACDD-1.3",
		"source_Conventions":   nil,
		"file_quality_index":   nil,
		"lacuna_seed":          "7",
		"lacuna_mode":          "near-real-time",
		"date_created":         "2024-05-06T00:00:00Z",
		"time_coverage_start":  "2024-03-25T00:00:00Z",
		"geospatial_lat_units": "degrees_north",
		"id":                   "lacuna_test_l4-gapfree_P1D_20240325_r1",
	}
	for name, w := range want {
		if g := value(got, name); g != w {
			t.Errorf("%s = %v, want %v", name, g, w)
		}
	}
	inputs := text(got, "lacuna_inputs")
	for _, in := range blackSea().Inputs {
		if !strings.Contains(inputs, in.Name+" sha256:"+in.SHA256) {
			t.Errorf("lacuna_inputs = %q, which lacks %s", inputs, in.Name)
		}
	}
}

func TestHistoryIsAppendedTo(t *testing.T) {
	lines := strings.Split(text(mustFile(t, ghrsst()).Attrs, "history"), "\n")
	if len(lines) != 2 || lines[0] != "2017-01-02 made by the producer" || !strings.HasPrefix(lines[1], "2017-01-02T05:00:00Z lacuna 0.1.0: ") {
		t.Errorf("history = %q", lines)
	}
}

// The file was made when it was filled; its revision may be older.
func TestDatesAreThoseOfTheMaking(t *testing.T) {
	filled, without := mustFile(t, ghrsst()).Attrs, mustFile(t, blackSea()).Attrs
	for name, want := range map[string]string{
		"date_created": "2017-01-02T05:00:00Z", "date_modified": "2017-01-02T05:00:00Z", "lacuna_published": "2017-01-02T03:00:00Z",
		"lacuna_fetched": "2017-01-02T04:00:00Z", "lacuna_filled": "2017-01-02T05:00:00Z", "source_date_created": "20170102T000000Z",
	} {
		if got := text(filled, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := text(without, "date_created"); got != "2024-05-06T00:00:00Z" {
		t.Errorf("date_created without a date of filling = %q, want the time of the revision", got)
	}
	for _, name := range []string{"lacuna_published", "lacuna_fetched", "lacuna_filled"} {
		if value(without, name) != nil {
			t.Errorf("%s is said, and nobody knows it", name)
		}
	}
}

// A product fed in again must not pile up attributes or contradict itself.
func TestAProductOfAProductIsConsistent(t *testing.T) {
	p := blackSea()
	first := mustFile(t, p)
	p.Source.Attrs = first.Attrs
	for _, name := range []string{"mode", "revision", "time_bnds"} {
		v, _ := first.variable(name)
		p.Source.Vars = append(p.Source.Vars, v)
	}
	p.Source.Dims = append(p.Source.Dims, Dim{Name: "nv", Len: 2})
	p.Source.Vars[0].Attrs = with(p.Source.Vars[0].Attrs, "bounds", "time_bnds")
	p.Revision = 2
	second := mustFile(t, p)
	if err := second.Validate(); err != nil {
		t.Error(err)
	}
	if got := value(second.Attrs, "lacuna_revision").([]int32)[0]; got != 2 {
		t.Errorf("lacuna_revision = %d, want 2", got)
	}
	if r, ok := second.variable("revision"); !ok || number(r.Raw, r.Type) != 2 || len(second.Vars) != len(first.Vars) {
		t.Errorf("revision of the field is %x, and it has %d variables, want 2 and %d", r.Raw, len(second.Vars), len(first.Vars))
	}
	if got := strings.Count(text(second.Attrs, "history"), "\n"); got != 1 {
		t.Errorf("history has %d line breaks, want 1", got)
	}
}

func TestConfiguredCreditsReplaceTheProgram(t *testing.T) {
	p := ghrsst()
	p.Credits = Credits{Institution: "an institute", License: "CC-BY-4.0"}
	got := mustFile(t, p).Attrs
	if text(got, "creator_institution") != "an institute" || text(got, "license") != "CC-BY-4.0" || text(got, "source_license") != "open" {
		t.Errorf("institution %q, license %q, of the input %q", text(got, "creator_institution"), text(got, "license"), text(got, "source_license"))
	}
	if text(got, "creator_name") != "Lacuna" {
		t.Errorf("creator_name = %q, want the program where nothing is configured", text(got, "creator_name"))
	}
}
