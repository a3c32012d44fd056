package masks

import (
	"context"
	"fmt"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// An Exhibit is one row of a contact sheet: a patch and the masks that the prior
// draws for it.
type Exhibit struct {
	Patch           samples.Patch
	Observed        []bool // the real mask
	Unconditional   []bool // drawn for the place and season only
	Guided          []bool // drawn under the pull of the anchor
	Anchor          []bool // the observation, thinned
	partition.Parts        // the partition by the guided mask
}

// Exhibits draws the rows of a contact sheet. The partition is that of the mask
// beside it, even where it leaves one side empty.
func Exhibits(ctx context.Context, m *prior.Model, patches []samples.Patch, cfg prior.GuideConfig, stream noise.Stream) ([]Exhibit, error) {
	places := make([]prior.Place, len(patches))
	for i, p := range patches {
		places[i] = m.Place(p)
	}
	free, err := m.Draw(ctx, places, cfg.SampleConfig, stream)
	if err != nil {
		return nil, fmt.Errorf("contact sheet: %w", err)
	}
	guided, anchors, err := m.DrawGuided(ctx, patches, cfg, stream)
	if err != nil {
		return nil, fmt.Errorf("contact sheet: %w", err)
	}
	out := make([]Exhibit, len(patches))
	for i, p := range patches {
		out[i] = Exhibit{Patch: p, Observed: p.Observed(), Unconditional: free[i], Guided: guided[i], Anchor: anchors[i]}
		out[i].Parts, _ = partition.Intersect(out[i].Observed, guided[i])
	}
	return out, nil
}
