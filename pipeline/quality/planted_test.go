package quality

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// planted is a simulated scene with faults whose places are known.
type planted struct {
	Scene
	clean  []Frame
	faults [][]Cause // by frame and cell: the test that should find it
	edges  [][]bool  // observations beside a cloud
}

// plant simulates 30 days and spoils every one of them: single cells, the cells
// beside clouds on their way to one cause, and blocks of five by five cells.
// sizes are the smallest and largest fault of each kind, in the space of the
// frames.
func plant(t *testing.T, product string, spikes, edges, blocks [2]float64) planted {
	t.Helper()
	world, err := simulate.New(simulate.Config{Product: product, Height: 96, Width: 128, Days: 30, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	tr := field.Transform{Log10: world.Product().Log, Floor: 1e-4}
	rng := rand.New(rand.NewPCG(1, 2))
	size := func(r [2]float64) float32 { return float32(r[0] + rng.Float64()*(r[1]-r[0])) }
	p := planted{Scene: Scene{Grid: world.Grid(), Sea: world.Sea()}}
	grid := area{width: p.Grid.Width(), height: p.Grid.Height()}
	sky := field.EverObserved(p.Grid.Len(), world.Day(3).Truth)
	for n := range world.Days() {
		day := world.Day(n)
		values := make([]float32, len(day.Seen.Values))
		tr.Forward(values, day.Seen.Values)
		p.clean = append(p.clean, Frame{Time: day.Time, Values: slices.Clone(values)})
		faults := make([]Cause, len(values))
		near := grid.beside(values, sky, 1)
		spoil := func(c int, by float32, cause Cause) {
			if values[c] == values[c] && faults[c] == Passed {
				values[c] += by
				faults[c] = cause
			}
		}
		for range 2 { // undetected cloud
			at, by := rng.IntN(len(values)), -size(blocks)
			spoil(at, by, ByRange)
			grid.around(at, 2, func(c int) bool { spoil(c, by, ByRange); return true })
		}
		for c := range values {
			switch roll := rng.Float64(); {
			case near[c] && roll < 0.2:
				spoil(c, -size(edges), ByEdge)
			case !near[c] && roll < 0.003:
				by := size(spikes)
				if rng.IntN(2) == 0 {
					by = -by
				}
				spoil(c, by, BySpike)
			}
		}
		p.Frames = append(p.Frames, Frame{Time: day.Time, Values: values})
		p.faults, p.edges = append(p.faults, faults), append(p.edges, near)
	}
	return p
}

// shares are the share of planted faults of a kind that were found, by whichever
// test, and that of the sound cells that were lost.
type shares struct {
	found map[Cause]float64
	lost  float64
}

func (p planted) judge(tests Tests) shares {
	var all, found [5]int
	for i, v := range tests.Screen(p.Scene) {
		for c, cause := range v {
			if p.Frames[i].Values[c] != p.Frames[i].Values[c] {
				continue
			}
			kind := p.faults[i][c]
			all[kind]++
			if cause != Passed {
				found[kind]++
			}
		}
	}
	out := shares{found: map[Cause]float64{}, lost: float64(found[Passed]) / float64(all[Passed])}
	for _, kind := range []Cause{ByRange, ByEdge, BySpike} {
		out.found[kind] = float64(found[kind]) / float64(all[kind])
	}
	return out
}

func (s shares) String() string {
	return fmt.Sprintf("found: blocks %.1f %%, edges %.1f %%, spikes %.1f %%; sound cells lost: %.2f %%",
		100*s.found[ByRange], 100*s.found[ByEdge], 100*s.found[BySpike], 100*s.lost)
}

// on returns the default tests with those of the names on.
func on(t *testing.T, names string) Tests {
	t.Helper()
	tests, err := Parse(names)
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// The figures of docs/method.md come from here: go test -v -run PlantedFaults.
func TestPlantedFaultsAreFoundAndSoundCellsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	for _, sea := range []struct {
		product               string
		spikes, edges, blocks [2]float64
	}{
		{"med-sst", [2]float64{2, 6}, [2]float64{1, 4}, [2]float64{6, 10}},          // kelvin
		{"blk-chl", [2]float64{0.6, 1.2}, [2]float64{0.3, 0.9}, [2]float64{1.2, 2}}, // decades
	} {
		t.Run(sea.product, func(t *testing.T) {
			p := plant(t, sea.product, sea.spikes, sea.edges, sea.blocks)
			for _, tt := range []struct {
				tests string
				kind  Cause
				found float64 // least share
				lost  float64 // largest share
			}{
				{"spike", BySpike, 0.8, 0.005},
				{"edge", ByEdge, 0.8, 0.01},
				{"range", ByRange, 0.75, 0.005},
				{"range,edge,spike", ByEdge, 0.8, 0.01},
				{"edge=0", ByEdge, 1, 0.5},
			} {
				began := time.Now()
				got := p.judge(on(t, tt.tests))
				t.Logf("%-18s %v (%v)", tt.tests, got, time.Since(began).Round(time.Millisecond))
				if got.found[tt.kind] < tt.found || got.lost > tt.lost {
					t.Errorf("%s: %v; want at least %g of the planted and at most %g of the sound", tt.tests, got, tt.found, tt.lost)
				}
			}
		})
	}
}
