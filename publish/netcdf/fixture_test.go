package netcdf

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

// The products of this file have the layout of the real granules that lacuna
// meets, on a grid of 6 x 5, with every kind of pixel.

const rows, cols = 6, 5

var fixtures = map[string]func() Product{
	"double coordinates without attributes": gulfOfMaine,
	"classic with degrees North":            alboran,
	"no time":                               smap,
	"months since":                          gulfOfMaineMonthly,
	"packed kelvin":                         ghrsst,
	"year unknown":                          testRegion,
	"cmems chlorophyll":                     blackSea,
	"packed salinity, several times":        smos,
	"a day without an observation":          emptyDay,
	"scalar time with bounds":               scalarTime,
	"polar stereographic":                   arctic,
	"rotated pole":                          rotated,
}

// gulfOfMaine is shaped like bigelow_gom_sst/gom_modis_sst_daily_201808.nc.
func gulfOfMaine() Product {
	src := File{
		Dims:  []Dim{{Name: "time", Len: 2, Unlimited: false}, {Name: "lat", Len: rows, Unlimited: false}, {Name: "lon", Len: cols, Unlimited: false}},
		Attrs: []Attr{{Name: "source", Value: "NASA OBPG AQUA_MODIS L3m.DAY.SST 9km"}},
		Vars: []Var{
			{Name: "time", Type: "double", Dims: []string{"time"}, Attrs: []Attr{{Name: "units", Value: "days since 2018-08-01"}}, Raw: raw("double", 0, 1)},
			{Name: "lat", Type: "double", Dims: []string{"lat"}, Raw: raw("double", 46, 45.9, 45.8, 45.7, 45.6, 45.5)},
			{Name: "lon", Type: "double", Dims: []string{"lon"}, Raw: raw("double", -72, -71.9, -71.8, -71.7, -71.6)},
			{
				Name: "SST", Type: "float", Dims: []string{"time", "lat", "lon"},
				Attrs: []Attr{{Name: "_FillValue", Value: []float32{-999}}, {Name: "units", Value: "degC"}},
			},
		},
	}
	p := product(src, "SST", Identity)
	p.StandardName, p.LongName = "sea_surface_temperature", "sea surface temperature"
	p.Times = []time.Time{day(2018, 8, 1), day(2018, 8, 2)}
	p.Mode, p.Windows = Delayed, []Window{{day(2018, 7, 25), day(2018, 8, 2)}, {day(2018, 7, 26), day(2018, 8, 2)}}
	distance := Extra{Suffix: "distance_km", LongName: "distance to the nearest observation", Units: "km", Comment: "0 where observed"}
	for i := range 2 * rows * cols {
		distance.Values = append(distance.Values, float32(i))
	}
	p.Extras = []Extra{distance}
	return fill(p, func(i int) float64 { return 15 + 0.37*float64(i) })
}

// gulfOfMaineMonthly is shaped like bigelow_gom_sst/gom_modis_chl_monthly_2018.nc.
func gulfOfMaineMonthly() Product {
	p := gulfOfMaine()
	p.Source.Vars[0].Attrs = []Attr{{Name: "units", Value: "months since 2018-01-01"}}
	p.Source.Vars[3].Name, p.Variable = "CHL", "CHL"
	p.Source.Vars[3].Attrs = []Attr{{Name: "_FillValue", Value: []float32{-999}}, {Name: "units", Value: "mg m-3"}}
	p.StandardName, p.LongName = "mass_concentration_of_chlorophyll_a_in_sea_water", "chlorophyll-a concentration"
	p.Times, p.Windows, p.Mode = []time.Time{day(2018, 1, 1), day(2018, 2, 1)}, nil, NearRealTime
	p.Space = Log10
	return fill(p, chlorophyll)
}

// alboran is shaped like dineof_alboran/alboranSST_small.nc, a classic file.
func alboran() Product {
	missing := func(units string) []Attr {
		return []Attr{{Name: "missing_value", Value: []float32{99999}}, {Name: "_FillValue", Value: []float32{99999}}, {Name: "units", Value: units}}
	}
	src := File{
		Dims: []Dim{{Name: "lon", Len: cols, Unlimited: false}, {Name: "lat", Len: rows, Unlimited: false}, {Name: "time", Len: 1, Unlimited: false}},
		Attrs: []Attr{
			{Name: "institution", Value: "GHER - University of Liege"},
			{Name: "title", Value: "AVHRR Metop-B L3 data, downloaded from CMEMS"},
			{Name: "comment", Value: ""},
		},
		Vars: []Var{
			{
				Name: "SST", Type: "float", Dims: []string{"time", "lat", "lon"},
				Attrs: []Attr{{Name: "missing_value", Value: []float64{99999}}, {Name: "_FillValue", Value: []float32{99999}}, {Name: "units", Value: "degree Celsius"}},
			},
			{Name: "lon", Type: "float", Dims: []string{"lon"}, Attrs: missing("degrees East"), Raw: raw("float", -6, -5.98, -5.96, -5.94, -5.92)},
			{Name: "lat", Type: "float", Dims: []string{"lat"}, Attrs: missing("degrees North"), Raw: raw("float", 35, 35.02, 35.04, 35.06, 35.08, 35.1)},
			{
				Name: "time", Type: "float", Dims: []string{"time"},
				Attrs: []Attr{{Name: "missing_value", Value: []float32{99999}}, {Name: "units", Value: "days since 2017-01-01"}}, Raw: raw("float", 3),
			},
		},
	}
	p := product(src, "SST", Identity)
	p.StandardName = "sea_surface_temperature"
	p.Times = []time.Time{day(2017, 1, 4)}
	return fill(p, func(i int) float64 { return 14 + 0.11*float64(i) })
}

// smap is shaped like smap_sss/SMAP_L3_SSS_20210105_8DAYS_V5.0.nc: no time, no
// units, and an uncertainty of its own under the name that ours would have.
func smap() Product {
	src := File{
		Dims:  []Dim{{Name: "lat", Len: rows, Unlimited: false}, {Name: "lon", Len: cols, Unlimited: false}},
		Attrs: []Attr{{Name: "source", Value: "JPL SMAP SSS CAP V5.0, PO.DAAC"}},
		Vars: []Var{
			{Name: "lat", Type: "float", Dims: []string{"lat"}, Raw: raw("float", 2, 1.75, 1.5, 1.25, 1, 0.75)},
			{Name: "lon", Type: "float", Dims: []string{"lon"}, Raw: raw("float", 1, 2, 3, 4, 5)},
			{Name: "smap_sss", Type: "float", Dims: []string{"lat", "lon"}, Attrs: []Attr{{Name: "_FillValue", Value: []float32{-9999}}}},
		},
	}
	p := product(src, "smap_sss", Identity)
	p.StandardName, p.LongName, p.Units = "sea_surface_salinity", "sea surface salinity", "1e-3"
	p.Times, p.Step = []time.Time{day(2021, 1, 5)}, 8*24*time.Hour
	return fill(p, func(i int) float64 { return 34 + 0.05*float64(i) })
}

// ghrsst is shaped like a GHRSST Level-3 file: kelvin packed in int16, a
// record dimension, int32 time, its quality and its errors passed on, and a
// variable that was left behind.
func ghrsst() Product {
	src := File{
		Dims: []Dim{{Name: "time", Len: 1, Unlimited: true}, {Name: "lat", Len: rows, Unlimited: false}, {Name: "lon", Len: cols, Unlimited: false}},
		Attrs: []Attr{
			{Name: "Conventions", Value: "CF-1.4"},
			{Name: "title", Value: "Sea surface temperature, Level 3"},
			{Name: "history", Value: "2017-01-02 made by the producer"},
			{Name: "processing_level", Value: "L3C"},
			{Name: "product_version", Value: "2.0"},
			{Name: "creator_name", Value: "the producer"},
			{Name: "platform", Value: "MetOpB"},
			{Name: "date_created", Value: "20170102T000000Z"},
			{Name: "license", Value: "open"},
			{Name: "northernmost_latitude", Value: []float32{35.1}},
		},
		Vars: []Var{
			{
				Name: "time", Type: "int", Dims: []string{"time"}, Raw: raw("int", 1136073600),
				Attrs: []Attr{{Name: "units", Value: "seconds since 1981-01-01 00:00:00"}, {Name: "calendar", Value: "Gregorian"}, {Name: "standard_name", Value: "time"}},
			},
			{Name: "lat", Type: "float", Dims: []string{"lat"}, Attrs: []Attr{{Name: "units", Value: "degrees_north"}}, Raw: raw("float", 35, 35.02, 35.04, 35.06, 35.08, 35.1)},
			{Name: "lon", Type: "float", Dims: []string{"lon"}, Attrs: []Attr{{Name: "units", Value: "degrees_east"}}, Raw: raw("float", -6, -5.98, -5.96, -5.94, -5.92)},
			{
				Name: "sea_surface_temperature", Type: "short", Dims: []string{"time", "lat", "lon"},
				Attrs: []Attr{
					{Name: "_FillValue", Value: []int16{-32768}},
					{Name: "long_name", Value: "sea surface subskin temperature"},
					{Name: "standard_name", Value: "sea_surface_subskin_temperature"},
					{Name: "units", Value: "kelvin"},
					{Name: "scale_factor", Value: []float32{0.01}},
					{Name: "add_offset", Value: []float32{273.15}},
					{Name: "valid_min", Value: []int16{-300}},
					{Name: "valid_max", Value: []int16{4500}},
					{Name: "ancillary_variables", Value: "quality_level sses_bias wind_speed"},
					{Name: "coordinates", Value: "lon lat"},
				},
			},
		},
	}
	numbers := make([]float64, rows*cols)
	for i := range numbers {
		numbers[i] = float64(i % 6)
	}
	for _, name := range []string{"sses_bias", "sses_standard_deviation"} {
		src.Vars = append(src.Vars, Var{
			Name: name, Type: "byte", Dims: []string{"time", "lat", "lon"}, Raw: raw("byte", numbers...),
			Attrs: []Attr{
				{Name: "_FillValue", Value: []int8{-128}},
				{Name: "units", Value: "kelvin"},
				{Name: "scale_factor", Value: []float32{0.01}},
				{Name: "valid_min", Value: []int16{-127}},
			},
		})
	}
	src.Vars = append(src.Vars, Var{
		Name: "quality_level", Type: "byte", Dims: []string{"time", "lat", "lon"}, Raw: raw("byte", numbers...),
		Attrs: []Attr{
			{Name: "_FillValue", Value: []int8{-128}},
			{Name: "long_name", Value: "quality level of SST pixel"},
			{Name: "flag_values", Value: []int32{0, 1, 2, 3, 4, 5}},
			{Name: "flag_meanings", Value: "no_data bad_data worst_quality low_quality acceptable_quality best_quality"},
		},
	})
	p := product(src, "sea_surface_temperature", Identity)
	p.Times = []time.Time{day(2017, 1, 1)}
	p.Published, p.Fetched = day(2017, 1, 2).Add(3*time.Hour), day(2017, 1, 2).Add(4*time.Hour)
	p.Filled = day(2017, 1, 2).Add(5 * time.Hour)
	p = fill(p, func(i int) float64 { return 287.15 + 0.11*float64(i) })
	for i, flags := range p.Flags {
		if flags == 0 && i%2 == 0 {
			p.Flags[i] |= OwnError
		}
	}
	return p
}

// emptyDay is shaped like blackSea on a day on which nothing was seen.
func emptyDay() Product {
	p := blackSea()
	v := &p.Source.Vars[3]
	for i := range p.Flags {
		copy(v.Raw[4*i:], raw("float", -999))
		if p.Flags[i]&Land == 0 {
			p.Flags[i] = Interpolated
		}
	}
	p.Mode, p.Windows, p.CalibrationDays = Delayed, []Window{{day(2024, 3, 15), day(2024, 3, 30)}}, 12
	return p
}

// scalarTime is shaped like a map whose time is a single number with bounds.
func scalarTime() Product {
	p := smap()
	p.Source.Dims = append(p.Source.Dims, Dim{Name: "bnds", Len: 2})
	p.Source.Vars = append([]Var{
		{Name: "time", Type: "double", Attrs: []Attr{{Name: "units", Value: "days since 2021-01-01"}, {Name: "bounds", Value: "time_bounds"}}, Raw: raw("double", 4)},
		{Name: "time_bounds", Type: "double", Dims: []string{"bnds"}, Raw: raw("double", 0, 8)},
	}, p.Source.Vars...)
	p.Step, p.Bounds = 0, [][2]time.Time{{day(2021, 1, 1), day(2021, 1, 9)}}
	return p
}

// testRegion is shaped like phytofit/testregion_365d.nc, whose year is unknown.
func testRegion() Product {
	p := gulfOfMaineMonthly()
	p.Source.Vars[0] = Var{
		Name: "time", Type: "int", Dims: []string{"time"}, Raw: raw("int", 0, 1),
		Attrs: []Attr{{Name: "units", Value: "days since day-1 (year unknown)"}},
	}
	p.Source.Attrs = []Attr{{Name: "title", Value: "PhytoFit test region"}, {Name: "comment", Value: ""}, {Name: "license", Value: "repo: MIT; data: open"}}
	p.Times = []time.Time{day(1970, 1, 1), day(1970, 1, 2)}
	return p
}

// blackSea is shaped like a CMEMS Black Sea plankton file.
func blackSea() Product {
	src := File{
		Dims: []Dim{{Name: "time", Len: 1, Unlimited: false}, {Name: "lat", Len: rows, Unlimited: false}, {Name: "lon", Len: cols, Unlimited: false}},
		Attrs: []Attr{
			{Name: "Conventions", Value: "CF-1.4"},
			{Name: "title", Value: "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D"},
			{Name: "cmems_product_id", Value: "OCEANCOLOUR_BLK_BGC_L3_MY_009_153"},
			{Name: "institution", Value: "CNR-GOS"},
			{Name: "product_level", Value: "L3"},
			{Name: "creation_date", Value: "Tue Mar 26 2024"},
			{Name: "creation_time", Value: "11:03:55 UTC"},
			{Name: "start_date", Value: "2024-03-25"},
			{Name: "naming_authority", Value: "CMEMS"},
			{Name: "source", Value: "surface observation"},
			{Name: "file_quality_index", Value: []int32{0}},
		},
		Vars: []Var{
			{
				Name: "time", Type: "int", Dims: []string{"time"}, Raw: raw("int", 1364169600),
				Attrs: []Attr{{Name: "units", Value: "seconds since 1981-01-01"}, {Name: "calendar", Value: "Gregorian"}, {Name: "standard_name", Value: "time"}, {Name: "axis", Value: "T"}},
			},
			{Name: "lat", Type: "float", Dims: []string{"lat"}, Attrs: []Attr{{Name: "units", Value: "degrees_north"}, {Name: "_FillValue", Value: []float32{-999}}}, Raw: raw("float", 41, 41.01, 41.02, 41.03, 41.04, 41.05)},
			{Name: "lon", Type: "float", Dims: []string{"lon"}, Attrs: []Attr{{Name: "units", Value: "degrees_east"}}, Raw: raw("float", 28, 28.014, 28.028, 28.042, 28.056)},
			{
				Name: "CHL", Type: "float", Dims: []string{"time", "lat", "lon"},
				Attrs: []Attr{
					{Name: "_FillValue", Value: []float32{-999}},
					{Name: "missing_value", Value: []float32{-999}},
					{Name: "units", Value: "milligram m^-3"},
					{Name: "standard_name", Value: "mass_concentration_of_chlorophyll_a_in_sea_water"},
					{Name: "long_name", Value: "Chlorophyll a concentration"},
					{Name: "valid_min", Value: []float64{0.01}},
					{Name: "valid_max", Value: []float64{100}},
					{Name: "type", Value: "surface"},
				},
			},
		},
	}
	p := product(src, "CHL", Log10)
	p.Times = []time.Time{day(2024, 3, 25)}
	return fill(p, chlorophyll)
}

// smos is shaped like a SMOS file on the EASE grid: packed salinity, rows of
// unequal spacing, here with two times.
func smos() Product {
	src := File{
		Dims: []Dim{{Name: "time", Len: 2, Unlimited: false}, {Name: "lat", Len: rows, Unlimited: false}, {Name: "lon", Len: cols, Unlimited: false}},
		Vars: []Var{
			{Name: "time", Type: "double", Dims: []string{"time"}, Attrs: []Attr{{Name: "units", Value: "days since 1970-01-01 12:00:00"}}, Raw: raw("double", 18000, 18001)},
			{Name: "lat", Type: "double", Dims: []string{"lat"}, Attrs: []Attr{{Name: "standard_name", Value: "latitude"}}, Raw: raw("double", 40, 40.3, 40.61, 40.93, 41.26, 41.6)},
			{Name: "lon", Type: "double", Dims: []string{"lon"}, Attrs: []Attr{{Name: "standard_name", Value: "longitude"}}, Raw: raw("double", 200, 200.26, 200.52, 200.78, 201.04)},
			{
				Name: "Sea_Surface_Salinity", Type: "short", Dims: []string{"time", "lat", "lon"},
				Attrs: []Attr{
					{Name: "_FillValue", Value: []int16{-32767}},
					{Name: "scale_factor", Value: []float64{0.001}},
					{Name: "add_offset", Value: []float64{30}},
					{Name: "units", Value: "psu"},
					{Name: "standard_name", Value: "sea_surface_salinity"},
					{Name: "long_name", Value: "Sea Surface Salinity"},
				},
			},
		},
	}
	p := product(src, "Sea_Surface_Salinity", Identity)
	p.Times = []time.Time{day(2019, 4, 14).Add(12 * time.Hour), day(2019, 4, 15).Add(12 * time.Hour)}
	return fill(p, func(i int) float64 { return 35 + 0.0213*float64(i) })
}

func product(src File, variable, space string) Product {
	return Product{
		Source: src, Variable: variable, Space: space,
		Dataset: "lacuna_test_l4-gapfree_P1D", Method: "optimal interpolation in space and time",
		Inputs: []Input{
			{Name: "granule.nc", SHA256: strings.Repeat("0123456789abcdef", 4), Role: RoleTarget},
			{Name: "granule_before.nc", SHA256: strings.Repeat("fedcba9876543210", 4), Role: "context"},
		},
		Model: "oi", Seed: 7, Revision: 1, Created: day(2024, 5, 6), Version: "0.1.0", Mode: NearRealTime, SeaMask: "built in",
	}
}

func chlorophyll(i int) float64 { return 0.05 * math.Pow(1.07, float64(i)) }

// fill gives p an observation, a gap of each kind and land by turns.
func fill(p Product, physical func(cell int) float64) Product {
	at := 0
	for i, v := range p.Source.Vars {
		if v.Name == p.Variable {
			at = i
		}
	}
	v := &p.Source.Vars[at]
	pack, _, err := newPacking(Var{Name: v.Name, Type: v.Type, Attrs: v.Attrs}, nil)
	if err != nil {
		panic(err)
	}
	n := 1
	for _, length := range p.Source.shape(*v) {
		n *= length
	}
	v.Raw = make([]byte, n*pack.size)
	p.Value, p.Sigma, p.Flags = make([]float32, n), make([]float32, n), make([]byte, n)
	p.Lower, p.Upper = nil, nil
	if p.Space == Log10 {
		p.Lower, p.Upper = make([]float32, n), make([]float32, n)
	}
	kinds := []byte{0, Interpolated, Land, 0, Rejected | Interpolated, NotReconstructible, Rejected | NotReconstructible}
	for i := range n {
		p.Flags[i] = kinds[i%len(kinds)]
		cell := v.Raw[i*pack.size : (i+1)*pack.size]
		copy(cell, pack.fill)
		if Observed(p.Flags[i]) || p.Flags[i]&Rejected != 0 {
			pack.put(cell, physical(i))
		}
		p.Value[i] = float32(physical(i) * 1.01)
		p.Sigma[i] = 0.25 + float32(i)/1024
		if p.Space == Log10 {
			p.Lower[i], p.Upper[i] = p.Value[i]/2, p.Value[i]*2
		}
	}
	return p
}

func day(year int, month time.Month, d int) time.Time {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
}

// raw returns the bytes of numbers in a NetCDF type.
func raw(typ string, x ...float64) []byte {
	var out []byte
	for _, v := range x {
		out = appendNumber(out, typ, v)
	}
	return out
}

func mustFile(t testing.TB, p Product) File {
	t.Helper()
	f, err := p.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func float32At(raw []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
}
