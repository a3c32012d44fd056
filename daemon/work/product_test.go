package work

import (
	"testing"
	"time"
)

func TestNamesWithoutADayGetIt(t *testing.T) {
	day := time.Date(2024, 4, 9, 12, 0, 0, 0, time.UTC)
	for granule, want := range map[string]string{
		"2024/04/20240409_chl.nc": "20240409_chl_l4",
		"09/chl.nc":               "20240409_chl_l4",
		"chl-2024-04-09.nc":       "chl-2024-04-09_l4",
		"A2024100.L3m.nc":         "A2024100.L3m_l4",
	} {
		if got := datedName(granule, day); got != want {
			t.Errorf("datedName(%s) = %s, want %s", granule, got, want)
		}
	}
}
