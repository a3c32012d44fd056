// Package partitiontest checks the promises of a strategy.
package partitiontest

import (
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// Partitions fails where a strategy leaves context or query empty, lets them
// overlap or leaves something out that was observed.
func Partitions(t *testing.T, by partition.Strategy, train samples.Train) {
	t.Helper()
	patches := samplestest.CutAll(train, train.Refs(16, 16, partition.MinObservedCells))
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
		if field.Mask(part.Context).Count() == 0 || field.Mask(part.Query).Count() == 0 {
			t.Fatalf("patch %d: %d cells of context and %d of query", i, field.Mask(part.Context).Count(), field.Mask(part.Query).Count())
		}
	}
}

// Repeats fails where one stream gives two answers, or two streams one.
func Repeats(t *testing.T, by partition.Strategy, patches []samples.Patch) {
	t.Helper()
	draw := func(seed uint64) []partition.Parts {
		parts, err := by.Partition(t.Context(), patches, noise.New(seed, "stream"))
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	first, again, other := draw(1), draw(1), draw(2)
	differ := false
	for i := range first {
		if !slices.Equal(first[i].Context, again[i].Context) || !slices.Equal(first[i].Query, again[i].Query) {
			t.Errorf("%s: partition %d differs between two draws of one stream", by.Name(), i)
		}
		differ = differ || !slices.Equal(first[i].Context, other[i].Context)
	}
	if !differ {
		t.Errorf("%s: another stream gives the same partitions", by.Name())
	}
}
