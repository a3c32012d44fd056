package infer

import (
	"context"
	"math"
	"slices"

	"lacuna/pipeline/field"
)

// What becomes of observations in the product.
const (
	Keep    = "keep"    // they are published as they were seen, bit for bit
	Blend   = "blend"   // they are corrected towards what their neighbours say
	Denoise = "denoise" // they are replaced by what their neighbours say
)

// reconsider publishes observations as the config says. What is around a cell
// says of it what the method makes of the field without it: every other
// observation is hidden, like the white squares of a chessboard, and then the
// others. With b and σb for that, and y and σy for the observation and the
// noise of single cells, Blend publishes
//
//	x = b + k (y - b),  k = σb² / (σb² + σy²),  σ² = k σy²
//
// and Denoise b with σb. A cell that was changed is flagged as interpolated:
// its value is not the sensor's any more.
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
		said, err := fast.fill(ctx, hidden, func(int, int) {})
		if err != nil {
			return err
		}
		for i, y := range own {
			if !s.Frames[frame].Observed(i) || finite(values[i]) || s.Sea != nil && !s.Sea[i] {
				continue
			}
			b, sigma := float64(said.estimate.Mean[i]), float64(said.estimate.Sigma[i])
			if math.IsNaN(b) || math.IsNaN(sigma) {
				continue // nothing else is known: the observation stays
			}
			if f.cfg.Quality.Observed == Blend {
				k := sigma * sigma / (sigma*sigma + noise*noise)
				b, sigma = b+k*(float64(y)-b), math.Sqrt(k)*noise
			}
			a.Flags[i] |= Interpolated
			a.say(i, s.Transform, float32(b), float32(sigma))
		}
	}
	return nil
}
