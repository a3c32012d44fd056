package prior

import (
	"context"
	"fmt"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// NewUnconditional splits a patch by a mask that the prior draws for its place
// and season without looking at what was observed. It guarantees a partition:
// a draw that leaves context or query empty is drawn again, and after some in
// vain the patch is split as Coherent does.
func NewUnconditional(m *Model, cfg SampleConfig) (Partitioner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("unconditional partitions: %w", err)
	}
	return &byModel{name: "unconditional", model: m, cfg: GuideConfig{SampleConfig: cfg}}, nil
}

// NewGuided splits a patch by a mask that the prior draws under the pull of a
// thinned copy of what was observed. It guarantees a partition, as
// NewUnconditional does.
func NewGuided(m *Model, cfg GuideConfig) (Partitioner, error) {
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

// Name implements Partitioner.
func (b *byModel) Name() string { return b.name }

// degenerateTries is how often a mask is drawn for one patch. Where windows
// are nearly empty, an unconditional mask misses the observation about half of
// the time.
const degenerateTries = 4

// Partition implements Partitioner.
func (b *byModel) Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]Partition, error) {
	out := make([]Partition, len(patches))
	observed := make([][]bool, len(patches))
	open := make([]int, len(patches)) // items without a partition yet
	for i, p := range patches {
		open[i], observed[i] = i, p.Observed()
		if count(observed[i]) < 2 {
			return nil, refuse(p)
		}
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
			part, ok := intersect(observed[i], masks[k])
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
		retention := retentionMin + (retentionMax-retentionMin)*spare.Rand(0).Float64()
		out[i] = rest(observed[i], coherentCut(patches[i].Window, observed[i], retention, spare))
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
