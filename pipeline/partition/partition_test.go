package partition

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

func TestPixelDrawsContextAndQueryIndependently(t *testing.T) {
	patches := samplestest.Cloudy(60, 16)
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
	full := samplestest.Cloudy(1, side)[0]
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
			if n := field.Mask(mask).Count(); n != grid*grid/2*(side/grid)*(side/grid) {
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

// The field is a bowl, steeper with every column to the east and within a column
// with every row, so the two halves are known without asking the code. Every draw
// takes exactly half of the context from either, whatever its share, and within
// a half every cell has the same chance.
func TestSaliencyTakesHalfOfTheContextFromTheSteepCells(t *testing.T) {
	const side, gaps, draws = 16, 17, 400
	p := samplestest.Cloudy(1, side)[0]
	for c := range p.Values {
		row, col := float32(c/side), float32(c%side)
		p.Values[c] = 20*col*col + row*row
		if c < gaps {
			p.Values[c] = field.NaN() // 239 are left, an odd number
		}
	}
	observed := indices(p.Observed())
	half := len(observed) / 2
	slices.SortFunc(observed, func(a, b int) int { return cmp.Or(b%side-a%side, b-a) })
	for _, share := range []float64{0.2, 0.5, 0.9} {
		wanted := int(math.Round(share * float64(len(observed))))
		often := make([]float64, len(p.Values))
		for seed := range uint64(draws) {
			parts, err := Saliency(share).Partition(t.Context(), []samples.Patch{p}, noise.New(seed, "saliency"))
			if err != nil {
				t.Fatal(err)
			}
			steep, flat := 0, 0
			for rank, c := range observed {
				if !parts[0].Context[c] {
					continue
				}
				often[c] += 1. / draws
				if rank < half {
					steep++
				} else {
					flat++
				}
			}
			if steep != wanted/2 || flat != wanted-wanted/2 {
				t.Fatalf("share %g: %d of the context are steep and %d flat, want half of %d each", share, steep, flat, wanted)
			}
		}
		const within = 5 * 0.5 / 20 // five standard errors of 400 draws, at most
		for _, c := range observed {
			if math.Abs(often[c]-share) > within {
				t.Fatalf("share %g: cell %d is context in %.3f of the draws", share, c, often[c])
			}
		}
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
	_, train, _ := samplestest.Archive(t, 30, 16)
	refs := train.Refs(16, 16, MinObservedCells)
	patches := samplestest.CutAll(train, refs)
	parts, err := Empirical(train).Partition(t.Context(), patches, noise.New(1, "empirical"))
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		observed := patches[i].Observed()
		of := -1
		for d := range train.Days() {
			other, ok := Intersect(observed, train.Cut(samples.Ref{Day: d, Window: refs[i].Window}).Observed())
			if ok && slices.Equal(other.Context, part.Context) {
				of = d
			}
		}
		if of < 0 || of == refs[i].Day {
			t.Errorf("patch of day %d is split by day %d", refs[i].Day, of)
		}
	}
}

func TestPatchThatCannotBeSplitIsAnError(t *testing.T) {
	p := samplestest.Cloudy(1, 16)[0]
	for c := range p.Values {
		p.Values[c] = field.NaN()
	}
	p.Values[17] = 1
	_, err := Coherent().Partition(t.Context(), []samples.Patch{p}, noise.New(1, "bad"))
	if !errors.Is(err, errTooFew) || !strings.Contains(err.Error(), "2021-03-01") {
		t.Errorf("error is %v, want one that names the day", err)
	}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
