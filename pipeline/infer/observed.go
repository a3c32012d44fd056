package infer

import (
	"context"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// Treatments of observations in the product.
const (
	Keep    = "keep"    // published as observed, bit for bit
	Blend   = "blend"   // corrected towards the estimate from their neighbours
	Denoise = "denoise" // replaced by the estimate from their neighbours
)

// reconsider publishes observations as the config says. The estimate of an
// observed cell from its neighbours is the method's fill with that cell hidden:
// every other observation is hidden, like the white squares of a chessboard,
// and then the others. With b and σb for the estimate, and y and σy for the
// observation and the noise of single cells, Blend publishes
//
//	x = b + k (y - b),  k = σb² / (σb² + σy²),  σ² = k σy²
//
// and Denoise b with σb. A changed cell is flagged as interpolated: its value
// is no longer the sensor's.
func (f *Filler) reconsider(ctx context.Context, v view, s Scene, frame int, a *Analysis) error {
	fast := *f
	fast.cfg.Network.Tier, fast.cfg.Details = Fast, false
	own := v.Frames[v.target].Values
	width := v.Grid.Width()
	noise := spread(deviations(own, width))
	for colour := range 2 {
		hidden := v
		hidden.Frames = slices.Clone(v.Frames)
		values := slices.Clone(own)
		for i := range values {
			if (i/width+i%width)%2 == colour {
				values[i] = field.NaN()
			}
		}
		hidden.Frames[v.target].Values = values
		predicted, err := fast.fill(ctx, hidden, func(int, int) {})
		if err != nil {
			return err
		}
		for i, y := range own {
			if !s.Frames[frame].Observed(i) || finite(values[i]) || s.Sea != nil && !s.Sea[i] {
				continue
			}
			b, sigma := float64(predicted.estimate.Mean[i]), float64(predicted.estimate.Sigma[i])
			if math.IsNaN(b) || math.IsNaN(sigma) {
				continue // nothing else is known: the observation stays
			}
			if f.cfg.Quality.Observed == Blend {
				k := sigma * sigma / (sigma*sigma + noise*noise)
				b, sigma = b+k*(float64(y)-b), math.Sqrt(k)*noise
			}
			a.Flags[i] |= Interpolated
			a.set(i, s.Transform, float32(b), float32(sigma))
		}
	}
	return nil
}
