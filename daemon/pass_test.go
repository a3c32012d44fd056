package daemon

import (
	"reflect"
	"testing"
	"time"

	"lacuna/ledger"
)

func TestAPassSaysHowLongItStillTakes(t *testing.T) {
	for _, tt := range []struct {
		since         time.Duration
		done, waiting int
		want          string
	}{
		{30 * time.Second, 0, 20, "not known before the first is filled"},
		{time.Minute, 6, 30, "about 5 min"},
		{time.Hour, 30, 0, "scores, deliveries and tidying"},
	} {
		if got := timeLeft(tt.since, tt.done, tt.waiting); got != tt.want {
			t.Errorf("after %v, %d filled and %d waiting: %q, want %q", tt.since, tt.done, tt.waiting, got, tt.want)
		}
	}
}

// The granules of sources are never filled themselves: a pass that counted them would
// wait for them to its end.
func TestAPassCountsTheRowsOfDatasetsOnly(t *testing.T) {
	d := &Daemon{cfg: Config{Datasets: []Dataset{{Name: "both"}, {Name: "one"}}}}
	got := d.ofDatasets([]ledger.Count{{Dataset: "both", Granules: 14}, {Dataset: "both.aqua", Granules: 14}, {Dataset: "both.terra", Granules: 14}, {Dataset: "one", Granules: 2}})
	want := []ledger.Count{{Dataset: "both", Granules: 14}, {Dataset: "one", Granules: 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
