package ops

import (
	"slices"
	"strings"
)

// health is the state of a dataset in a word. The class gives it a colour,
// which adds nothing to the word.
type health struct{ Word, Class string }

// healthOf judges a dataset by its alarms first, then by its work.
func healthOf(d Dataset, alarms []Alarm) health {
	// Alarms that keep products from being made; others can wait.
	blocking := []string{"archive", "intake", "fill"}
	worry := false
	for _, a := range alarms {
		if a.Subject != d.Name {
			continue
		}
		if slices.Contains(blocking, a.Name) {
			return health{"in trouble", "bad"}
		}
		worry = true
	}
	switch {
	case d.Problem != "" || d.DiskFull:
		return health{"in trouble", "bad"}
	case worry || d.Drift != "":
		return health{"needs a look", "warn"}
	case d.Queue > 0:
		return health{"catching up", "busy"}
	case d.NewestField.IsZero():
		return health{"no granule yet", "idle"}
	}
	return health{"up to date", "good"}
}

// bar returns where the mark of a day begins and how tall it is in a strip, so
// that states differ in shape too.
func (s DayState) bar() (top, tall int) {
	switch s {
	case DayDelayed:
		return 0, 12
	case DayNearRealTime:
		return 4, 8
	case DayCloudedOut:
		return 4, 4
	case DayNoGranule:
		return 4, 3
	case DayWaiting:
		return 8, 4
	case DayQuarantined:
		return 0, 12
	}
	return 10, 2
}

// row is a dataset on the overview.
type row struct {
	Dataset
	Health health
	Strip  *strip
	Aside  int // granules set aside
	// Filler is the method, and FillerNote the reason for it.
	Filler, FillerNote string
}

func newRow(d Dataset, alarms []Alarm) row {
	r := row{Dataset: d, Health: healthOf(d, alarms)}
	r.Filler, r.FillerNote, _ = strings.Cut(d.Method, ": ")
	for _, s := range d.States {
		if s.State == "quarantined" {
			r.Aside = s.Granules
		}
	}
	return r
}
