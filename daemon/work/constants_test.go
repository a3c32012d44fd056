package work

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
)

// A day is scored with constants of other days: those here are so bad that they
// show.
func TestAScoredDayIsFilledWithConstantsThatNeverSawIt(t *testing.T) {
	w := newTestWorker(t)
	w.cfg.State = state.Dir(t.TempDir())
	w.set.Fill.Method = "oi"
	world, days := someDays(t, w, 9)
	last := len(days) - 1
	s := scene{granule: days[last], history: days[:last], sea: world.Sea()}
	at := days[last].Fields[0].Time
	score := func(tuned ...fill.Tuning) float64 {
		t.Helper()
		kept := fill.Tunings{}.Of(days[last].Fields[0].Grid, days[last].Transform)
		for _, next := range tuned {
			kept = kept.Add(next)
		}
		file := w.cfg.State.Constants("sea")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := state.Save(file, kept); err != nil {
			t.Fatal(err)
		}
		got, err := w.scoreOverlay(t.Context(), ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}, s)
		if err != nil {
			t.Fatal(err)
		}
		return got.MSE
	}
	bad := func(from, to int) fill.Tuning {
		return fill.Tuning{Constants: infer.Constants{
			LengthKM: 0.01, Days: 0.01, Nugget: 0.98, SigmaScale: 1,
			Evidence: infer.Evidence{From: at.Add(time.Duration(from) * 24 * time.Hour), To: at.Add(time.Duration(to) * 24 * time.Hour)},
		}}
	}
	plain := score()
	if got := score(bad(-30, -1)); got < 1.2*plain {
		t.Errorf("constants of earlier days have the MSE %.4f and the defaults %.4f: they are not used", got, plain)
	}
	if got := score(bad(-30, 0)); got != plain {
		t.Errorf("constants of the day itself have the MSE %.4f, want the %.4f of the defaults", got, plain)
	}
	if got := score(bad(-30, -9), bad(-5, 5)); got < 1.2*plain {
		t.Errorf("the MSE is %.4f, want that of the constants that are older and did not see the day", got)
	}
}
