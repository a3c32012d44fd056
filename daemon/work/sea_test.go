package work

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// windowBook is a ledger that only knows granules of the spool.
type windowBook struct {
	Books
	rows, waiting []ledger.Granule
}

func (b windowBook) FirstPending(context.Context, string, int) ([]ledger.Granule, error) {
	return b.waiting, nil
}

func (b windowBook) Window(context.Context, string, time.Time, time.Time) ([]ledger.Granule, error) {
	return b.rows, nil
}

// superiorDay is a day of Lake Superior, which is land to the built-in mask: one
// row of four cells is seen, another one each day.
func superiorDay(day int) ingest.Granule {
	grid := field.Grid{}
	for i := range 4 {
		grid.Lat, grid.Lon = append(grid.Lat, 47.4+0.1*float64(i)), append(grid.Lon, -87.5+0.1*float64(i))
	}
	values := slices.Repeat([]float32{field.NaN()}, grid.Len())
	for j := range 4 {
		values[day%4*4+j] = 10
	}
	return ingest.Granule{Name: "lake.nc", Fields: []field.Field{{Grid: grid, Time: time.Date(2024, 6, 1+day, 0, 0, 0, 0, time.UTC), Values: values}}}
}

func lakeWorker(t *testing.T, dir string, log *bytes.Buffer) *Worker {
	t.Helper()
	var none *fill.Models
	return New(Dataset{Name: "lake", SeaMask: "auto"}, Settings{State: state.Dir(dir)}, Parts{
		Books: windowBook{}, Models: none, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
}

// Products of one dataset must not have masks that jump: what was water once stays
// water, though the window has moved on and the service was started again.
func TestTheLearnedMaskOfADatasetIsKeptAndOnlyGrows(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	w := lakeWorker(t, dir, &log)
	before := 0
	for day := range 12 {
		if day%5 == 4 {
			w = lakeWorker(t, dir, &log) // started again, with nothing in memory
		}
		sea, err := w.sea(t.Context(), superiorDay(day), nil) // no neighbour is in its window
		if err != nil {
			t.Fatal(err)
		}
		if got, want := sea.Mask.Count(), 4*min(day+1, 4); got != want || sea.Kind != "learned" || got < before {
			t.Fatalf("day %d: the %s mask has %d cells, want %d", day, sea.Kind, got, want)
		}
		if known := sea.Seen != nil; known != (day >= 4) {
			t.Errorf("day %d: it is known what was never observed: %v", day, known)
		}
		before = sea.Mask.Count()
	}
	if n := strings.Count(log.String(), "calls 100 % of the observed cells land"); n != 3 { // once for each start
		t.Errorf("the warning came %d times:\n%s", n, log.String())
	}
	var kept keptRecord
	if ok, err := state.Load(state.Dir(dir).Seen("lake"), &kept); !ok || err != nil || len(kept.Dates) != 12 || kept.Learned == nil || !*kept.Learned {
		t.Errorf("kept is %+v, %v", kept, err)
	}

	other := superiorDay(0)
	other.Fields[0].Grid.Lat = []float64{46, 46.1, 46.2, 46.3}
	if sea, err := w.sea(t.Context(), other, nil); err != nil || sea.Mask.Count() != 4 {
		t.Errorf("another grid has a mask of %d cells, %v: it begins anew", sea.Mask.Count(), err)
	}
	if err := os.WriteFile(state.Dir(dir).Seen("lake"), []byte(`{"lat`), 0o600); err != nil {
		t.Fatal(err)
	}
	if sea, err := lakeWorker(t, dir, &log).sea(t.Context(), superiorDay(2), nil); err != nil || sea.Mask.Count() != 4 {
		t.Errorf("a damaged record gives %d cells, %v: it begins anew", sea.Mask.Count(), err)
	}
}

// A service that is younger than its archive learns from the days in the spool,
// be they filled or not.
func TestARecordThatIsNotThereIsMadeFromTheSpool(t *testing.T) {
	var log bytes.Buffer
	w := lakeWorker(t, t.TempDir(), &log)
	var rows []ledger.Granule
	for day, sha := range []string{"a", "b", "c"} {
		g := superiorDay(day)
		w.decoded[sha] = g
		rows = append(rows, ledger.Granule{Arrival: ledger.Arrival{SHA256: sha}, Last: g.Fields[0].Time})
	}
	for name, books := range map[string]windowBook{"filled before": {rows: rows}, "still waiting": {waiting: rows}} {
		w.Books, w.seen, w.cfg.State = books, seen{}, state.Dir(t.TempDir())
		sea, err := w.sea(t.Context(), superiorDay(3), nil)
		if err != nil || sea.Mask.Count() != 16 {
			t.Errorf("%s: the mask has %d cells, %v, want all 16", name, sea.Mask.Count(), err)
		}
	}
	// A sea does not wait for others: its mask is known.
	w.Books, w.seen, w.cfg.State = windowBook{waiting: rows}, seen{}, state.Dir(t.TempDir())
	w.set.SeaMask = "builtin"
	if _, err := w.sea(t.Context(), superiorDay(3), nil); err != nil || len(w.seen.record.Dates) != 1 {
		t.Errorf("%d days were read for a mask that is given, %v", len(w.seen.record.Dates), err)
	}
}

func TestARecordIsReadBackAsItWas(t *testing.T) {
	grid := superiorDay(0).Fields[0].Grid
	for _, text := range []string{"................", "################", "#..............#", ".#.#.#.#.#.#.#.#", "....####....####"} {
		r := &fill.Record{Dates: []string{"2024-06-01"}}
		for _, c := range text {
			r.Seen = append(r.Seen, c == '#')
		}
		got, ok := keep(grid, r).record(grid)
		if !ok || !slices.Equal(got.Seen, r.Seen) || !slices.Equal(got.Dates, r.Dates) {
			t.Errorf("%s is read back as %v, %v", text, got, ok)
		}
	}
	for _, runs := range [][]int{{15}, {17}, {-1, 17}, {8, 9}, nil, {1 << 40}} {
		if _, ok := (keptRecord{Lat: grid.Lat, Lon: grid.Lon, Runs: runs}).record(grid); ok {
			t.Errorf("the runs %v are taken for a mask of 16 cells", runs)
		}
	}
}
