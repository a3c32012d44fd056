package simulate

import (
	"fmt"
	"math"
	"strings"

	"lacuna/internal/cdl"
)

// colourFill stands for every gap in the ocean colour files, land included.
const colourFill = -999

// planktonLayout is the layout of regional ocean colour: single precision
// with a fill of -999, a quality index against climatology, and the sensors
// that contributed.
func planktonLayout(s *sheet) cdl.File {
	vars := s.axes()
	if s.recipe.Variable == "CHL" {
		vars = append(vars, chlorophyllVar(s.sight.values))
	} else {
		vars = append(vars, chlorophyllVar(wholeCommunity(s.sight.values)), nanoVar(s.sight.values))
	}
	vars = append(vars,
		mapVar("QI_CHL", s.qualityIndex(), []cdl.Attr{
			{Name: "_FillValue", Value: []float32{colourFill}},
			{Name: "missing_value", Value: []float32{colourFill}},
			{Name: "long_name", Value: "Quality Index for CHL"},
			{Name: "units", Value: "1"},
			{Name: "valid_min", Value: []float32{-5}},
			{Name: "valid_max", Value: []float32{5}},
			{Name: "comment", Value: "QI=(DailyData-ClimatologyWeightedMean)/ClimatologyWeightedStandardDeviation"},
		}),
		mapVar("SENSORMASK", s.sensorMask(), []cdl.Attr{
			{Name: "_FillValue", Value: []int32{colourFill}},
			{Name: "missing_value", Value: []int32{colourFill}},
			{Name: "long_name", Value: "pixel by pixel sensor contribution mask"},
			{Name: "units", Value: "1"},
			{Name: "valid_min", Value: []int32{1}},
			{Name: "valid_max", Value: []int32{31}},
			{Name: "comment", Value: s.sensorLegend()},
		}),
	)
	return cdl.File{Dims: s.dims(), Vars: vars, Attrs: s.colourAttrs()}
}

func chlorophyllVar(values []float32) cdl.Var {
	return concentration("CHL", values, []cdl.Attr{
		{Name: "long_name", Value: "Chlorophyll a concentration"},
		{Name: "standard_name", Value: "mass_concentration_of_chlorophyll_a_in_sea_water"},
	})
}

func nanoVar(values []float32) cdl.Var {
	return concentration("NANO", values, []cdl.Attr{
		{Name: "long_name", Value: "Nanophytoplankton Chlorophyll a concentration"},
		{Name: "standard_name", Value: "mass_concentration_of_nanophytoplankton_expressed_as_chlorophyll_in_sea_water"},
	})
}

func concentration(name string, values []float32, attrs []cdl.Attr) cdl.Var {
	attrs = append([]cdl.Attr{
		{Name: "_FillValue", Value: []float32{colourFill}},
		{Name: "missing_value", Value: []float32{colourFill}},
	}, attrs...)
	attrs = append(attrs,
		cdl.Attr{Name: "units", Value: "milligram m^-3"},
		cdl.Attr{Name: "type", Value: "surface"},
		cdl.Attr{Name: "valid_min", Value: []float32{0.01}},
		cdl.Attr{Name: "valid_max", Value: []float32{100}})
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
func (s *sheet) colourAttrs() []cdl.Attr {
	south, north, west, east := s.chart.grid.Bounds()
	date := s.time.Format("2006-01-02")
	site, product := "BLK", "OCEANCOLOUR_BLK_BGC_L3_MY_009_153"
	if s.recipe.Name == "bal-nano" {
		site, product = "BAL", "OCEANCOLOUR_BAL_BGC_L3_MY_009_133"
	}
	return []cdl.Attr{
		{Name: "Conventions", Value: "CF-1.4"},
		{Name: "title", Value: s.recipe.Dataset},
		{Name: "cmems_product_id", Value: product},
		{Name: "institution", Value: "Lacuna simulator"},
		{Name: "source", Value: "simulation"},
		{Name: "comment", Value: simulated},
		{Name: "history", Value: "simulated, revision " + fmt.Sprint(s.delivery.Revision)},
		{Name: "product_level", Value: "L3"},
		{Name: "product_version", Value: fmt.Sprintf("v%02d", s.delivery.Revision)},
		{Name: "sensor_name", Value: s.sensorLegend()},
		{Name: "parameter", Value: "Chlorophyll a concentration"},
		{Name: "parameter_code", Value: "CHL"},
		{Name: "site_name", Value: site},
		{Name: "grid_mapping", Value: "Equirectangular"},
		{Name: "grid_resolution", Value: fmt.Sprintf("%.1f Km", s.chart.grid.StepKM())},
		{Name: "start_date", Value: date},
		{Name: "start_time", Value: "08:00:00 UTC"},
		{Name: "stop_date", Value: date},
		{Name: "stop_time", Value: "14:00:00 UTC"},
		{Name: "creation_date", Value: s.delivery.At.Format("Mon Jan 02 2006")},
		{Name: "creation_time", Value: s.delivery.At.Format("15:04:05 UTC")},
		{Name: "file_quality_index", Value: []int32{0}},
		{Name: "southernmost_latitude", Value: []float32{float32(south)}},
		{Name: "northernmost_latitude", Value: []float32{float32(north)}},
		{Name: "westernmost_longitude", Value: []float32{float32(west)}},
		{Name: "easternmost_longitude", Value: []float32{float32(east)}},
	}
}
