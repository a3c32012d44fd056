package infer

import (
	"context"
	"math"
	"slices"
	"sync"

	"lacuna/pipeline/field"
	"lacuna/pipeline/quality"
)

// Treatments of observations in the product.
const (
	Keep    = "keep"    // published as observed, bit for bit
	Blend   = "blend"   // corrected towards the estimate from their neighbours
	Denoise = "denoise" // replaced by the estimate from their neighbours
)

// observationError returns a function that gives the standard error of the
// observation of a cell in the space of the transform, and whether it is the
// one that came with the observation. Else it is the noise that the method
// fitted there; where it fitted none, such as on what the mask calls land, its
// median over the field, and for a method that fits none the noise of single
// cells. With a handful of observations nothing is known, and it is NaN.
func observationError(s Scene, frame int, noise []float32) func(cell int) (sigma float32, own bool) {
	observed := s.Frames[frame]
	var own []float32
	if s.Errors != nil {
		own = s.Errors[frame]
	}
	usual := sync.OnceValue(func() float32 {
		var fitted []float32
		for i := range noise {
			if observed.Observed(i) && noise[i] > 0 {
				fitted = append(fitted, noise[i])
			}
		}
		if len(fitted) == 0 {
			values := make([]float32, len(observed.Values))
			s.Transform.Forward(values, observed.Values)
			off := quality.Deviations(values, observed.Grid.Width())
			if !slices.ContainsFunc(off, finite) {
				return field.NaN()
			}
			return float32(quality.Spread(off))
		}
		return float32(quality.Median(fitted))
	})
	return func(i int) (float32, bool) {
		switch {
		case own != nil && own[i] > 0 && finite(own[i]):
			return own[i], true
		case noise != nil && noise[i] > 0 && finite(noise[i]):
			return noise[i], false
		}
		return usual(), false
	}
}

// setObserved publishes an observation as it is, with its error.
func (a Analysis) setObserved(i int, tr field.Transform, value, sigma float32) {
	if finite(sigma) {
		mean := [1]float32{value}
		tr.Forward(mean[:], mean[:])
		a.set(i, tr, mean[0], sigma)
	}
	a.Value[i] = value // to the bit
}

// reconsider publishes observations as the config says. The estimate of an
// observed cell from its neighbours is the method's fill with that cell hidden:
// every other observation is hidden, like the white squares of a chessboard,
// and then the others. With b and σb for the estimate, and y and σy for the
// observation and its own error or else the noise of single cells, Blend
// publishes
//
//	x = b + k (y - b),  k = σb² / (σb² + σy²),  σ² = k σy²
//
// and Denoise b with σb. A changed cell is flagged as interpolated: its value
// is no longer the sensor's.
func (f *Filler) reconsider(ctx context.Context, v view, s Scene, frame int, a *Analysis) error {
	fast := *f
	fast.cfg.Network.Tier, fast.cfg.Details, fast.cfg.Members = Fast, false, 0
	own := v.Frames[v.target].Values
	width := v.Grid.Width()
	noise := quality.Spread(quality.Deviations(own, width))
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
				erring := noise
				if a.Flags[i]&OwnError != 0 {
					erring = float64(a.Sigma[i])
				}
				k := sigma * sigma / (sigma*sigma + erring*erring)
				b, sigma = b+k*(float64(y)-b), math.Sqrt(k)*erring
			}
			a.Flags[i] = Interpolated
			a.set(i, s.Transform, float32(b), float32(sigma))
		}
	}
	return nil
}
