package netcdf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/internal/cdl"
)

// provenance returns the attributes on inputs, model and time of making.
// Nothing here is taken from the clock.
func (p *Product) provenance() []Attr {
	made := p.Filled
	if made.IsZero() {
		made = p.Created
	}
	created := made.UTC().Format(time.RFC3339)
	var names, inputs []string
	for _, in := range p.Inputs {
		if in.Role == "" || in.Role == RoleTarget {
			names = append(names, in.Name)
		}
		inputs = append(inputs, strings.TrimSpace(fmt.Sprintf("%s sha256:%s %s", in.Name, in.SHA256, in.Role)))
	}
	what := "gaps of " + p.Variable + " in " + strings.Join(names, ", ")
	if p.Input() == NoGranule {
		what = p.Variable + " at a time of which no granule existed, from those around it,"
	}
	line := fmt.Sprintf("%s lacuna %s: filled %s by %s (model %s, seed %d, revision %d)",
		created, p.Version, what, p.Method, p.Model, p.Seed, p.Revision)
	attrs := []Attr{
		{Name: "date_created", Value: created},
		{Name: "date_issued", Value: created},
		{Name: "date_modified", Value: created},
		{Name: "date_metadata_modified", Value: created},
		{Name: "history", Value: join("\n", text(p.Source.Attrs, "history"), line)},
		{Name: "lacuna_inputs", Value: strings.Join(inputs, "\n")},
		{Name: "lacuna_input", Value: p.Input()},
		{Name: "lacuna_model", Value: p.Model},
		{Name: "lacuna_seed", Value: strconv.FormatUint(p.Seed, 10)},
		{Name: "lacuna_revision", Value: []int32{int32(p.Revision)}},
		{Name: "lacuna_version", Value: p.Version},
		{Name: "lacuna_mode", Value: p.Mode},
	}
	if t := p.Trust; t != nil {
		attrs = append(attrs, Attr{Name: "lacuna_trust_model", Value: t.Model},
			Attr{Name: "lacuna_trust_weight", Value: []float64{t.Weight}}, Attr{Name: "lacuna_trust_days", Value: []int32{int32(t.Days)}})
	}
	if s := p.Sampling; s != nil {
		attrs = append(attrs, Attr{Name: "lacuna_tier", Value: s.Tier}, Attr{Name: "lacuna_members_drawn", Value: []int32{int32(s.Members)}})
		attrs = withDefault(withDefault(attrs, "lacuna_sampler", s.Sampler), "lacuna_mean", s.Mean)
	}
	attrs = withDefault(attrs, "lacuna_tests", p.Tests)
	for _, r := range p.Refused {
		attrs = append(attrs, Attr{Name: "lacuna_refused_" + r.Test, Value: []int32{int32(r.Pixels)}})
	}
	attrs = withDefault(attrs, "lacuna_sea_ice", p.SeaIce)
	attrs = withDefault(attrs, "lacuna_covariates", p.Covariates)
	if len(p.Caveats) > 0 {
		attrs = append(attrs, Attr{Name: "lacuna_caveats", Value: strings.Join(p.Caveats, "\n")})
	}
	if first, last := p.window(); !first.IsZero() {
		attrs = append(attrs, Attr{Name: "lacuna_window", Value: first.UTC().Format(time.RFC3339) + "/" + last.UTC().Format(time.RFC3339)})
	}
	for _, d := range []struct {
		name string
		at   time.Time
	}{{"lacuna_published", p.Published}, {"lacuna_fetched", p.Fetched}, {"lacuna_filled", p.Filled}} {
		if !d.at.IsZero() {
			attrs = append(attrs, Attr{Name: d.name, Value: d.at.UTC().Format(time.RFC3339)})
		}
	}
	return withDefault(attrs, "lacuna_sea_mask", p.SeaMask)
}

// carryOver adds the global attributes of the input that are still true of the
// product. An attribute that is true of the input only becomes source_<name>,
// so that nothing is lost; those about stored bytes are dropped.
func (p *Product) carryOver(attrs []Attr) []Attr {
	for _, a := range p.Source.Attrs {
		if s, ok := a.Value.(string); ok && strings.TrimSpace(s) == "" {
			continue
		}
		switch {
		case isStale(a.Name) || value(attrs, a.Name) == a.Value && cdl.TypeOf(a.Value) == "char":
			continue
		case value(attrs, a.Name) != nil || ofInputOnly(a.Name):
			a.Name = "source_" + a.Name
		}
		if value(attrs, a.Name) == nil && !isSaid(a.Name) {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// isStale reports whether an attribute is computed anew or would be false here:
// those of an earlier run of lacuna, of coverage, and those that the library
// writes.
func isStale(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{"lacuna_", "geospatial_", "time_coverage_", "_nc", "_netcdf4"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"_format", "_isnetcdf4", "_superblockversion", "class", "name", "dimension_list", "reference_list",
		"featuretype", "nb_valid_bins", "pct_valid_bins", "file_quality_index", "file_quality_level",
		"number_of_observations", "source_history", "external_variables",
	}, lower)
}

// ofInputOnly reports whether an attribute names the input, its producer or its
// making.
func ofInputOnly(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{"creation_", "creator_", "publisher_", "contributor_", "date_", "software_", "product_", "netcdf_"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"contact", "uuid", "tracking_id", "cmems_product_id", "cmems_production_unit", "naming_authority",
		"program", "metadata_link", "keywords_vocabulary", "acknowledgment", "grid_mapping", "parameter_code",
		"overall_quality", "mode_version", "gds_version_id", "title", "summary", "id", "comment", "level",
	}, lower)
}

// isSaid reports whether the text of an attribute is already part of the
// product's own attributes.
func isSaid(name string) bool {
	return slices.Contains([]string{"source_Conventions", "source_source", "source_history", "source_cdm_data_type"}, name)
}
