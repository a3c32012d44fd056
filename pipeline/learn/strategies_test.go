package learn_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// An imputer takes its examples from any strategy, and the same seed gives the
// same ones.
func TestAnImputerLearnsFromAnyStrategy(t *testing.T) {
	train := stripes(t)
	refs := train.Refs(16, 16, partition.MinObservedCells)
	known := map[string][]bool{}
	for _, by := range []partition.Strategy{
		partition.Pixel(0.3, 0.3), partition.Block(4, 0.5, 0.5), partition.Saliency(0.5), partition.Coherent(), partition.Empirical(train),
	} {
		var first learn.Example
		for again := range 2 {
			source, err := learn.Fresh(train, refs, by, 7)
			if err != nil {
				t.Fatal(err)
			}
			example, err := source.Example(t.Context(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if again == 0 {
				first = example
			} else if example.Ref != first.Ref || !slices.Equal(example.Context, first.Context) || !slices.Equal(example.Query, first.Query) {
				t.Errorf("%s: the same seed gives another example", by.Name())
			}
		}
		for name, other := range known {
			if slices.Equal(other, first.Context) {
				t.Errorf("%s and %s have the same context", name, by.Name())
			}
		}
		known[by.Name()] = first.Context
	}
}

// stripes are days of a sea with gaps that move.
func stripes(t *testing.T) samples.Train {
	t.Helper()
	const side, days = 16, 30
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.05*float64(i), 10+0.05*float64(i)
	}
	sea := make(field.Mask, side*side)
	fields := make([]field.Field, days)
	for d := range fields {
		values := make([]float32, side*side)
		for c := range values {
			sea[c] = true
			values[c] = float32(math.Sin(float64(c)/9) + float64(d))
			if (c/side+3*d)%side < 4+d%5 {
				values[c] = field.NaN()
			}
		}
		fields[d] = field.Field{Grid: grid, Time: time.Date(2021, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: values}
	}
	series, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	train, _, err := series.Split(samples.SplitConfig{HeldOut: 0.3, GapDays: 2, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return train
}
