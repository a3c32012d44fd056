package ingest

import "testing"

// Older files name quantities by aliases of the CF table. Taken for something
// unknown, chlorophyll would be filled as it is and not as its logarithm.
func TestAliasesOfAQuantityAreThatQuantity(t *testing.T) {
	chl := ProductNamed("chlorophyll")
	for name, want := range map[string]int{
		"mass_concentration_of_chlorophyll_a_in_sea_water":                    likeStandardName,
		"mass_concentration_of_chlorophyll_in_sea_water":                      likeStandardName,
		"chlorophyll_concentration_in_sea_water":                              likeStandardName,
		"concentration_of_chlorophyll_in_sea_water":                           likeStandardName,
		"mass_concentration_of_diatoms_expressed_as_chlorophyll_in_sea_water": unlike,
	} {
		v := &headerVar{Name: "x", Type: "float", Attrs: []rawAttr{text("standard_name", name)}}
		if got := chl.likeness(v); got != want {
			t.Errorf("%s: likeness to chlorophyll %d, want %d", name, got, want)
		}
	}
	if chl.Transform != "log10" {
		t.Errorf("chlorophyll is filled in the space %s", chl.Transform)
	}
}
