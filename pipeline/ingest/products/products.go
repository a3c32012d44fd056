// Package products is the table of datasets and quantities that are known before
// a file is opened: names of variables, CF names with their aliases and old
// spellings, units, transform, range and quality rules.
//
// A new product is a row here. How a file is recognised as one of them is the part
// of package ingest.
package products

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Product is the prior knowledge of a dataset, before its files are opened.
type Product struct {
	Name          string // dataset id of the archive, or a generic name
	Title         string
	Variable      string   // read unless Options.Variable names another
	Variables     []string // alternatives of the same nature, selected by Options.Variable
	StandardName  string
	StandardNames []string   // further standard names of the same quantity
	Units         string     // units of Range and Floor
	Transform     string     // identity or log10
	Floor         float64    // smallest value whose logarithm is taken
	Range         [2]float64 // physical values outside are rejected
	Quality       []string
	Generic       bool // recognised by variable, standard name or units instead of by dataset id
}

// DefaultFloor is a tenth of the clearest water's chlorophyll, in mg m-3, and
// the floor of log10 where no product says otherwise.
const DefaultFloor = 0.001

// All returns the table, sorted by name.
func All() []Product {
	out := slices.Concat(planktonProducts(), salinityProducts(), genericProducts())
	slices.SortFunc(out, func(a, b Product) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// chlorophyll returns the common part of all chlorophyll products. Sensors report values
// down to 1e-5 where the atmospheric correction went wrong; 0.001 and 100 are
// the ends that NASA's own products use.
func chlorophyll() Product {
	return Product{
		Variable:     "CHL",
		StandardName: "mass_concentration_of_chlorophyll_a_in_sea_water",
		// After the first come its aliases in the CF table, which older files have, and
		// the name that NASA's own files have instead.
		StandardNames: []string{
			"mass_concentration_of_chlorophyll_in_sea_water",
			"chlorophyll_concentration_in_sea_water", "concentration_of_chlorophyll_in_sea_water",
			"mass_concentration_chlorophyll_concentration_in_sea_water",
		},
		Units: "mg m-3", Transform: "log10", Floor: DefaultFloor, Range: [2]float64{0.001, 100},
	}
}

// planktonProducts lists the ocean colour of the three basins of one producer.
// The near-real-time Baltic has no multi-sensor product.
func planktonProducts() []Product {
	basins := map[string]string{"blk": "Black Sea", "bal": "Baltic Sea", "med": "Mediterranean Sea"}
	modes := map[string]string{"my": "multi-year", "nrt": "near real time"}
	var out []Product
	for basin, sea := range basins {
		for mode, when := range modes {
			for _, sensor := range []string{"multi-1km", "olci-300m"} {
				if basin == "bal" && mode == "nrt" && sensor == "multi-1km" {
					continue
				}
				p := chlorophyll()
				p.Name = fmt.Sprintf("cmems_obs-oc_%s_bgc-plankton_%s_l3-%s_P1D", basin, mode, sensor)
				p.Title = fmt.Sprintf("%s chlorophyll and plankton groups, %s, %s, daily", sea, strings.ReplaceAll(sensor, "-", " "), when)
				p.Variables = []string{"NANO", "MICRO", "PICO", "CRYPTO", "DIATO", "DINO", "GREEN", "HAPTO", "PROKAR"}
				out = append(out, p)
			}
		}
	}
	return out
}

func salinity() Product {
	return Product{
		Variable:     "SSS",
		StandardName: "sea_surface_salinity",
		StandardNames: []string{
			"sea_surface_practical_salinity", "sea_water_salinity", "sea_water_practical_salinity",
			"sea_water_absolute_salinity", "sea_water_reference_salinity", "sea_water_preformed_salinity",
			"sea_water_knudsen_salinity", "sea_water_cox_salinity",
		},
		Units: "1e-3", Transform: "identity",
		Range: [2]float64{1, 45}, // values near 0 are failed retrievals
	}
}

func salinityProducts() []Product {
	var out []Product
	for part, title := range map[string]string{"smos-asc": "ascending passes", "smos-des": "descending passes", "smos": "all passes"} {
		p := salinity()
		p.Name = fmt.Sprintf("cmems_obs-mob_glo_phy-sss_mynrt_%s_P1D", part)
		p.Title = "SMOS sea surface salinity on the EASE grid, " + title + ", daily"
		p.Variable = "Sea_Surface_Salinity"
		p.Variables = []string{"Sea_Surface_Salinity_Rain_Corrected"}
		p.Quality = []string{"Sea_Surface_Salinity_QC == 0"}
		out = append(out, p)
	}
	return out
}

func temperature() Product {
	return Product{
		StandardName: "sea_surface_temperature",
		// After those of satellites come those of models, that of the interface to the
		// air with its alias over the sea, and that of lakes, which CF does not have.
		StandardNames: []string{
			"sea_surface_skin_temperature", "sea_surface_subskin_temperature",
			"sea_surface_foundation_temperature", "sea_water_temperature",
			"sea_water_potential_temperature", "sea_water_conservative_temperature",
			"surface_temperature", "surface_temperature_where_open_sea",
			"lake_surface_water_temperature",
		},
		Units: "degC", Transform: "identity",
		Range: [2]float64{-2.5, 45}, // sea water freezes at -1.9; shallow gulfs reach 38
	}
}

// GHRSST is the name of the product of files that follow the GHRSST data specification.
const GHRSST = "ghrsst-l3"

func genericProducts() []Product {
	chl := chlorophyll()
	chl.Name, chl.Title, chl.Generic = "chlorophyll", "chlorophyll concentration of any sensor", true
	chl.Variables = []string{"chl", "chla", "chlor", "chlora", "chlorophyll", "chlos", "chlorophylla"}

	sss := salinity()
	sss.Name, sss.Title, sss.Generic = "sss", "sea surface salinity of any sensor", true
	sss.Variables = []string{"sss", "sos", "so", "salinity", "salt"}

	sst := temperature()
	sst.Name, sst.Title, sst.Generic = "sst", "sea surface temperature of any sensor", true
	sst.Variable, sst.Variables = "SST", []string{"sst", "tos", "thetao", "lswt", "temperature"}

	ghrsst := temperature()
	ghrsst.Name, ghrsst.Title = GHRSST, "sea surface temperature, GHRSST Level 3 layout (L3U, L3C, L3S)"
	ghrsst.Variable, ghrsst.Variables = "sea_surface_temperature", []string{"adjusted_sea_surface_temperature"}
	ghrsst.Quality = []string{"quality_level >= 4"} // 4 acceptable, 5 best; 2 is often cloud
	return []Product{chl, sss, sst, ghrsst}
}

// versionTag is the suffix of a dataset id by which an archive marks a release.
var versionTag = regexp.MustCompile(`_(19|20)\d{4}$`)

// Canonical undoes the two ways in which an archive varies a dataset id: the
// release, and "myint" for the part of a multi-year dataset that is not final.
func Canonical(name string) string {
	return versionTag.ReplaceAllString(strings.Replace(name, "_myint_", "_my_", 1), "")
}

// Named returns the product of the table with a name, else an empty one.
func Named(name string) Product {
	for _, p := range All() {
		if p.Name == name {
			return p
		}
	}
	return Product{}
}

// Find returns the product of that name, or an error that lists them.
func Find(name string) (Product, error) {
	table := All()
	keys := make([]string, len(table))
	for i, p := range table {
		if p.Name == Canonical(name) {
			return p, nil
		}
		keys[i] = p.Name
	}
	return Product{}, fmt.Errorf("product is %q, must be one of %s", name, strings.Join(keys, ", "))
}
