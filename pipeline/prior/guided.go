package prior

import (
	"context"
	"fmt"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// NewUnconditional splits a patch by a mask that the prior draws for its place
// and season without looking at the observed cells. It guarantees a partition:
// a draw that leaves context or query empty is drawn again, and after some in
// vain the patch is split as Coherent does.
func NewUnconditional(m *Model, cfg SampleConfig) (partition.Strategy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("unconditional partitions: %w", err)
	}
	return &byModel{name: "unconditional", model: m, cfg: GuideConfig{SampleConfig: cfg}}, nil
}

// NewGuided splits a patch by a mask that the prior draws under the pull of a
// thinned copy of the observed cells. It guarantees a partition, as
// NewUnconditional does.
func NewGuided(m *Model, cfg GuideConfig) (partition.Strategy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("guided partitions: %w", err)
	}
	return &byModel{name: "guided", model: m, cfg: cfg, guided: true}, nil
}

type byModel struct {
	name   string
	model  *Model
	cfg    GuideConfig
	guided bool
}

// Name implements partition.Strategy.
func (b *byModel) Name() string { return b.name }

// degenerateTries is how often a mask is drawn for one patch. Where windows
// are nearly empty, an unconditional mask misses the observation about half of
// the time.
const degenerateTries = 4

// Partition implements partition.Strategy.
func (b *byModel) Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]partition.Parts, error) {
	out := make([]partition.Parts, len(patches))
	observed := make([][]bool, len(patches))
	open := make([]int, len(patches)) // items without a partition yet
	for i, p := range patches {
		if err := partition.Splittable(p); err != nil {
			return nil, err
		}
		open[i], observed[i] = i, p.Observed()
	}
	for try := range degenerateTries {
		if len(open) == 0 {
			return out, nil
		}
		masks, err := b.draw(ctx, patches, open, stream, uint64(try))
		if err != nil {
			return nil, err
		}
		var still []int
		for k, i := range open {
			part, ok := partition.Intersect(observed[i], masks[k])
			if !ok {
				still = append(still, i)
				continue
			}
			out[i] = part
		}
		open = still
	}
	for _, i := range open {
		spare := stream.Sub(uint64(i)).Sub(degenerateTries)
		out[i] = partition.Rest(observed[i], partition.CoherentCut(patches[i].Window, observed[i], partition.Retention(spare.Rand(0)), spare))
	}
	return out, nil
}

// draw draws one mask for each of the items.
func (b *byModel) draw(ctx context.Context, patches []samples.Patch, items []int, stream noise.Stream, try uint64) ([][]bool, error) {
	chosen := make([]samples.Patch, len(items))
	streams := make([]noise.Stream, len(items))
	for k, i := range items {
		chosen[k], streams[k] = patches[i], stream.Sub(uint64(i)).Sub(try)
	}
	d := b.model.guidedDrawing(chosen, streams, b.cfg)
	if !b.guided {
		d.patches = nil
	}
	got, err := b.model.draw(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s partitions: %w", b.name, err)
	}
	return got.masks, nil
}
