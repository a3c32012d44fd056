package simulate

import (
	"fmt"
	"math"
	"strings"
)

// colourFill stands for every gap in the ocean colour files, land included.
const colourFill = -999

// planktonLayout is the layout of regional ocean colour: single precision
// with a fill of -999, a quality index against climatology, and the sensors
// that contributed.
func planktonLayout(s *sheet) File {
	vars := s.axes()
	if s.recipe.Variable == "CHL" {
		vars = append(vars, chlorophyllVar(s.sight.values))
	} else {
		vars = append(vars, chlorophyllVar(wholeCommunity(s.sight.values)), nanoVar(s.sight.values))
	}
	vars = append(vars,
		mapVar("QI_CHL", s.qualityIndex(), []Attr{
			{"_FillValue", []float32{colourFill}},
			{"missing_value", []float32{colourFill}},
			{"long_name", "Quality Index for CHL"},
			{"units", "1"},
			{"valid_min", []float32{-5}},
			{"valid_max", []float32{5}},
			{"comment", "QI=(DailyData-ClimatologyWeightedMean)/ClimatologyWeightedStandardDeviation"},
		}),
		mapVar("SENSORMASK", s.sensorMask(), []Attr{
			{"_FillValue", []int32{colourFill}},
			{"missing_value", []int32{colourFill}},
			{"long_name", "pixel by pixel sensor contribution mask"},
			{"units", "1"},
			{"valid_min", []int32{1}},
			{"valid_max", []int32{31}},
			{"comment", s.sensorLegend()},
		}),
	)
	return File{Dims: s.dims(), Vars: vars, Attrs: s.colourAttrs()}
}

func chlorophyllVar(values []float32) Var {
	return concentration("CHL", values, []Attr{
		{"long_name", "Chlorophyll a concentration"},
		{"standard_name", "mass_concentration_of_chlorophyll_a_in_sea_water"},
	})
}

func nanoVar(values []float32) Var {
	return concentration("NANO", values, []Attr{
		{"long_name", "Nanophytoplankton Chlorophyll a concentration"},
		{"standard_name", "mass_concentration_of_nanophytoplankton_expressed_as_chlorophyll_in_sea_water"},
	})
}

func concentration(name string, values []float32, attrs []Attr) Var {
	attrs = append([]Attr{
		{"_FillValue", []float32{colourFill}},
		{"missing_value", []float32{colourFill}},
	}, attrs...)
	attrs = append(attrs,
		Attr{"units", "milligram m^-3"},
		Attr{"type", "surface"},
		Attr{"valid_min", []float32{0.01}},
		Attr{"valid_max", []float32{100}})
	return mapVar(name, filled(values, colourFill), attrs)
}

// wholeCommunity returns the chlorophyll of all plankton where the given
// share is that of nanoplankton: their share falls as plankton thickens, here
// by the law NANO = 0.32 CHL^0.8.
func wholeCommunity(nano []float32) []float32 {
	out := make([]float32, len(nano))
	for i, v := range nano {
		out[i] = float32(math.Pow(float64(v)/0.32, 1/0.8))
	}
	return out
}

// qualityIndex returns the departure from climatology in units of its spread.
func (s *sheet) qualityIndex() []float32 {
	const spread = 0.25 // log10, of a chlorophyll climatology
	out := make([]float32, len(s.sight.values))
	for i, v := range s.sight.values {
		out[i] = colourFill
		if v == v {
			index := (math.Log10(float64(v)) - s.climate(i)) / spread
			out[i] = float32(min(max(index, -5), 5))
		}
	}
	return out
}

func (s *sheet) sensorMask() []int32 {
	out := make([]int32, len(s.sight.sensors))
	for i, bits := range s.sight.sensors {
		out[i] = colourFill
		if bits != 0 {
			out[i] = bits
		}
	}
	return out
}

func (s *sheet) sensorLegend() string {
	var names []string
	for _, sensor := range s.recipe.sensors {
		names = append(names, fmt.Sprintf("%s=%d", sensor.name, sensor.bit))
	}
	return strings.Join(names, "; ")
}

// colourAttrs returns the global attributes that the producer writes, except
// those by which it vouches for the data.
func (s *sheet) colourAttrs() []Attr {
	south, north, west, east := s.chart.grid.Bounds()
	date := s.time.Format("2006-01-02")
	site, product := "BLK", "OCEANCOLOUR_BLK_BGC_L3_MY_009_153"
	if s.recipe.Name == "bal-nano" {
		site, product = "BAL", "OCEANCOLOUR_BAL_BGC_L3_MY_009_133"
	}
	return []Attr{
		{"Conventions", "CF-1.4"},
		{"title", s.recipe.Dataset},
		{"cmems_product_id", product},
		{"institution", "Lacuna simulator"},
		{"source", "simulation"},
		{"comment", simulated},
		{"history", "simulated, revision " + fmt.Sprint(s.delivery.Revision)},
		{"product_level", "L3"},
		{"product_version", fmt.Sprintf("v%02d", s.delivery.Revision)},
		{"sensor_name", s.sensorLegend()},
		{"parameter", "Chlorophyll a concentration"},
		{"parameter_code", "CHL"},
		{"site_name", site},
		{"grid_mapping", "Equirectangular"},
		{"grid_resolution", fmt.Sprintf("%.1f Km", s.chart.grid.StepKM())},
		{"start_date", date},
		{"start_time", "08:00:00 UTC"},
		{"stop_date", date},
		{"stop_time", "14:00:00 UTC"},
		{"creation_date", s.delivery.At.Format("Mon Jan 02 2006")},
		{"creation_time", s.delivery.At.Format("15:04:05 UTC")},
		{"file_quality_index", []int32{0}},
		{"southernmost_latitude", []float32{float32(south)}},
		{"northernmost_latitude", []float32{float32(north)}},
		{"westernmost_longitude", []float32{float32(west)}},
		{"easternmost_longitude", []float32{float32(east)}},
	}
}
