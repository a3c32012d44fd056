package netcdf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	nc "github.com/fhs/go-netcdf/netcdf"
	"github.com/google/uuid"
)

// The bits of the mask of a Level-4 file after GDS 2.1.
const (
	maskWater, maskLand byte = 1, 2
	maskIce             byte = 8
)

// icyFraction is the share of sea ice from which a cell counts as ice, that of the
// ice edge in the products of OSI SAF and NSIDC.
const icyFraction = 0.15

// addMask returns f with the two variables of sea ice that GDS 2.1 asks for beside
// the analysis: the fraction as far as the input has it, and the mask.
func (p *Product) addMask(f File) (File, error) {
	at := slices.IndexFunc(f.Vars, func(v Var) bool { return v.Name == flagsName })
	if at < 0 {
		return f, nil // the file of members
	}
	flags := f.Vars[at]
	ice, err := p.seaIce(f, flags)
	if err != nil {
		return File{}, err
	}
	fraction := Unpack(ice)
	mask := Var{Name: "mask", Type: "byte", Dims: flags.Dims, Attrs: []Attr{
		{Name: "_FillValue", Value: []int8{math.MinInt8}},
		{Name: "long_name", Value: "sea/land/lake/ice field composite mask"},
		{Name: "flag_masks", Value: []int8{1, 2, 4, 8, 16}},
		{Name: "flag_meanings", Value: "water land optional_lake_surface sea_ice optional_river_surface"},
		{Name: "valid_min", Value: []int8{1}},
		{Name: "valid_max", Value: []int8{31}},
		{Name: "comment", Value: "water where the sea mask has sea, lakes included; the variable flags tells observed from filled cells"},
		{Name: "coverage_content_type", Value: "auxiliaryInformation"},
	}}
	mask.Attrs = withDefault(mask.Attrs, "source", p.SeaMask)
	for i, flag := range flags.Raw {
		bits := maskWater
		if flag&Land != 0 {
			bits = maskLand
		} else if fraction[i] >= icyFraction {
			bits |= maskIce
		}
		mask.Raw = append(mask.Raw, bits)
	}
	f.Vars = slices.DeleteFunc(f.Vars, func(v Var) bool { return v.Name == ice.Name })
	f.Vars = append(f.Vars, ice, mask)
	for i, v := range f.Vars {
		if v.Name == p.Names().Value {
			listed := strings.Fields(text(v.Attrs, "ancillary_variables"))
			for _, name := range []string{ice.Name, mask.Name} {
				if !slices.Contains(listed, name) {
					listed = append(listed, name)
				}
			}
			f.Vars[i].Attrs = with(v.Attrs, "ancillary_variables", strings.Join(listed, " "))
		}
	}
	return f, nil
}

// seaIce returns the fraction of sea ice: that which was looked for, else that of the
// input on the grid of flags, else one that says that it is not known.
func (p *Product) seaIce(f File, flags Var) (Var, error) {
	to := form{
		units: "1", typ: "byte", scale: 0.01, fill: math.MinInt8, lo: 0, hi: 100, times: 1,
		attrs: []Attr{
			{Name: "long_name", Value: "sea ice area fraction"},
			{Name: "standard_name", Value: "sea_ice_area_fraction"},
			{Name: "coverage_content_type", Value: "auxiliaryInformation"},
		},
	}
	ice, ok := f.variable("sea_ice_fraction")
	if len(p.IcePercent) == len(flags.Raw) {
		ok, ice = true, Var{Name: "sea_ice_fraction", Type: "byte", Dims: flags.Dims, Attrs: []Attr{
			{Name: "_FillValue", Value: []int8{math.MinInt8}}, {Name: "scale_factor", Value: []float32{0.01}}, {Name: "units", Value: "1"},
		}}
		for _, share := range p.IcePercent {
			if share == NoIce {
				share = 1 << 7 // the fill value
			}
			ice.Raw = append(ice.Raw, share)
		}
		to.attrs = append(to.attrs, Attr{Name: "source", Value: "sea ice " + p.SeaIce})
	}
	if !ok || !slices.Equal(ice.Dims, flags.Dims) {
		to.attrs = append(to.attrs, Attr{Name: "comment", Value: "the input has no sea ice, so that it is not known"})
		ice = Var{Name: "sea_ice_fraction", Type: "byte", Dims: flags.Dims, Attrs: []Attr{{Name: "_FillValue", Value: []int8{math.MinInt8}}}}
		ice.Raw = slices.Repeat([]byte{0x80}, len(flags.Raw))
	}
	for _, name := range []string{"coordinates", "grid_mapping"} {
		ice.Attrs = withDefault(ice.Attrs, name, text(flags.Attrs, name))
	}
	if text(ice.Attrs, "units") == "%" {
		to.times = 0.01
	}
	return to.stored(ice)
}

// ghrsstGlobals returns the global attributes of f with those that GDS 2.1 asks for,
// and without those that it calls deprecated.
func (p *Product) ghrsstGlobals(f File) []Attr {
	attrs := without(f.Attrs, "start_time", "stop_time", "northernmost_latitude", "southernmost_latitude", "easternmost_longitude", "westernmost_longitude", "sensor")
	add := func(name string, v any) { attrs = with(attrs, name, v) }
	add("cdm_data_type", "grid")
	add("naming_authority", "org.ghrsst")
	add("gds_version_id", "2.1")
	add("netcdf_version_id", libraryVersion())
	add("uuid", uuid.NewSHA1(uuid.NameSpaceOID, []byte(p.id()+p.Inputs[0].SHA256)).String())
	add("file_quality_level", []int32{0}) // unknown: nobody has looked at it
	add("spatial_resolution", p.resolution(f))
	add("instrument", p.instrument())
	add("instrument_vocabulary", "CEOS instrument table")
	add("keywords_vocabulary", "NASA Global Change Master Directory (GCMD) Science Keywords")
	add("keywords", "EARTH SCIENCE > OCEANS > OCEAN TEMPERATURE > SEA SURFACE TEMPERATURE")
	add("acknowledgment", text(attrs, "acknowledgement"))
	add("references", cmp.Or(text(attrs, "references"), "https://zenodo.org/records/6984989")) // GDS 2.1
	add("metadata_link", cmp.Or(text(p.Source.Attrs, "metadata_link"), text(attrs, "publisher_url")))
	return attrs
}

// cmemsGlobals returns the global attributes of f with those that files of the
// catalogue have.
func (p *Product) cmemsGlobals(f File) []Attr {
	attrs := f.Attrs
	add := func(name string, v any) { attrs = with(attrs, name, v) }
	first, last := p.covered()
	lat, lon := extentOf(f, "lat"), extentOf(f, "lon")
	add("title", p.Dataset)
	add("product_level", "L4")
	add("contact", text(attrs, "creator_email"))
	add("mode_version", map[string]string{NearRealTime: "NRT", Delayed: "DT"}[p.Mode])
	add("start_date", first.Format(time.DateOnly))
	add("start_time", first.Format("15:04:05")+" UTC")
	add("stop_date", last.Format(time.DateOnly))
	add("stop_time", last.Format("15:04:05")+" UTC")
	add("southernmost_latitude", []float32{float32(lat.min)})
	add("northernmost_latitude", []float32{float32(lat.max)})
	add("westernmost_longitude", []float32{float32(lon.min)})
	add("easternmost_longitude", []float32{float32(lon.max)})
	add("grid_resolution", p.resolution(f))
	return attrs
}

// resolution returns the step of the grid in words.
func (p *Product) resolution(f File) string {
	return fmt.Sprintf("%.4g degree", max(extentOf(f, "lat").step, extentOf(f, "lon").step))
}

// instrument returns the sensors of the input, as far as it says.
func (p *Product) instrument() string {
	for _, name := range []string{"instrument", "sensor", "sensor_name"} {
		if s := text(p.Source.Attrs, name); s != "" {
			return s
		}
	}
	return "unknown"
}

// libraryVersion returns the number of netCDF-C's version.
func libraryVersion() string { return strings.Fields(nc.Version())[0] }
