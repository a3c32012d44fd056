package simulate

import "math"

// olci returns the two ocean colour imagers of Sentinel-3, which fly on one
// orbit, 140 degrees apart.
func olci() []sensor {
	a := sensor{
		name: "OLCI-A", bit: 1, hour: 10, revsPerDay: 14 + 7.0/27,
		swathKM: 1150, // without the edges of the 1270 km, where the view is too slanted
		glint:   true, needsTheSun: true,
	}
	b := a
	b.name, b.bit, b.phaseRevs = "OLCI-B", 2, 140.0/360
	return []sensor{a, b}
}

func blackSeaChlorophyll() *recipe {
	return &recipe{
		Product: Product{
			Name: "blk-chl", Dataset: "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D",
			Title:    "Black Sea chlorophyll, multi-sensor, 1 km, daily",
			Variable: "CHL", Units: "milligram m^-3", Log: true, Low: 0.1, High: 10,
			NativeHeight: 790, NativeWidth: 1101,
		},
		region: region{south: 40, north: 48, west: 26.5, east: 42, demoHeight: 158, demoWidth: 220},
		current: current{
			longestKM: 220, shortestKM: 55, speedKMPerDay: 11, memoryDays: 16,
			eastKMPerDay: -2.5, rimKMPerDay: 22, coastKM: 35,
		},
		sea: sea{
			mean: -0.28, // 0.5 mg m-3 in the open basin
			season: []harmonic{
				{amplitude: 0.13, perYear: 1, peakYearDay: 60},  // winter mixing, clear summers
				{amplitude: 0.12, perYear: 2, peakYearDay: 100}, // blooms in April and, weaker, in October
			},
			coastRise: 0.45, coastKM: 22,
			rivers: []river{
				{"Danube", 44.9, 29.8, 0.75, 75},
				{"Dniester", 46.1, 30.6, 0.45, 50},
				{"Dnieper", 46.5, 31.7, 0.75, 60},
				{"Don", 47.1, 38.9, 0.55, 120},
				{"Kuban", 45.3, 37.2, 0.25, 40},
				{"Rioni", 42.2, 41.5, 0.3, 40},
				{"Sakarya", 41.2, 30.7, 0.25, 30},
				{"Kizilirmak", 41.8, 36.0, 0.25, 30},
			},
			patchStd: 0.22, patchLongestKM: 260, patchShortestKM: 40,
			fineStd: 0.04, fineLongestKM: 40, bloomShiftDays: 12,
			low: math.Log10(0.04), high: math.Log10(25), turnoverDays: 2.5,
		},
		weather: weather{
			cover: 0.62, winterExtra: 0.12, longestKM: 1900, memoryDays: 1.6, eastKMPerDay: 350,
		},
		sensors: olci(), retrieve: retrieveColour, good: isSet, best: 1,
		fileName: datedName, layout: planktonLayout,
	}
}

func balticNano() *recipe {
	return &recipe{
		Product: Product{
			Name: "bal-nano", Dataset: "cmems_obs-oc_bal_bgc-plankton_my_l3-multi-1km_P1D",
			Title:    "Baltic nanophytoplankton, multi-sensor, 1 km, daily",
			Variable: "NANO", Units: "milligram m^-3", Log: true, Low: 0.1, High: 3,
			NativeHeight: 1147, NativeWidth: 1185,
		},
		region: region{south: 53.25, north: 65.85, west: 9.25, east: 30.25, demoHeight: 164, demoWidth: 170},
		current: current{
			longestKM: 120, shortestKM: 40, speedKMPerDay: 7, memoryDays: 15,
			eastKMPerDay: -1, rimKMPerDay: 6, coastKM: 20,
		},
		sea: sea{
			mean: -0.25,
			season: []harmonic{
				{amplitude: 0.22, perYear: 1, peakYearDay: 160}, // too dark to grow in winter
				{amplitude: 0.12, perYear: 2, peakYearDay: 115}, // diatoms in April, again in autumn
			},
			coastRise: 0.2, coastKM: 15,
			rivers: []river{
				{"Neva", 59.9, 30.1, 0.45, 70},
				{"Vistula", 54.4, 18.9, 0.4, 50},
				{"Oder", 53.9, 14.3, 0.45, 45},
				{"Daugava", 57.1, 24.0, 0.45, 60},
				{"Nemunas", 55.4, 21.1, 0.4, 40},
				{"Kemijoki", 65.7, 24.5, 0.2, 50},
			},
			patchStd: 0.17, patchLongestKM: 160, patchShortestKM: 25,
			fineStd: 0.04, fineLongestKM: 25, bloomShiftDays: 10,
			low: math.Log10(0.03), high: math.Log10(8), turnoverDays: 2.5,
		},
		weather: weather{
			cover: 0.75, winterExtra: 0.12, longestKM: 1900, memoryDays: 1.6, eastKMPerDay: 400,
		},
		sensors: olci(), retrieve: retrieveColour, good: isSet, best: 1,
		fileName: datedName, layout: planktonLayout,
	}
}

// retrieveColour reads the colour of clear water. Per pixel, chlorophyll is
// good to some 7 % beside errors that a whole scene shares.
func retrieveColour(v view) reading {
	const noise = 0.07 / math.Ln10 // 7 % in log10
	if v.clear <= 0 {
		return reading{}
	}
	return reading{quality: 1, std: noise}
}

// isSet accepts every reading with a value.
func isSet(quality int8) bool { return quality > 0 }

// datedName is how the producer of regional ocean colour names its files.
func datedName(r *recipe, date string) string { return date + "_" + r.Dataset + ".nc" }
