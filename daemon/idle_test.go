package daemon

import (
	"fmt"
	"testing"
	"time"
)

// Every dataset holds on to the settings of all. A copy each took 180 MB with two
// hundred of them; they must be one.
func TestDatasetsShareTheSettingsOfAll(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		set := b.cfg.Datasets[0]
		set.Name = fmt.Sprint("sea-", i)
		b.cfg.Datasets = append(b.cfg.Datasets, set)
	}
	d := b.daemon(t)
	first := &d.Station().Datasets[0]
	if &d.Station().Datasets[0] != first || &d.pages().Settings.Datasets[0] != first {
		t.Error("the settings of all datasets are copied with every use")
	}
	perUse := testing.AllocsPerRun(100, func() { d.operate.Throttle("sea-1", time.Now); d.operate.Fetching("sea-1") })
	if most := 40.0; perUse > most {
		t.Errorf("%v allocations for a dataset to look up what it may do, want at most %v", perUse, most)
	}
}
