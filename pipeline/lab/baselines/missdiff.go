package baselines

import (
	"context"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// Everything returns a source whose context and query are both all observed
// cells: no partition at all, as MissDiff trains.
func Everything(days impute.Days, refs []samples.Ref, seed uint64) (learn.Source, error) {
	return learn.Fresh(days, refs, everything{}, seed)
}

type everything struct{}

// Name implements partition.Strategy.
func (everything) Name() string { return "everything" }

// Partition implements partition.Strategy.
func (everything) Partition(_ context.Context, patches []samples.Patch, _ noise.Stream) ([]partition.Parts, error) {
	out := make([]partition.Parts, len(patches))
	for i, p := range patches {
		observed := p.Observed()
		out[i] = partition.Parts{Context: observed, Query: observed}
	}
	return out, nil
}
