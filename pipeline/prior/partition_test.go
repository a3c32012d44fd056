package prior

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// archive returns days of a small sea with cloud-like gaps, split in time.
func archive(t testing.TB, days, side int) (samples.Series, samples.Train, samples.HeldOut) {
	t.Helper()
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.05*float64(i), 10+0.05*float64(i)
	}
	sea := make(field.Mask, side*side)
	fields := make([]field.Field, days)
	for d, p := range cloudy(days, side) {
		copy(sea, p.Sea)
		fields[d] = field.Field{Grid: grid, Time: time.Date(2021, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: p.Values}
	}
	series, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	train, held, err := series.Split(samples.SplitConfig{HeldOut: 0.3, GapDays: 2, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return series, train, held
}

// partitioners are the strategies that claim a partition.
func partitioners(t testing.TB, train samples.Train) []Partitioner {
	t.Helper()
	m := roughModel(t, enginetest.Open(t), nil)
	free, err := NewUnconditional(m, testSampling())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultGuidance()
	cfg.SampleConfig = testSampling()
	guided, err := NewGuided(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return []Partitioner{Saliency(0.5), Empirical(train), Coherent(), free, guided}
}

func TestContextAndQueryPartitionWhatWasObserved(t *testing.T) {
	_, train, _ := archive(t, 30, 16)
	for _, by := range partitioners(t, train) {
		t.Run(by.Name(), func(t *testing.T) {
			patches := cutAll(train, train.Refs(16, 16, MinObservedCells))
			if skipped := len(train.Refs(16, 16, 1)) - len(patches); skipped > 2 {
				t.Fatalf("%d patches skipped", skipped)
			}
			parts, err := by.Partition(t.Context(), patches, noise.New(1, "parts"))
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range parts {
				for c, o := range patches[i].Observed() {
					if part.Context[c] && part.Query[c] || (part.Context[c] || part.Query[c]) != o {
						t.Fatalf("patch %d cell %d: observed %v, context %v, query %v", i, c, o, part.Context[c], part.Query[c])
					}
				}
				if count(part.Context) == 0 || count(part.Query) == 0 {
					t.Fatalf("patch %d: %d cells of context and %d of query", i, count(part.Context), count(part.Query))
				}
			}
		})
	}
}

func cutAll(train samples.Train, refs []samples.Ref) []samples.Patch {
	out := make([]samples.Patch, len(refs))
	for i, r := range refs {
		out[i] = train.Cut(r)
	}
	return out
}

func TestSameStreamGivesTheSamePartitionsAndAnotherOthers(t *testing.T) {
	_, train, _ := archive(t, 30, 16)
	patches := cloudy(5, 16)
	all := append(partitioners(t, train), Pixel(0.3, 0.3), Block(8, 0.5, 0.5))
	for _, by := range all {
		draw := func(seed uint64) []Partition {
			parts, err := by.Partition(t.Context(), patches, noise.New(seed, "stream"))
			if err != nil {
				t.Fatal(err)
			}
			return parts
		}
		first, again, other := draw(1), draw(1), draw(2)
		differ := false
		for i := range first {
			if !equalMasks(first[i].Context, again[i].Context) || !equalMasks(first[i].Query, again[i].Query) {
				t.Errorf("%s: partition %d differs between two draws of one stream", by.Name(), i)
			}
			differ = differ || !equalMasks(first[i].Context, other[i].Context)
		}
		if !differ {
			t.Errorf("%s: another stream gives the same partitions", by.Name())
		}
	}
}

func TestPixelDrawsContextAndQueryIndependently(t *testing.T) {
	patches := cloudy(60, 16)
	parts, err := Pixel(0.3, 0.3).Partition(t.Context(), patches, noise.New(1, "pixel"))
	if err != nil {
		t.Fatal(err)
	}
	var ctx, query, both, all float64
	for i, part := range parts {
		for c, o := range patches[i].Observed() {
			all += indicator(o)
			ctx += indicator(part.Context[c])
			query += indicator(part.Query[c])
			both += indicator(part.Context[c] && part.Query[c])
		}
	}
	for _, got := range []struct {
		name        string
		share, want float64
	}{{"context", ctx / all, 0.3}, {"query", query / all, 0.3}, {"both", both / all, 0.09}} {
		if math.Abs(got.share-got.want) > 0.015 {
			t.Errorf("share of %s is %.3f, want %.2f", got.name, got.share, got.want)
		}
	}
}

func TestBlockDrawsWholeBlocks(t *testing.T) {
	const side, grid = 16, 8
	full := cloudy(1, side)[0]
	for c := range full.Values {
		full.Values[c] = 1 // every cell observed: blocks can be counted
	}
	shared := 0
	for seed := range uint64(200) {
		parts, err := Block(grid, 0.5, 0.5).Partition(t.Context(), []samples.Patch{full}, noise.New(seed, "block"))
		if err != nil {
			t.Fatal(err)
		}
		for _, mask := range [][]bool{parts[0].Context, parts[0].Query} {
			if n := count(mask); n != grid*grid/2*(side/grid)*(side/grid) {
				t.Fatalf("%d cells, want exactly half of the blocks", n)
			}
			for c, b := range mask {
				if b != mask[c/side/2*2*side+c%side/2*2] {
					t.Fatalf("cell %d is not as the rest of its block", c)
				}
			}
		}
		for c, b := range parts[0].Context {
			if b && parts[0].Query[c] {
				shared++
			}
		}
	}
	if got := float64(shared) / (200 * side * side); math.Abs(got-0.25) > 0.02 {
		t.Errorf("context and query share %.3f of the blocks, want 0.25: they are independent", got)
	}
}

func TestSaliencyTakesHalfFromTheSteepCells(t *testing.T) {
	// A step in the middle of a flat field: the cells beside it are steep.
	const side = 16
	p := cloudy(1, side)[0]
	for c := range p.Values {
		p.Values[c] = float32(indicator(c%side >= side/2))
	}
	parts, err := Saliency(0.5).Partition(t.Context(), []samples.Patch{p}, noise.New(1, "saliency"))
	if err != nil {
		t.Fatal(err)
	}
	if got := count(parts[0].Context); got != side*side/2 {
		t.Errorf("context has %d cells, want exactly %d", got, side*side/2)
	}
	steep := slopes(p.Values, side, side)
	if steep[side/2] != 0.5 || steep[0] != 0 {
		t.Errorf("slope is %g at the step and %g away from it, want 0.5 and 0", steep[side/2], steep[0])
	}
}

func TestSlopeLooksAtObservedNeighboursOnly(t *testing.T) {
	nan := field.NaN()
	got := slopes([]float32{
		1, nan, 3,
		2, 4, 8,
		nan, nan, 9,
	}, 3, 3)
	for c, want := range map[int]float64{
		0: 1,                      // only the cell below
		3: math.Hypot(1, 2),       // above; right
		4: 3,                      // left and right, nothing above or below
		5: math.Hypot((9-3)/2, 4), // both above and below; left
		8: 1,
	} {
		if math.Abs(got[c]-want) > 1e-12 {
			t.Errorf("slope of cell %d is %g, want %g", c, got[c], want)
		}
	}
}

// The empirical mask is of the training side, of the same place and never the
// patch's own.
func TestEmpiricalTakesAnotherTrainingDay(t *testing.T) {
	_, train, _ := archive(t, 30, 16)
	refs := train.Refs(16, 16, MinObservedCells)
	patches := cutAll(train, refs)
	parts, err := Empirical(train).Partition(t.Context(), patches, noise.New(1, "empirical"))
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		observed := patches[i].Observed()
		of := -1
		for d := range train.Days() {
			other, ok := intersect(observed, train.Cut(samples.Ref{Day: d, Window: refs[i].Window}).Observed())
			if ok && equalMasks(other.Context, part.Context) {
				of = d
			}
		}
		if of < 0 || of == refs[i].Day {
			t.Errorf("patch of day %d is split by day %d", refs[i].Day, of)
		}
	}
}

// With pixel anchors neighbours are kept independently; with coherent ones
// they go together.
func TestCoherentAnchorsLoseWholeRegions(t *testing.T) {
	const side, draws = 32, 60
	p := cloudy(1, side)[0]
	for c := range p.Values {
		p.Values[c] = 1
	}
	together := func(cfg GuideConfig) (neighbours, share float64) {
		dst := make([]float32, side*side)
		var same, n float64
		for d := range uint64(draws) {
			cfg.anchors(dst, p, noise.New(d, "anchor"))
			for c, y := range dst {
				share += float64(y) / (draws * side * side)
				if c%side+1 < side {
					same += indicator(y == dst[c+1])
					n++
				}
			}
		}
		return same / n, share
	}
	pixel, share := together(GuideConfig{Anchor: AnchorPixel, Rho: 0.8})
	if want := 0.8*0.8 + 0.2*0.2; math.Abs(pixel-want) > 0.01 || math.Abs(share-0.8) > 0.01 {
		t.Errorf("pixel anchors: neighbours agree in %.3f, want %.3f; share %.3f, want 0.8", pixel, want, share)
	}
	coherent, share := together(GuideConfig{Anchor: AnchorCoherent, Rho: 0.8})
	if coherent < 0.9 || math.Abs(share-0.8) > 0.01 {
		t.Errorf("coherent anchors: neighbours agree in %.3f, want at least 0.9; share %.3f, want 0.8", coherent, share)
	}
}

func TestAnchorLiesOnTheObservation(t *testing.T) {
	p := cloudy(1, 16)[0]
	dst := make([]float32, 16*16)
	for _, cfg := range []GuideConfig{DefaultGuidance(), PaperGuidance(), {Anchor: AnchorCoherent, Rho: 1}} {
		cfg.anchors(dst, p, noise.New(1, "on"))
		for c, o := range p.Observed() {
			if dst[c] != 0 && !o {
				t.Fatalf("%s anchor at cell %d, where nothing was observed", cfg.Anchor, c)
			}
			if cfg.Rho == 1 && o && dst[c] != 1 {
				t.Fatalf("rho 1 left out cell %d", c)
			}
		}
	}
}

func TestPatchThatCannotBeSplitIsAnError(t *testing.T) {
	p := cloudy(1, 16)[0]
	for c := range p.Values {
		p.Values[c] = field.NaN()
	}
	p.Values[17] = 1
	_, err := Coherent().Partition(t.Context(), []samples.Patch{p}, noise.New(1, "bad"))
	if !errors.Is(err, errTooFew) || !strings.Contains(err.Error(), "2021-03-01") {
		t.Errorf("error is %v, want one that names the day", err)
	}
}

func TestSmoothFieldHasItsCorrelationLength(t *testing.T) {
	const side, length = 64, 8
	var product, square float64
	for s := range uint64(40) {
		f := smoothField(side, side, length, noise.New(s, "smooth"))
		for i := range side {
			for j := range side - length {
				product += float64(f[i*side+j]) * float64(f[i*side+j+length])
				square += float64(f[i*side+j]) * float64(f[i*side+j])
			}
		}
	}
	if got := product / square; math.Abs(got-1/math.E) > 0.06 {
		t.Errorf("correlation at %d cells is %.3f, want %.3f", length, got, 1/math.E)
	}
}
