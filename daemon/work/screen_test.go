package work

import (
	"math"
	"slices"
	"testing"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/publish/netcdf"
)

// spoilt returns a granule with some of its observations multiplied, well inside of
// what was seen, and which they are. Another phase takes others.
func spoilt(g ingest.Granule, factor float32, phase int) (ingest.Granule, field.Mask) {
	f := g.Fields[0]
	f.Values = slices.Clone(f.Values)
	bad := make(field.Mask, len(f.Values))
	for i := range f.Values {
		if i%17 == phase && surrounded(g.Fields[0], i) {
			f.Values[i] *= factor
			bad[i] = true
		}
	}
	g.Fields = []field.Field{f}
	g.SHA256 += "-spoilt"
	return g, bad
}

// surrounded reports whether a cell and more than half of the cells up to two away
// were observed.
func surrounded(f field.Field, cell int) bool {
	width, height := f.Grid.Width(), f.Grid.Height()
	row, col, seen := cell/width, cell%width, 0
	for r := row - 2; r <= row+2; r++ {
		for c := col - 2; c <= col+2; c++ {
			if r >= 0 && c >= 0 && r < height && c < width && f.Observed(r*width+c) {
				seen++
			}
		}
	}
	return f.Observed(cell) && seen > 12
}

// spoiltScene is a scene whose granule and nearest neighbour are spoilt, the
// neighbour by another factor in each call.
func spoiltScene(t *testing.T, tests string, factor, neighbour float32) (*Worker, scene, field.Mask) {
	t.Helper()
	w := newTestWorker(t)
	world, days := someDays(t, w, 12)
	w.set.Fill.Method, w.cfg.State = "oi", state.Dir(t.TempDir())
	w.set.Fill.OI = infer.OI{LengthKM: 50, Days: 5, Nugget: 0.1} // tuned ones would follow the days
	var err error
	if w.screen.Tests, err = quality.Parse(tests); err != nil {
		t.Fatal(err)
	}
	last := len(days) - 1
	s := scene{history: slices.Clone(days[:last]), sea: world.Sea()}
	var bad field.Mask
	s.granule, bad = spoilt(days[last], factor, 7)
	s.history[last-1], _ = spoilt(days[last-1], neighbour, 3)
	w.know(days)
	return w, s, bad
}

func TestRefusedObservationsAreFilledAndReachNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	analyse := func(tests string, factor, neighbour float32) (fill.Outcome, field.Mask) {
		w, s, bad := spoiltScene(t, tests, factor, neighbour)
		before := slices.Clone(s.granule.Fields[0].Values)
		if err := w.screened(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		outcome, _, err := w.analyse(t.Context(), fill.Job{
			Dataset: "sea", Granule: s.granule, History: s.history, Sea: s.sea, Fill: w.set.Fill, Screened: s.screened,
		})
		if err != nil {
			t.Fatal(err)
		}
		if tests == "" && !slices.EqualFunc(before, s.granule.Fields[0].Values, sameFloat) {
			t.Error("without a test an observation was taken out")
		}
		return outcome, bad
	}
	found, bad := analyse("spike", 30, 30)
	var planted, refused, filled int
	for i, flags := range found.Analyses[0].Flags {
		if flags&infer.Rejected != 0 {
			refused++
			if flags&infer.Interpolated != 0 {
				filled++
			}
			if bad[i] {
				planted++
			}
		}
	}
	if bad.Count() < 10 || planted != bad.Count() || filled != refused || refused-planted > 10 {
		t.Errorf("of %d planted spikes %d were refused, beside %d others; %d were filled", bad.Count(), planted, refused-planted, filled)
	}
	p := found.Product
	if want := []netcdf.Refusal{{Test: "spike", Pixels: refused}}; !slices.Equal(p.Refused, want) || p.Tests != "spike=5" {
		t.Errorf("the product tells of %v by %q, want %v", p.Refused, p.Tests, want)
	}
	// Whatever the refused values are, on the day and on its neighbour, nothing of
	// them is in the product.
	worse, _ := analyse("spike", 3000, 900)
	if !slices.Equal(worse.Analyses[0].Flags, found.Analyses[0].Flags) || !slices.EqualFunc(worse.Analyses[0].Value, found.Analyses[0].Value, sameFloat) ||
		!slices.EqualFunc(worse.Analyses[0].Sigma, found.Analyses[0].Sigma, sameFloat) {
		t.Error("a refused observation still changes the analysis")
	}
	plain, _ := analyse("", 30, 30)
	if plain.Product.Refused != nil || plain.Product.Tests != "" || slices.ContainsFunc(plain.Analyses[0].Flags, func(f byte) bool { return f&infer.Rejected != 0 }) {
		t.Error("without a test the product tells of refusals")
	}
}

// A refused observation is no truth: with the test the score of a spoilt day is
// that of a sound one, without it is ruined.
func TestRefusedObservationsAreNotScored(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	score := func(tests string, factor float32) float64 {
		w, s, _ := spoiltScene(t, tests, factor, 1)
		got, err := w.scoreOverlay(t.Context(), ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}, s)
		if err != nil {
			t.Fatal(err)
		}
		return got.MSE
	}
	sound, ruined, screened := score("", 1), score("", 1000), score("spike", 1000)
	t.Logf("mean squared error of a sound day %.3f, with spikes %.3f, with spikes refused %.3f", sound, ruined, screened)
	if ruined < 2*sound {
		t.Fatal("spikes do not harm the score: nothing was tested")
	}
	if math.Abs(screened/sound-1) > 0.25 {
		t.Errorf("with spikes refused the error is %.3f, of the sound day %.3f", screened, sound)
	}
}
