package shadow

import "testing"

func TestVersionsAreFoundInPaths(t *testing.T) {
	for name, want := range map[string]string{
		"20240401_chl.nc":          "",
		"2024/04/20240401_chl.nc":  "",
		"chl_202404/chl_202404.nc": "", // a month
		"v2/2024/20240401.nc":      "v2",
		"V6/v7.1/20240401_chl.nc":  "V6 v7.1",
		"20240401090000-JPL-L4_GHRSST-SSTfnd-MUR-GLOB-v02.0-fv04.1.nc": "v02.0 fv04.1",
		"SMAP_L3_SSS_20210105_8DAYS_V5.0.nc":                           "V5.0",
		"seaice_conc_daily_nh_20240401_f17_v04r00.nc":                  "v04r00",
		"AQUA_MODIS_R2022.0/AQUA_MODIS.20240401.L3m.DAY.CHL.nc":        "R2022.0",
		"R20240401/viirs.nc":                                           "",
		"nav/v/vv1/vx2.nc":                                             "",
		"v2/a_v2.nc":                                                   "v2",
		"h12v04/20240401.nc":                                           "",
		"20240401_v20240402.nc":                                        "", // a date
	} {
		if got := VersionIn(name); got != want {
			t.Errorf("VersionIn(%q) = %q, want %q", name, got, want)
		}
	}
}
