package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lacuna/internal/cdl"
)

// temperatureLayout follows the GHRSST data specification 2: kelvin packed in
// 16 bits, and a quality level to choose by.
func temperatureLayout(s *sheet) cdl.File {
	p := packing{scale: 0.01, offset: kelvin, fill: math.MinInt16}
	level := make([]int8, len(s.sight.quality))
	for i, q := range s.sight.quality {
		level[i] = q
		if !s.chart.sea[i] {
			level[i] = math.MinInt8
		}
	}
	vars := append(s.axes(),
		mapVar("sea_surface_temperature", p.pack(s.sight.values), slices.Concat(p.attrs(), []cdl.Attr{
			{Name: "long_name", Value: "sea surface sub-skin temperature"},
			{Name: "standard_name", Value: "sea_surface_subskin_temperature"},
			{Name: "units", Value: "kelvin"},
			{Name: "valid_min", Value: []int16{-300}},
			{Name: "valid_max", Value: []int16{4500}},
			{Name: "comment", Value: "contaminated by cloud where quality_level is below 4"},
		})),
		mapVar("quality_level", level, []cdl.Attr{
			{Name: "_FillValue", Value: []int8{math.MinInt8}},
			{Name: "long_name", Value: "quality level of SST pixel"},
			{Name: "valid_min", Value: []int8{0}},
			{Name: "valid_max", Value: []int8{5}},
			{Name: "flag_values", Value: []int8{0, 1, 2, 3, 4, 5}},
			{Name: "flag_meanings", Value: "no_data bad_data worst_quality low_quality acceptable_quality best_quality"},
		}),
	)
	return cdl.File{Dims: s.dims(), Vars: vars, Attrs: s.physicsAttrs("CF-1.7", []cdl.Attr{
		{Name: "gds_version_id", Value: "2.0"},
		{Name: "processing_level", Value: "L3S"},
		{Name: "file_quality_level", Value: []int32{3}},
	})}
}

// salinityLayout is that of the SMOS maps: practical salinity packed in 16
// bits about 30, its error, a flag and the place across the swath.
func salinityLayout(s *sheet) cdl.File {
	salinity := packing{scale: 0.001, offset: 30, fill: -32767}
	spread := packing{scale: 0.001, offset: 0, fill: -32767}
	stds := make([]float32, len(s.sight.values))
	flag := make([]int16, len(s.sight.values))
	for i, q := range s.sight.quality {
		switch q {
		case 0:
			stds[i], flag[i] = float32(math.NaN()), salinity.fill
		case s.recipe.best:
			stds[i] = 0.4
		default:
			stds[i], flag[i] = 1.3, 1
		}
	}
	vars := append(s.axes(),
		mapVar("Sea_Surface_Salinity", salinity.pack(s.sight.values), slices.Concat(salinity.attrs(), []cdl.Attr{
			{Name: "long_name", Value: "Sea Surface Salinity"},
			{Name: "standard_name", Value: "sea_surface_salinity"},
			{Name: "units", Value: "1e-3"},
		})),
		mapVar("Sea_Surface_Salinity_Error", spread.pack(stds), slices.Concat(spread.attrs(), []cdl.Attr{
			{Name: "long_name", Value: "Sea Surface Salinity Error"},
			{Name: "standard_name", Value: "sea_surface_salinity standard_error"},
			{Name: "units", Value: "1e-3"},
		})),
		mapVar("Sea_Surface_Salinity_QC", flag, []cdl.Attr{
			{Name: "_FillValue", Value: []int16{salinity.fill}},
			{Name: "long_name", Value: "Sea Surface Salinity Quality Control"},
			{Name: "standard_name", Value: "sea_surface_salinity status_flag"},
			{Name: "flag_values", Value: []int16{0, 1}},
			{Name: "flag_meanings", Value: "good bad"},
		}),
	)
	return cdl.File{Dims: s.dims(), Vars: vars, Attrs: s.physicsAttrs("CF-1.7", []cdl.Attr{
		{Name: "processing_level", Value: "L3"},
		{Name: "projection", Value: "EASE-Grid 2.0 Global, EPSG:6933"},
	})}
}

func (s *sheet) physicsAttrs(conventions string, more []cdl.Attr) []cdl.Attr {
	midnight := s.time.Truncate(24 * time.Hour)
	south, north, west, east := s.chart.grid.Bounds()
	return slices.Concat([]cdl.Attr{
		{Name: "Conventions", Value: conventions},
		{Name: "title", Value: s.recipe.Dataset},
		{Name: "summary", Value: s.recipe.Title},
		{Name: "institution", Value: "Lacuna simulator"},
		{Name: "source", Value: "simulation"},
		{Name: "comment", Value: simulated},
		{Name: "history", Value: fmt.Sprintf("simulated, revision %d", s.delivery.Revision)},
		{Name: "date_created", Value: s.delivery.At.Format(time.RFC3339)},
		{Name: "time_coverage_start", Value: midnight.Format(time.RFC3339)},
		{Name: "time_coverage_end", Value: midnight.Add(24*time.Hour - time.Second).Format(time.RFC3339)},
		{Name: "geospatial_lat_min", Value: []float32{float32(south)}},
		{Name: "geospatial_lat_max", Value: []float32{float32(north)}},
		{Name: "geospatial_lon_min", Value: []float32{float32(west)}},
		{Name: "geospatial_lon_max", Value: []float32{float32(east)}},
	}, more)
}
