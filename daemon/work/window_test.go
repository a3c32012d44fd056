package work

import (
	"path/filepath"
	"testing"

	"lacuna/daemon/feed"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
)

// A granule is the neighbour of others before its turn and after it: in between it must
// be there as a whole, or its product could not carry over what the file has.
func TestAGranuleIsWholeAtItsTurnOnly(t *testing.T) {
	w := newTestWorker(t)
	w.Fresh = func(string) (ingest.Granule, bool) { return ingest.Granule{}, false }
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 60, Days: 3, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	simulated := world.Granule(world.Schedule()[0])
	path := filepath.Join(t.TempDir(), simulated.Name)
	if err := feed.Write(path, simulated); err != nil {
		t.Fatal(err)
	}
	g := ledger.Granule{Arrival: ledger.Arrival{SHA256: "of the file", SpoolPath: path}}
	for _, asked := range []struct {
		how   string
		read  func() (ingest.Granule, error)
		whole bool
	}{
		{"before its turn", func() (ingest.Granule, error) { return w.neighbour(t.Context(), g) }, false},
		{"at its turn", func() (ingest.Granule, error) { return w.read(t.Context(), g) }, true},
		{"at its turn, again", func() (ingest.Granule, error) { return w.read(t.Context(), g) }, true},
		{"after its turn", func() (ingest.Granule, error) { return w.neighbour(t.Context(), g) }, false},
	} {
		granule, err := asked.read()
		if err != nil {
			t.Fatalf("%s: %v", asked.how, err)
		}
		if kept := w.decoded[g.SHA256]; granule.Whole() != asked.whole || kept.Whole() != asked.whole {
			t.Errorf("%s it is whole: %v, and kept as a whole: %v", asked.how, granule.Whole(), kept.Whole())
		}
	}
}
