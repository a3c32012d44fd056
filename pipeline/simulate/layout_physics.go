package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// temperatureLayout follows the GHRSST data specification 2: kelvin packed in
// 16 bits, and a quality level to choose by.
func temperatureLayout(s *sheet) File {
	p := packing{scale: 0.01, offset: kelvin, fill: math.MinInt16}
	level := make([]int8, len(s.sight.quality))
	for i, q := range s.sight.quality {
		level[i] = q
		if !s.chart.sea[i] {
			level[i] = math.MinInt8
		}
	}
	vars := append(s.axes(),
		mapVar("sea_surface_temperature", p.pack(s.sight.values), slices.Concat(p.attrs(), []Attr{
			{"long_name", "sea surface sub-skin temperature"},
			{"standard_name", "sea_surface_subskin_temperature"},
			{"units", "kelvin"},
			{"valid_min", []int16{-300}},
			{"valid_max", []int16{4500}},
			{"comment", "contaminated by cloud where quality_level is below 4"},
		})),
		mapVar("quality_level", level, []Attr{
			{"_FillValue", []int8{math.MinInt8}},
			{"long_name", "quality level of SST pixel"},
			{"valid_min", []int8{0}},
			{"valid_max", []int8{5}},
			{"flag_values", []int8{0, 1, 2, 3, 4, 5}},
			{"flag_meanings", "no_data bad_data worst_quality low_quality acceptable_quality best_quality"},
		}),
	)
	return File{Dims: s.dims(), Vars: vars, Attrs: s.physicsAttrs("CF-1.7", []Attr{
		{"gds_version_id", "2.0"},
		{"processing_level", "L3S"},
		{"file_quality_level", []int32{3}},
	})}
}

// salinityLayout is that of the SMOS maps: practical salinity packed in 16
// bits about 30, its error, a flag and the place across the swath.
func salinityLayout(s *sheet) File {
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
		mapVar("Sea_Surface_Salinity", salinity.pack(s.sight.values), slices.Concat(salinity.attrs(), []Attr{
			{"long_name", "Sea Surface Salinity"},
			{"standard_name", "sea_surface_salinity"},
			{"units", "1e-3"},
		})),
		mapVar("Sea_Surface_Salinity_Error", spread.pack(stds), slices.Concat(spread.attrs(), []Attr{
			{"long_name", "Sea Surface Salinity Error"},
			{"standard_name", "sea_surface_salinity standard_error"},
			{"units", "1e-3"},
		})),
		mapVar("Sea_Surface_Salinity_QC", flag, []Attr{
			{"_FillValue", []int16{salinity.fill}},
			{"long_name", "Sea Surface Salinity Quality Control"},
			{"standard_name", "sea_surface_salinity status_flag"},
			{"flag_values", []int16{0, 1}},
			{"flag_meanings", "good bad"},
		}),
	)
	return File{Dims: s.dims(), Vars: vars, Attrs: s.physicsAttrs("CF-1.7", []Attr{
		{"processing_level", "L3"},
		{"projection", "EASE-Grid 2.0 Global, EPSG:6933"},
	})}
}

func (s *sheet) physicsAttrs(conventions string, more []Attr) []Attr {
	midnight := s.time.Truncate(24 * time.Hour)
	south, north, west, east := s.chart.grid.Bounds()
	return slices.Concat([]Attr{
		{"Conventions", conventions},
		{"title", s.recipe.Dataset},
		{"summary", s.recipe.Title},
		{"institution", "Lacuna simulator"},
		{"source", "simulation"},
		{"comment", simulated},
		{"history", fmt.Sprintf("simulated, revision %d", s.delivery.Revision)},
		{"date_created", s.delivery.At.Format(time.RFC3339)},
		{"time_coverage_start", midnight.Format(time.RFC3339)},
		{"time_coverage_end", midnight.Add(24*time.Hour - time.Second).Format(time.RFC3339)},
		{"geospatial_lat_min", []float32{float32(south)}},
		{"geospatial_lat_max", []float32{float32(north)}},
		{"geospatial_lon_min", []float32{float32(west)}},
		{"geospatial_lon_max", []float32{float32(east)}},
	}, more)
}
