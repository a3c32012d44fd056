package pages

import (
	"testing"

	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/publish"
)

func TestDayIsWhatItsNewestRevisionMakesOfIt(t *testing.T) {
	row := func(revision int, state ledger.State, cause ledger.Cause) ledger.Granule {
		g := ledger.Granule{Revision: revision, State: state, Cause: cause}
		g.Name = "a.nc"
		if state == ledger.Stored || state == ledger.Announced {
			g.Product.Path, g.Product.Observed = "a_l4.nc", 0.3
		}
		return g
	}
	dark, absent := row(2, ledger.Announced, ledger.FromArchive), row(1, ledger.Announced, ledger.FromArchive)
	dark.Product.Observed = 0
	absent.Product.Observed, absent.Absent = 0, true
	pending, overtaken := row(1, ledger.Fetched, ledger.FromArchive), row(1, ledger.Quarantined, ledger.FromArchive)
	pending.Absent, overtaken.Absent = true, true
	modes := map[ops.GranuleID]string{{Name: "a.nc", Revision: 1}: publish.NearRealTime, {Name: "a.nc", Revision: 2}: publish.Delayed}
	for _, tt := range []struct {
		name string
		rows []ledger.Granule // newest first
		want ops.DayState
	}{
		{"a first product", []ledger.Granule{row(1, ledger.Announced, ledger.FromArchive)}, ops.DayNearRealTime},
		{"a second one that saw more", []ledger.Granule{row(2, ledger.Stored, ledger.Reanalysis), row(1, ledger.Announced, ledger.FromArchive)}, ops.DayDelayed},
		{"a re-analysis under way leaves the product", []ledger.Granule{row(3, ledger.Fetched, ledger.Reanalysis), row(2, ledger.Announced, ledger.FromArchive)}, ops.DayDelayed},
		{"new bytes wait", []ledger.Granule{row(3, ledger.Fetched, ledger.FromArchive), row(2, ledger.Announced, ledger.FromArchive)}, ops.DayWaiting},
		{"nothing was observed", []ledger.Granule{dark}, ops.DayCloudedOut},
		{"no granule", []ledger.Granule{absent}, ops.DayNoGranule},
		{"no granule, and no product yet", []ledger.Granule{pending}, ops.DayWaiting},
		{"the granule came under another name", []ledger.Granule{overtaken}, ""},
		{"the granule came after all", []ledger.Granule{row(2, ledger.Announced, ledger.FromArchive), absent}, ops.DayDelayed},
		{"new bytes are bad", []ledger.Granule{row(3, ledger.Quarantined, ledger.FromArchive), row(2, ledger.Announced, ledger.FromArchive)}, ops.DayQuarantined},
	} {
		rows := newestRows(tt.rows)
		if len(rows) != 1 {
			t.Fatalf("%s: %d granules, want one", tt.name, len(rows))
		}
		if got := dayState(rows[0], modes); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
