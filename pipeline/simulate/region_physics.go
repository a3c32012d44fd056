package simulate

import "math"

// kelvin is 0 degrees Celsius.
const kelvin = 273.15

func mediterraneanTemperature() *recipe {
	return &recipe{
		Product: Product{
			Name: "med-sst", Dataset: "ghrsst-l3",
			Title:    "Mediterranean sea surface temperature by night, GHRSST layout, 1/16 degree, daily",
			Variable: "sea_surface_temperature", Units: "kelvin", Low: kelvin + 11, High: kelvin + 29,
			NativeHeight: 252, NativeWidth: 870,
		},
		region: region{south: 30.25, north: 46, west: -18.125, east: 36.25, demoHeight: 126, demoWidth: 435},
		current: current{
			longestKM: 260, shortestKM: 90, speedKMPerDay: 12, memoryDays: 18,
			eastKMPerDay: -2, rimKMPerDay: 10, coastKM: 45,
		},
		sea: sea{
			mean: kelvin + 19.5,
			state: func(lat, lon float64) float64 {
				return -0.42*(lat-38) + 0.05*(lon-12) // warm in the south-east
			},
			season:    []harmonic{{amplitude: 5.6, perYear: 1, peakYearDay: 228}},
			coastRise: -0.6, coastKM: 30, // upwelling
			patchStd: 0.9, patchLongestKM: 500, patchShortestKM: 60,
			fineStd: 0.12, fineLongestKM: 80,
			low: kelvin + 4, high: kelvin + 36, turnoverDays: 4,
		},
		weather: weather{
			cover: 0.54, winterExtra: 0.15, longestKM: 2200, memoryDays: 1.6, eastKMPerDay: 450,
		},
		sensors: []sensor{
			{name: "AVHRR_METOP_B", bit: 1, hour: 21.5, ascending: true, revsPerDay: 14 + 6.0/29, swathKM: 2900},
			{name: "SLSTR_A", bit: 2, hour: 22, ascending: true, revsPerDay: 14 + 7.0/27, phaseRevs: 0.3, swathKM: 1400},
		},
		retrieve: retrieveTemperature,
		good:     func(quality int8) bool { return quality >= 4 },
		best:     5,
		fileName: func(_ *recipe, date string) string {
			return date + "000000-LACUNA-L3S_GHRSST-SSTsubskin-SIMULATED-MED-v02.0-fv01.0.nc"
		},
		layout: temperatureLayout,
	}
}

// retrieveTemperature reads the temperature of clear water, and of the rims
// of clouds: there it is too cold, and its quality level says so.
func retrieveTemperature(v view) reading {
	const (
		bestClear = 0.25 // in standard deviations of the cloud field, as view.clear
		goodClear = 0.10
		leakClear = -0.12 // thin cloud that the screening misses
		bestEdge  = 0.8   // share of the half swath: the air path grows towards the edge
	)
	switch {
	case v.clear <= leakClear:
		return reading{}
	case v.clear <= 0:
		return reading{quality: 2, std: 1.0, bias: -2.5}
	case v.clear <= goodClear:
		return reading{quality: 3, std: 0.5, bias: -0.7}
	case v.clear <= bestClear || math.Abs(v.across) > bestEdge:
		return reading{quality: 4, std: 0.3}
	}
	return reading{quality: 5, std: 0.2}
}

func smosSalinity() *recipe {
	return &recipe{
		Product: Product{
			Name: "smos-sss", Dataset: "cmems_obs-mob_glo_phy-sss_mynrt_smos-asc_P1D",
			Title:    "SMOS sea surface salinity, ascending passes, EASE grid of 25 km, daily",
			Variable: "Sea_Surface_Salinity", Units: "1e-3", Low: 32, High: 38,
			NativeHeight: 584, NativeWidth: 1388,
		},
		region: region{south: -90, north: 90, west: -180, east: 180, demoHeight: 146, demoWidth: 347, ease: true},
		current: current{
			longestKM: 1200, shortestKM: 400, speedKMPerDay: 14, memoryDays: 40,
			eastKMPerDay: -4, rimKMPerDay: 12, coastKM: 250,
		},
		sea: sea{
			mean: 34.6, state: salinityState,
			season: []harmonic{{amplitude: 0.08, perYear: 1, peakYearDay: 60}},
			rivers: []river{
				{"Amazon", 1.0, -49.5, -5, 420},
				{"Orinoco", 9.0, -60.5, -2, 250},
				{"Congo", -6.0, 12.0, -3.5, 250},
				{"Niger", 4.0, 6.0, -2, 250},
				{"Ganges", 21.5, 90.0, -5, 400},
				{"Irrawaddy", 15.5, 95.5, -2.5, 250},
				{"Yangtze", 31.3, 122.3, -3, 250},
				{"Mekong", 10.0, 106.8, -1.5, 200},
				{"Plata", -35.5, -56.0, -4, 250},
				{"Mississippi", 29.0, -89.3, -3, 220},
				{"Ob", 72.5, 74.0, -6, 500},
				{"Lena", 73.0, 127.0, -6, 500},
				{"Mackenzie", 69.8, -135.0, -3, 300},
			},
			patchStd: 0.35, patchLongestKM: 2500, patchShortestKM: 300,
			fineStd: 0.05, fineLongestKM: 400,
			low: 5, high: 42, turnoverDays: 6,
		},
		sensors: []sensor{
			{name: "SMOS", bit: 1, hour: 6, ascending: true, revsPerDay: 14.4, swathKM: 1050},
		},
		retrieve: retrieveSalinity,
		good:     func(quality int8) bool { return quality == 1 },
		best:     1,
		hour:     12,
		fileName: func(_ *recipe, date string) string {
			return "CATDS_CSF2QA_" + date + "T000000_" + date + "T235959_334_1.nc"
		},
		layout: salinityLayout,
	}
}

// salinityState returns the departure of the mean salinity from 34.6: salty
// subtropics, fresh polar seas, an Atlantic saltier than the Pacific and a
// Mediterranean saltier than both.
func salinityState(lat, lon float64) float64 {
	bump := func(x, centre, width float64) float64 {
		d := (x - centre) / width
		return math.Exp(-d * d)
	}
	atlantic := bump(math.Remainder(lon+35, 360), 0, 45) * bump(lat, 10, 50)
	mediterranean := bump(lat, 37, 5) * bump(lon, 17, 15)
	return 1.3*bump(lat, 25, 14) + 1.2*bump(lat, -22, 14) - 1.6*bump(lat, 75, 16) - 0.7*bump(lat, -65, 15) -
		0.5*bump(lat, 6, 7) + 1.2*atlantic + 2.2*mediterranean
}

// retrieveSalinity reads the salinity from the brightness of the sea at
// 21 cm, through any cloud. Land in the wide beam and transmitters in the
// protected band spoil it; the flag says where.
func retrieveSalinity(v view) reading {
	const (
		blindKM  = 30  // half a beam: nothing but land
		spoiltKM = 120 // side lobes still touch land
	)
	std := 0.35 * (1 + v.across*v.across) // fewer looks towards the edge of the swath
	switch {
	case v.clear <= 0 || v.coastKM < blindKM:
		return reading{}
	case v.coastKM < spoiltKM || v.interference > interferenceLimit:
		return reading{quality: 2, std: 3 * std, bias: -0.8}
	}
	return reading{quality: 1, std: std}
}

// interferenceLimit leaves 4 % of the sea to illegal transmitters.
const interferenceLimit = 1.75
