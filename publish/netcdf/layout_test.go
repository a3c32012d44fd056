package netcdf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/internal/cdl"
	"lacuna/publish/netcdf/compliance"
)

// inLayout returns the fixtures that a layout has a place for.
func inLayout(l Layout) map[string]Product {
	out := map[string]Product{}
	for name, make := range fixtures {
		p := make()
		p.Layout = l
		var refused *LayoutError
		if _, err := p.File(); !errors.As(err, &refused) {
			out[name] = p
		}
	}
	return out
}

func TestAProductOfEveryLayoutIsReadBackWithinItsPacking(t *testing.T) {
	t.Parallel()
	for _, l := range Layouts() {
		products := inLayout(l)
		if least := map[Layout]int{Plain: len(fixtures), CMEMS: len(fixtures), GHRSST: 3}[l]; len(products) < least {
			t.Fatalf("layout %s takes %v only", l, slices.Sorted(maps.Keys(products)))
		}
		for name, p := range products {
			t.Run(string(l)+"/"+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "p.nc")
				if err := WriteProduct(path, p); err != nil {
					t.Fatal(err)
				}
				sameAsProduct(t, path, p)
			})
		}
	}
}

// sameAsProduct compares a file with the product that it was written from, cell by cell.
func sameAsProduct(t *testing.T, path string, p Product) {
	t.Helper()
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(image)
	if err != nil {
		t.Fatal(err)
	}
	names := NamesIn(f.Attrs, p.Variable)
	value, _ := f.variable(names.Value)
	sigma, _ := f.variable(names.Uncertainty)
	flags, _ := f.variable(names.Flags)
	if !bytes.Equal(flags.Raw, p.Flags) {
		t.Fatalf("flags %s are not those of the product", names.Flags)
	}
	unpacked, log := Sigma(sigma)
	if log != (p.Space == Log10) {
		t.Errorf("%s is of logarithms: %v, want %v", sigma.Name, log, p.Space == Log10)
	}
	values, _ := p.Restored(Unpack(value), nil)
	_, sigmas := p.Restored(nil, Unpack(sigma))
	if !slices.EqualFunc(sigmas, restoredDecades(p, unpacked), alike) {
		t.Errorf("Restored gives other uncertainties than Sigma")
	}
	source, _ := p.Source.variable(p.Variable)
	observed := Unpack(source)
	ofValue, ofSigma := p.Rounding()
	for i, flag := range p.Flags {
		want := p.Value[i]
		if Observed(flag) {
			want = observed[i]
		}
		if flag&(Land|NotReconstructible) != 0 {
			if !math.IsNaN(float64(values[i])) || !math.IsNaN(float64(sigmas[i])) {
				t.Fatalf("cell %d with flags %#x is %v ± %v, want none", i, flag, values[i], sigmas[i])
			}
			continue
		}
		room := ofValue + inputStep(source)/2 + 1e-5*math.Abs(float64(want))
		if d := math.Abs(float64(values[i] - want)); !(d <= room) {
			t.Fatalf("cell %d with flags %#x is %v, want %v within %v", i, flag, values[i], want, room)
		}
		if d := math.Abs(float64(sigmas[i] - p.Sigma[i])); !(d <= ofSigma+1e-3*float64(p.Sigma[i])) {
			t.Fatalf("uncertainty of cell %d is %v, want %v", i, sigmas[i], p.Sigma[i])
		}
	}
	line, err := f.Timeline(names.Value, p.Times[0])
	if err != nil || !slices.EqualFunc(line.Times, p.Times, func(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Second }) {
		t.Errorf("times are %v, %v, want %v", line.Times, err, p.Times)
	}
}

// restoredDecades is sigma of Sigma in the units of the input, where it is no
// logarithm.
func restoredDecades(p Product, sigma []float32) []float32 {
	if p.Space == Log10 {
		return sigma
	}
	_, sigma = p.Restored(nil, sigma)
	return sigma
}

func alike(a, b float32) bool { return a == b || a != a && b != b }

// inputStep is the step of the input's packing.
func inputStep(v Var) float64 {
	if s := cdl.Numbers(value(v.Attrs, "scale_factor")); len(s) == 1 {
		return s[0]
	}
	return 0
}

func TestKelvinIsMadeOfDegreesAndStoredBitsOfGHRSSTAreKept(t *testing.T) {
	t.Parallel()
	warm := alboran()
	warm.Layout = GHRSST
	f := mustFile(t, warm)
	v, _ := f.variable("analysed_sst")
	if got := Unpack(v)[0]; math.Abs(float64(got)-(14+273.15)) > 0.005 { // the first cell was observed at 14 degC
		t.Errorf("14 degC is stored as %v K", got)
	}
	packed := ghrsst()
	source, _ := packed.Source.variable(packed.Variable)
	packed.Layout = GHRSST
	v, _ = mustFile(t, packed).variable("analysed_sst")
	kept := 0
	for i, flag := range packed.Flags {
		if Observed(flag) {
			kept++
			if !bytes.Equal(v.Raw[2*i:2*i+2], source.Raw[2*i:2*i+2]) {
				t.Errorf("observed cell %d has other bits", i)
			}
		}
	}
	if kept == 0 {
		t.Error("nothing was observed")
	}
}

func TestALayoutRefusesWhatItHasNoPlaceFor(t *testing.T) {
	t.Parallel()
	for _, p := range []Product{blackSea(), smos(), smap()} {
		p.Layout = GHRSST
		_, err := p.File()
		var refused *LayoutError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "not a sea surface temperature") || !strings.Contains(err.Error(), "set layout: lacuna") {
			t.Errorf("%s in the layout ghrsst: %v", p.Variable, err)
		}
	}
}

func TestMembersHaveTheNamesOfTheirLayout(t *testing.T) {
	t.Parallel()
	p := alboran()
	p.Layout = GHRSST
	members := membersOf(p)
	f, err := p.MembersFile(members)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := f.variable("analysed_sst")
	if !ok || v.Dims[0] != "realization" {
		t.Fatalf("members are along %v", v.Dims)
	}
	got, _ := p.Restored(Unpack(v), nil)
	for k, member := range members {
		for i, flag := range p.Flags {
			if x := got[k*len(member)+i]; flag&Interpolated != 0 && math.Abs(float64(x-member[i])) > 0.00501 {
				t.Fatalf("member %d is %v at cell %d, want %v", k, x, i, member[i])
			}
		}
	}
}

// The sea ice that was looked for goes before that of the input.
func TestTheLayoutGHRSSTHasTheIceOfTheDataset(t *testing.T) {
	t.Parallel()
	p := ghrsst()
	p.Layout, p.SeaIce = GHRSST, "of the file ice.nc"
	own := Var{Name: "sea_ice_fraction", Type: "byte", Dims: []string{"time", "lat", "lon"}, Attrs: []Attr{{Name: "units", Value: "%"}}, Raw: make([]byte, len(p.Flags))}
	p.Source.Vars = append(p.Source.Vars, own)
	for i := range p.Flags {
		p.IcePercent = append(p.IcePercent, byte(i))
	}
	p.IcePercent[1] = NoIce
	f := mustFile(t, p)
	ice, _ := f.variable("sea_ice_fraction")
	mask, _ := f.variable("mask")
	for i, got := range Unpack(ice) {
		if want := float64(i) / 100; i != 1 && math.Abs(float64(got)-want) > 1e-6 || i == 1 && got == got {
			t.Errorf("the fraction of cell %d is %v, want %v", i, got, want)
		}
		if icy := mask.Raw[i]&8 != 0; icy != (i >= 15 && p.Flags[i]&Land == 0) {
			t.Errorf("cell %d with %d %% of ice is icy: %v", i, i, icy)
		}
	}
	if got := text(ice.Attrs, "source"); got != "sea ice of the file ice.nc" {
		t.Errorf("its source is %q", got)
	}
}

// The mandatory content of a Level-4 file: chapter 9 of the GHRSST data specification
// GDS 2.1 (zenodo.org/records/6984989), and the CDL of its example.
func TestTheLayoutGHRSSTIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	p := ghrsst()
	p.Layout = GHRSST
	ice := Var{Name: "sea_ice_fraction", Type: "float", Dims: []string{"time", "lat", "lon"}, Attrs: []Attr{{Name: "_FillValue", Value: []float32{-1}}, {Name: "units", Value: "%"}}}
	for i := range p.Flags {
		ice.Raw = appendNumber(ice.Raw, "float", float64(i))
	}
	p.Source.Vars = append(p.Source.Vars, ice)
	f := mustFile(t, p)
	for name, want := range map[string]struct {
		typ    string
		fill   any
		scale  float64
		offset float64
		units  string
	}{
		"analysed_sst":     {"short", []int16{-32768}, 0.01, 273.15, "K"},
		"analysis_error":   {"short", []int16{-32768}, 0.01, 0, "K"},
		"sea_ice_fraction": {"byte", []int8{-128}, 0.01, 0, "1"},
	} {
		v, ok := f.variable(name)
		scale, offset := cdl.Numbers(value(v.Attrs, "scale_factor")), cdl.Numbers(value(v.Attrs, "add_offset"))
		if !ok || v.Type != want.typ || fmt.Sprint(value(v.Attrs, "_FillValue")) != fmt.Sprint(want.fill) || text(v.Attrs, "units") != want.units ||
			scale[0] != want.scale || offset[0] != want.offset || !slices.Equal(v.Dims, []string{"time", "lat", "lon"}) || text(v.Attrs, "long_name") == "" {
			t.Errorf("%s is a %s along %v with %v", name, v.Type, v.Dims, v.Attrs)
		}
	}
	axis, _ := f.variable("time")
	if since := day(1981, 1, 1).Add(time.Duration(number(axis.Raw, axis.Type)) * time.Second); axis.Type != "int" || text(axis.Attrs, "units") != "seconds since 1981-01-01 00:00:00" || !since.Equal(p.Times[0]) {
		t.Errorf("time is a %s in %q: %v, want %v", axis.Type, text(axis.Attrs, "units"), since, p.Times[0])
	}
	mask, _ := f.variable("mask")
	for i, flag := range p.Flags {
		want := byte(1) // water
		switch {
		case flag&Land != 0:
			want = 2
		case i >= 15: // percent of ice
			want = 1 | 8
		}
		if mask.Raw[i] != want {
			t.Errorf("mask of cell %d with flags %#x and %d %% of ice is %d, want %d", i, flag, i, mask.Raw[i], want)
		}
	}
	for _, name := range []string{
		"Conventions", "title", "summary", "references", "institution", "history", "comment", "license", "id", "naming_authority", "product_version", "uuid",
		"gds_version_id", "netcdf_version_id", "date_created", "spatial_resolution", "time_coverage_start", "time_coverage_end", "instrument", "instrument_vocabulary",
		"metadata_link", "keywords", "keywords_vocabulary", "standard_name_vocabulary", "geospatial_lat_units", "geospatial_lon_units", "geospatial_bounds",
		"acknowledgment", "project", "publisher_name", "publisher_url", "publisher_email", "processing_level", "cdm_data_type",
	} {
		if text(f.Attrs, name) == "" {
			t.Errorf("there is no global attribute %s", name)
		}
	}
}

// The names of the variables in daily Level-4 products of the catalogue.
func TestTheLayoutCMEMSHasTheNamesOfTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		of                  Product
		value, error, units string // units of the error
	}{
		{blackSea(), "CHL", "CHL_uncertainty", "%"},                 // OCEANCOLOUR_GLO_BGC_L4_MY_009_104
		{alboran(), "analysed_sst", "analysis_error", "kelvin"},     // SST_MED_SST_L4_NRT_OBSERVATIONS_010_004
		{smos(), "sos", "sos_error", "1e-3"},                        // MULTIOBS_GLO_PHY_S_SURFACE_MYNRT_015_013
		{gulfOfMaineMonthly(), "CHL", "CHL_uncertainty", "%"},       // whatever the steps
		{gulfOfMaine(), "analysed_sst", "analysis_error", "kelvin"}, // whatever the names of the input
	} {
		tt.of.Layout = CMEMS
		f := mustFile(t, tt.of)
		v, ok := f.variable(tt.value)
		sigma, alsoOK := f.variable(tt.error)
		if n := len(v.Dims); !ok || !alsoOK || text(sigma.Attrs, "units") != tt.units || !slices.Equal(v.Dims[n-3:], []string{"time", "lat", "lon"}) {
			t.Errorf("%s: %s along %v, %s in %q", tt.of.Variable, v.Name, v.Dims, sigma.Name, text(sigma.Attrs, "units"))
		}
		if axis, _ := f.variable("time"); text(axis.Attrs, "units") != since1981 {
			t.Errorf("%s: time in %q", tt.of.Variable, text(axis.Attrs, "units"))
		}
	}
}

func TestProductsInOtherLayoutsPassAnIndependentChecker(t *testing.T) {
	if testing.Short() {
		t.Skip("what Python reads; leave -short out to run it")
	}
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for _, l := range []Layout{GHRSST, CMEMS} {
		products := inLayout(l)
		for i, name := range slices.Sorted(maps.Keys(products)) {
			path := filepath.Join(dir, fmt.Sprintf("%s_%d_%s.nc", l, i, strings.ReplaceAll(name, " ", "_")))
			if err := WriteProduct(path, products[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			paths = append(paths, path)
		}
	}
	compliance.Check(t, paths...)
}

// The checker of the GHRSST community is not in a registry: pip install it from a
// clone of GHRSST/GDS-checker. Without it the test of the specification stands alone.
func TestTheLayoutGHRSSTPassesTheCheckerOfItsCommunity(t *testing.T) {
	t.Parallel()
	python := compliance.Python(t)
	if exec.Command(python, "-c", "import gds_checker").Run() != nil {
		t.Skipf("%s has no gds_checker: clone GHRSST/GDS-checker and pip install it to run this test", python)
	}
	p := ghrsst()
	p.Layout = GHRSST
	p.Source.Attrs = append(p.Source.Attrs, Attr{Name: "sensor", Value: "AVHRR"})
	p.Credits = Credits{URL: "https://example.org"}
	path := filepath.Join(t.TempDir(), "20170101000000-OSISAF-L4_GHRSST-SSTsubskin-test-MED-v02.1-fv01.0.nc")
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-m", "gds_checker.gds_checker", path).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("Checking variables...")) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range regexp.MustCompile(`(?m)^(ERROR|CRITICAL|WARNING).*$`).FindAllString(string(out), -1) {
		if !strings.Contains(line, "'sea_ice_fraction_error' missing") { // optional in the specification, and not known
			t.Error(line)
		}
	}
}
