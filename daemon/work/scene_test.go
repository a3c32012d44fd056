package work

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/ingesttest"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

func TestMain(m *testing.M) {
	ingesttest.Decode()
	os.Exit(m.Run())
}

// newBook is a ledger of which only the number of fields is known: none.
type newBook struct{ Books }

func (newBook) CountTimes(context.Context, string) (int, error) { return 0, nil }

// newTestWorker returns a worker that reads files and has no ledger.
func newTestWorker(t *testing.T) *Worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := ingest.NewReader(ingest.DefaultConfig(), []string{self, "decode"})
	if err != nil {
		t.Fatal(err)
	}
	var none *fill.Models
	return New(Dataset{Name: "sea", Fill: infer.DefaultConfig()}, Settings{State: state.Dir(t.TempDir())}, Parts{
		Books: newBook{}, Reader: reader, Models: none, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// someDays returns the first days of a simulated sea that have observations, as
// the worker reads them.
func someDays(t *testing.T, w *Worker, n int) (*simulate.World, []ingest.Granule) {
	t.Helper()
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 60, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var all []ingest.Granule
	for _, d := range world.Schedule() {
		simulated := world.Granule(d)
		if d.Revision > 1 || simulated.Seen.ObservedMask().Count() == 0 || len(all) == n {
			continue
		}
		path := filepath.Join(folder, simulated.Name)
		if err := feed.Write(path, simulated); err != nil {
			t.Fatal(err)
		}
		g, err := w.Reader.Read(t.Context(), path, ingest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b ingest.Granule) int { return a.Fields[0].Time.Compare(b.Fields[0].Time) })
	return world, all
}

// The hidden cells must not reach the method: if their values are raised by a
// known amount, the bias falls by exactly that.
func TestOverlayHidesTheTruthFromTheMethod(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	for _, method := range []string{"persistence", "climatology", "oi"} {
		w := newTestWorker(t)
		world, days := someDays(t, w, 9)
		w.set.Fill.Method = method
		w.set.Fill.OI.LengthKM, w.set.Fill.OI.Days, w.set.Fill.OI.Nugget = 50, 5, 0.1 // tuned scales would follow the truth
		slices.SortFunc(days, func(a, b ingest.Granule) int {
			return a.Fields[0].ObservedMask().Count() - b.Fields[0].ObservedMask().Count()
		})
		target := days[len(days)-1] // the clearest day; its neighbours do not matter here
		for i := range days[:len(days)-1] {
			days[i].Fields[0].Time = target.Fields[0].Time.AddDate(0, 0, -1-i)
		}
		days = days[:len(days)-1]
		s := scene{granule: target, history: days, sea: world.Sea()}
		g := ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}
		plain, err := w.scoreOverlay(t.Context(), g, s)
		if err != nil {
			t.Fatal(err)
		}
		_, hidden, _ := fill.Overlay(target.Fields[0], fieldsOfAll(days), "key")
		const factor = 1.5
		raised := s
		raised.granule.Fields = slices.Clone(s.granule.Fields)
		raised.granule.Fields[0].Values = slices.Clone(s.granule.Fields[0].Values)
		for c, h := range hidden {
			if h {
				raised.granule.Fields[0].Values[c] *= factor
			}
		}
		moved, err := w.scoreOverlay(t.Context(), g, raised)
		if err != nil {
			t.Fatal(err)
		}
		unit, _ := jobs.ScaleOf(target.Transform, days)
		fall := (plain.Bias - moved.Bias) * unit.Std
		if want := math.Log10(factor); math.Abs(fall-want) > 1e-3 || moved.Pixels != plain.Pixels {
			t.Errorf("%s: the truth was raised by %.4f, the bias fell by %.4f", method, want, fall)
		}
	}
}

// The measure of change is checked against a product whose difference is known.
func TestChangeIsMeasuredInSigmasOfTheFormerProduct(t *testing.T) {
	w := newTestWorker(t)
	world, days := someDays(t, w, 2)
	w.set.Fill.Method = "climatology"
	g := days[1]
	outcome, err := fill.Analyse(t.Context(), fill.Job{
		Dataset: "sea", Granule: g, History: days[:1], Sea: world.Sea(), Fill: w.set.Fill, Revision: 1, Created: days[1].Fields[0].Time,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := ledger.Publication{File: filepath.Join(t.TempDir(), "product.nc")}
	if err := netcdf.WriteProduct(before.File, outcome.Product); err != nil {
		t.Fatal(err)
	}
	if same := w.change(t.Context(), before, g, outcome); !same.Comparable || same.Largest > 0.02 {
		t.Errorf("the same analysis differs: %+v", same)
	}
	a := &outcome.Analyses[0]
	for c, flags := range a.Flags {
		if flags&netcdf.Interpolated != 0 {
			a.Value[c] = float32(float64(a.Value[c]) * math.Pow(10, 1.5*float64(a.Sigma[c]))) // values are in log10
			break
		}
	}
	if moved := w.change(t.Context(), before, g, outcome); !moved.Comparable || math.Abs(moved.Largest-1.5) > 0.02 {
		t.Errorf("one cell moved by 1.5 sigmas, measured %+v", moved)
	}
	for c := range a.Flags { // an observation has a sigma too, and is no part of the comparison
		if netcdf.Observed(a.Flags[c]) {
			a.Sigma[c] *= 3
		}
	}
	if moved := w.change(t.Context(), before, g, outcome); !moved.Comparable || math.Abs(moved.Largest-1.5) > 0.02 {
		t.Errorf("observations that are less certain count as a change: %+v", moved)
	}
	for c, flags := range a.Flags {
		if flags&netcdf.Interpolated != 0 {
			a.Flags[c] = netcdf.NotReconstructible
			break
		}
	}
	if w.change(t.Context(), before, g, outcome).Comparable {
		t.Error("a cell that is not filled any more is no change")
	}
}

func TestTheNoteOnAnalysesIsLoggedWhenItChanges(t *testing.T) {
	var log bytes.Buffer
	w := New(Dataset{Name: "sea"}, Settings{}, Parts{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, note := range []string{"", "no gaps to tune by", "no gaps to tune by", "", "no gaps to tune by"} {
		w.logNote(note)
	}
	if n := strings.Count(log.String(), "no gaps to tune by"); n != 2 {
		t.Errorf("logged %d times, want when it begins and when it begins again:\n%s", n, log.String())
	}
}

// fieldsOfAll returns the fields of granules.
func fieldsOfAll(gs []ingest.Granule) []field.Field {
	var all []field.Field
	for _, g := range gs {
		all = append(all, g.Fields...)
	}
	return all
}
