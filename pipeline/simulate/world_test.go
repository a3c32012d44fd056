package simulate

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/pipeline/field"

	"github.com/google/go-cmp/cmp"
)

// small is a grid on which a day costs little.
func small(product string, seed uint64) Config {
	return Config{Product: product, Seed: seed, Height: 60, Width: 84}
}

func newWorld(t testing.TB, cfg Config) *World {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// smallWorlds holds a small world of each product. Tests share them: a World
// does not change.
var smallWorlds = sync.OnceValue(func() []*World {
	var out []*World
	for _, p := range Products() {
		w, err := New(small(p.Name, 1))
		if err != nil {
			panic(err)
		}
		out = append(out, w)
	}
	return out
})

func allProducts(t *testing.T, do func(t *testing.T, w *World)) {
	for _, w := range smallWorlds() {
		t.Run(w.Product().Name, func(t *testing.T) { do(t, w) })
	}
}

// same reports whether two slices hold the same bits, NaN included.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestSameSeedSameBytesOtherSeedOtherOcean(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		name := w.Product().Name
		twin, other := newWorld(t, small(name, 1)), newWorld(t, small(name, 2))
		d := w.Schedule()[3]
		a, b := w.Granule(d), twin.Granule(d)
		for k, v := range a.File.Vars {
			if twin := b.File.Vars[k]; v.Name != twin.Name || !bytes.Equal(v.Raw, twin.Raw) || !cmp.Equal(v.Attrs, twin.Attrs) {
				t.Errorf("two worlds of one seed differ in %s", v.Name)
			}
		}
		if !cmp.Equal(a.File.Dims, b.File.Dims) || !cmp.Equal(a.File.Attrs, b.File.Attrs) {
			t.Error("two worlds of one seed have two headers")
		}
		if !cmp.Equal(w.Schedule(), twin.Schedule()) {
			t.Error("two worlds of one seed have two schedules")
		}
		x, y := w.Day(3), other.Day(3)
		if same(x.Truth.Values, y.Truth.Values) || same(x.Seen.Values, y.Seen.Values) {
			t.Error("another seed gives the same day")
		}
	})
}

func TestDayDoesNotDependOnTheDaysAskedForBefore(t *testing.T) {
	walked, jumped := newWorld(t, small("blk-chl", 1)), newWorld(t, small("blk-chl", 1))
	var last Day
	for n := range 24 {
		last = walked.Day(n)
	}
	for _, n := range []int{200, 23} {
		last2 := jumped.Day(n)
		if n == 23 && (!same(last.Truth.Values, last2.Truth.Values) || !same(last.Seen.Values, last2.Seen.Values)) {
			t.Error("day 23 differs between a walk and a jump")
		}
	}
}

func TestWorldsOfOneSeedAgreeOnADateWhateverTheirStart(t *testing.T) {
	a, b := small("blk-chl", 1), small("blk-chl", 1)
	a.Start = time.Date(2024, 5, 1, 9, 30, 0, 0, time.FixedZone("", 2*3600))
	b.Start = time.Date(2024, 5, 8, 0, 0, 0, 0, time.UTC)
	x, y := newWorld(t, a).Day(10), newWorld(t, b).Day(3)
	if !x.Time.Equal(y.Time) || !same(x.Truth.Values, y.Truth.Values) || !same(x.Seen.Values, y.Seen.Values) {
		t.Errorf("%v and %v differ", x.Time, y.Time)
	}
}

func TestDaysMayBeAskedForInParallel(t *testing.T) {
	w := newWorld(t, small("blk-chl", 1))
	alone := newWorld(t, small("blk-chl", 1))
	days := make([]Day, 8)
	var wg sync.WaitGroup
	for n := range days {
		wg.Go(func() { days[n] = w.Day(5 * n) })
	}
	wg.Wait()
	for n, d := range days {
		if !same(d.Truth.Values, alone.Day(5*n).Truth.Values) {
			t.Errorf("day %d differs", 5*n)
		}
	}
}

func TestTruthIsCompleteOverTheSeaAndLandNeverHasAValue(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		for _, n := range []int{0, 120} {
			d := w.Day(n)
			for i, sea := range w.Sea() {
				v := float64(d.Truth.Values[i])
				switch {
				case sea && (math.IsNaN(v) || math.IsInf(v, 0)):
					t.Fatalf("day %d: truth is %g at sea, cell %d", n, v, i)
				case !sea && (d.Truth.Observed(i) || d.Seen.Observed(i)):
					t.Fatalf("day %d: a value on land, cell %d", n, i)
				}
			}
		}
	})
}

func TestSeenIsTheTruthWithTheSensorsNoise(t *testing.T) {
	want := map[string][2]float64{ // bounds of the error: relative for chlorophyll
		"blk-chl": {0.05, 0.10}, "bal-nano": {0.05, 0.10}, "med-sst": {0.15, 0.35}, "smos-sss": {0.3, 0.6},
	}
	allProducts(t, func(t *testing.T, w *World) {
		var errs []float32
		for n := range 3 {
			d := w.Day(n)
			for i := range d.Seen.Values {
				if e := d.Seen.Values[i] - d.Truth.Values[i]; d.Seen.Observed(i) {
					if w.Product().Log {
						e /= d.Truth.Values[i]
					}
					errs = append(errs, e)
				}
			}
		}
		s := field.Summarise(errs)
		if b := want[w.Product().Name]; s.N < 300 || s.Std < b[0] || s.Std > b[1] || math.Abs(s.Mean) > s.Std/5 {
			t.Errorf("errors %+v, want spread %v about nothing", s, b)
		}
	})
}

func TestWinterIsTooDarkForTheColourOfTheBaltic(t *testing.T) {
	cfg := small("bal-nano", 1)
	cfg.Start = time.Date(2023, 12, 18, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, cfg)
	for n := range 5 {
		if seen, _, _ := w.Day(n).Seen.Coverage(); seen != 0 {
			t.Errorf("day %d: %d cells seen at the winter solstice", n, seen)
		}
	}
}

func TestDatasetIdsAndShortNamesMeanTheSame(t *testing.T) {
	for _, p := range Products() {
		for _, name := range []string{p.Name, p.Dataset} {
			r, err := recipeOf(name)
			if err != nil || !cmp.Equal(r.Product, p) {
				t.Errorf("%s is not %s: %v", name, p.Name, err)
			}
		}
	}
}

func TestConfigReportsEverythingWrong(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Config)
		want []string // parts of the message; none: valid
	}{
		{name: "only a product", edit: func(c *Config) { *c = Config{Product: "blk-chl"} }},
		{name: "unknown product", edit: func(c *Config) { c.Product = "x" }, want: []string{`"x"`, "blk-chl"}},
		{name: "half a grid", edit: func(c *Config) { c.Width = 0 }, want: []string{"60 x 0"}},
		{name: "tiny grid", edit: func(c *Config) { c.Width = 3 }, want: []string{"at least 8"}},
		{name: "absurd grid", edit: func(c *Config) { c.Height = 1 << 40 }, want: []string{"exceeds"}},
		{name: "negative days", edit: func(c *Config) { c.Days = -1 }, want: []string{"days is -1"}},
		{name: "two faults", edit: func(c *Config) { c.Product, c.Days = "x", -1 }, want: []string{`"x"`, "days is -1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := small("blk-chl", 1)
			tt.edit(&c)
			_, err := New(c)
			if (err != nil) != (len(tt.want) > 0) {
				t.Fatalf("New: %v, want parts %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("New: %v, want a message with %q", err, part)
				}
			}
		})
	}
}

func TestRenderShowsNorthUpWithLandGapsAndValuesApart(t *testing.T) {
	nan := field.NaN()
	f := field.Field{
		Grid:   field.Grid{Lat: []float64{1, 2}, Lon: []float64{5, 6}},
		Values: []float32{1, nan, nan, 100},
		Sea:    field.Mask{true, true, false, true},
	}
	img := Render(f, 1, 100, true)
	at := func(x, y int) string { return fmt.Sprint(img.At(x, y)) }
	if at(0, 0) != fmt.Sprint(landColour) || at(1, 1) != fmt.Sprint(gapColour) {
		t.Errorf("land %v and gap %v are not where they belong", at(0, 0), at(1, 1))
	}
	if at(0, 1) != fmt.Sprint(ramp(0)) || at(1, 0) != fmt.Sprint(ramp(1)) {
		t.Errorf("low %v and high %v are not where they belong", at(0, 1), at(1, 0))
	}
	flipped := field.Field{
		Grid:   field.Grid{Lat: []float64{2, 1}, Lon: f.Grid.Lon},
		Values: []float32{nan, 100, 1, nan},
		Sea:    field.Mask{false, true, true, true},
	}
	if !cmp.Equal(img, Render(flipped, 1, 100, true)) {
		t.Error("the same map with rows from the north looks different")
	}
}

func BenchmarkDay(b *testing.B) {
	for _, size := range [][2]int{{158, 220}, {790, 1101}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			w := newWorld(b, Config{Product: "blk-chl", Height: size[0], Width: size[1]})
			w.Day(0)
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				w.Day(n)
			}
		})
	}
}

func BenchmarkGranule(b *testing.B) {
	w := newWorld(b, Config{Product: "blk-chl", Height: 790, Width: 1101})
	deliveries := w.Schedule()
	var raw bytes.Buffer
	for n := 0; b.Loop(); n++ {
		g := w.Granule(deliveries[n%len(deliveries)])
		raw.Reset()
		for _, v := range g.File.Vars {
			raw.Write(v.Raw)
		}
		b.SetBytes(int64(raw.Len()))
	}
}
