package ingest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"lacuna/pipeline/ingest/products"
)

// Older files name quantities by aliases of the CF table. Taken for something
// unknown, chlorophyll would be filled as it is and not as its logarithm.
func TestAliasesOfAQuantityAreThatQuantity(t *testing.T) {
	for product, names := range map[string][]string{
		"chlorophyll": {
			"mass_concentration_of_chlorophyll_a_in_sea_water", "mass_concentration_of_chlorophyll_in_sea_water",
			"chlorophyll_concentration_in_sea_water", "concentration_of_chlorophyll_in_sea_water",
			"mass_concentration_chlorophyll_concentration_in_sea_water", "Mass_Concentration_of_Chlorophyll_a_in_Sea_Water",
		},
		"sst": {
			"sea_surface_temperature", "sea_surface_skin_temperature", "sea_surface_subskin_temperature", "sea_surface_foundation_temperature",
			"sea_water_temperature", "sea_water_potential_temperature", "surface_temperature", "surface_temperature_where_open_sea",
			"lake_surface_water_temperature",
		},
		"sss": {
			"sea_surface_salinity", "sea_surface_practical_salinity", "sea_water_salinity", "sea_water_practical_salinity",
			"sea_water_absolute_salinity", "sea_water_knudsen_salinity",
		},
		"": {
			"mass_concentration_of_diatoms_expressed_as_chlorophyll_in_sea_water", "air_temperature", "sea_surface_temperature_anomaly",
			"sea_surface_height_above_geoid", "sea_ice_surface_temperature",
		},
	} {
		for _, name := range names {
			v := &headerVar{Name: "x", Type: "float", Attrs: []rawAttr{text("standard_name", name)}}
			for _, p := range []string{"chlorophyll", "sst", "sss"} {
				if got, want := likeness(products.Named(p), v) == likeStandardName, p == product; got != want {
					t.Errorf("%s is %s: %v, want %v", name, p, got, want)
				}
			}
		}
	}
}

// The range and the floor follow the units, so that they refuse the same values.
func TestUnitsOfAQuantityAreKnownInEverySpelling(t *testing.T) {
	for product, spellings := range map[string]map[string]float64{ // the lower end of the range
		"chlorophyll": {
			"mg m-3": 0.001, "mg m^-3": 0.001, "mg m**-3": 0.001, "mg.m-3": 0.001, "mg/m^3": 0.001, "milligram m-3": 0.001, "mg/m³": 0.001,
			"ug/l": 0.001, "µg L-1": 0.001, "kg m-3": 1e-9, "g m-3": 1e-6, "mg l-1": 1e-6,
		},
		"sst": {
			"degC": -2.5, "Celsius": -2.5, "degree_C": -2.5, "degrees Celsius": -2.5, "deg_C": -2.5, "°C": -2.5, "K": 270.65, "kelvin": 270.65,
			"degree_Kelvin": 270.65, "degF": 27.5,
		},
		"sss": {"1e-3": 1, "PSU": 1, "psu": 1, "pss-78": 1, "0.001": 1, "g kg-1": 1, "g/kg": 1, "kg kg-1": 1e-3},
	} {
		p := products.Named(product)
		for units, low := range spellings {
			if got := p.RangeIn(units)[0]; math.Abs(got-low) > 1e-9*max(1, math.Abs(low)) {
				t.Errorf("%s in %s begins at %g, want %g", product, units, got, low)
			}
			if u := products.UnitOf(units); u.Name != p.Units {
				t.Errorf("%s is %q, want %q", units, u.Name, p.Units)
			}
		}
	}
	if u := products.UnitOf("1"); u.Name != "" {
		t.Errorf("the unit 1 is taken for %s", u.Name)
	}
	if got := products.Named("sss").RangeIn("1"); got != [2]float64{1, 45} {
		t.Errorf("salinity in the unit 1 lies in %v", got)
	}
}

// A whole file under an old name and in SI units: the same water, in log10.
func TestChlorophyllUnderAnOldNameIsFilledInLog10(t *testing.T) {
	const mapCDL = `netcdf old {
dimensions: time = 1 ; lat = 2 ; lon = 3 ;
variables:
	double time(time) ; time:units = "days since 2024-01-01" ;
	double lat(lat) ; lat:units = "degrees_north" ;
	double lon(lon) ; lon:units = "degrees_east" ;
	double pigment(time, lat, lon) ; pigment:standard_name = "%s" ; pigment:units = "%s" ;
data:
 time = 3 ; lat = 40, 41 ; lon = 5, 6, 7 ; pigment = %s ;
}
`
	for _, tt := range []struct {
		name, units, values string
		scale               float64
	}{
		{"concentration_of_chlorophyll_in_sea_water", "mg m-3", "0.2, 0.3, 0.4, 500, 0.00001, 7", 1},
		{"chlorophyll_concentration_in_sea_water", "kg m-3", "0.2e-6, 0.3e-6, 0.4e-6, 500e-6, 1e-11, 7e-6", 1e-6},
	} {
		g := mustRead(t, ncgen(t, "nc4", "old.nc", fmt.Sprintf(mapCDL, tt.name, tt.units, tt.values)), Options{})
		if g.Product != "chlorophyll" || !g.Transform.Log10 || math.Abs(float64(g.Transform.Floor)/(0.001*tt.scale)-1) > 1e-6 {
			t.Errorf("%s is read as %q in %+v", tt.name, g.Product, g.Transform)
		}
		if observed, refused := g.Fields[0].ObservedMask().Count(), g.Rejected[0].Count(); observed != 4 || refused != 2 {
			t.Errorf("%s in %s: %d observed, %d refused, want 4 and 2", tt.name, tt.units, observed, refused)
		}
		if strings.Contains(strings.Join(g.Notes, " "), "by its units only") {
			t.Errorf("it was recognised by its units only: %q", g.Notes)
		}
	}
}
