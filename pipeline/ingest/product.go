package ingest

import (
	"slices"
	"strings"

	"lacuna/pipeline/ingest/ncfile"
	"lacuna/pipeline/ingest/products"
)

// productOf returns the product that a file claims to be, in its title or id
// or by its name, and false if it claims none that is known.
func productOf(h *header, name string) (products.Product, bool) {
	for _, p := range products.All() {
		if p.Generic {
			continue
		}
		for _, attr := range []string{"title", "id", "product_name"} {
			if products.Canonical(ncfile.TextOf(h.Attrs, attr)) == p.Name {
				return p, true
			}
		}
		if strings.Contains(products.Canonical(name), p.Name) {
			return p, true
		}
	}
	if ncfile.TextOf(h.Attrs, "gds_version_id") != "" && h.Find("quality_level") >= 0 && h.Find("sea_surface_temperature") >= 0 {
		p, err := products.Find(products.GHRSST)
		return p, err == nil
	}
	return products.Product{}, false
}

// describes reports whether p describes the variable: by name, for a dataset, or
// by any likeness for a generic product.
func describes(p products.Product, v *headerVar) bool {
	if p.Generic {
		return likeness(p, v) > unlike
	}
	return v.Name == p.Variable || slices.Contains(p.Variables, v.Name)
}

// How closely a variable matches a generic product.
const (
	unlike = iota
	likeUnits
	likeName
	likeStandardName
)

func likeness(p products.Product, v *headerVar) int {
	name := strings.ToLower(v.Text("standard_name"))
	if name != "" && (name == p.StandardName || slices.Contains(p.StandardNames, name)) {
		return likeStandardName
	}
	if name != "" {
		return unlike // its standard name is another
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(v.Name), func(r rune) bool { return r == '_' || r == '-' }) {
		if slices.Contains(p.Variables, word) {
			return likeName
		}
	}
	if u := products.UnitOf(v.Text("units")); u.Name != "" && u.Name == p.Units {
		return likeUnits
	}
	return unlike
}
