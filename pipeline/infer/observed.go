package infer

import (
	"context"
	"math"
	"slices"
	"sync"

	"lacuna/pipeline/classical"
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

// surelyWeaker is the error of an observation, by that of the better ones, from which on
// it is taken for that of a lesser source: among sources that err alike it is 1.
const surelyWeaker = 1.1

// weak returns the observations of a frame that come from a lesser one of several sources,
// which are not to be published before their neighbours are asked; nil: there are none, or
// the config says how observations are published.
func (f *Filler) weak(s classical.Series, target int) field.Mask {
	errors := s.Frames[target].Errors
	if errors == nil || f.cfg.Quality.Observed != "" {
		return nil
	}
	limit := surelyWeaker * math.Sqrt(s.Erring())
	weak, any := make(field.Mask, len(errors)), false
	for i, v := range s.Frames[target].Values {
		weak[i] = finite(v) && finite(errors[i]) && float64(errors[i]) > limit
		any = any || weak[i]
	}
	if !any {
		return nil
	}
	return weak
}

// reconsider publishes observations as the config says, or those that are weak. The estimate of an
// observed cell from its neighbours is the method's fill with that cell hidden:
// every other observation is hidden, like the white squares of a chessboard,
// and then the others. With b and σb for the estimate, and y and σy for the
// observation and its own error or else the noise of single cells, Blend
// publishes
//
//	x = b + k (y - b),  k = σb² / (σb² + σy²),  σ² = k σy²
//
// and Denoise b with σb. An observation that is weak is blended where its neighbours are
// surer than it, σb < σy, and else stays. A changed cell is flagged as interpolated: its value
// is no longer the sensor's.
func (f *Filler) reconsider(ctx context.Context, v view, s Scene, frame int, weak field.Mask, a *Analysis) error {
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
			if (i/width+i%width)%2 == colour && (weak == nil || weak[i]) {
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
			if f.cfg.Quality.Observed != Denoise {
				erring := noise
				switch {
				case weak != nil:
					if erring = float64(v.Frames[v.target].Errors[i]); erring <= sigma {
						continue
					}
				case a.Flags[i]&OwnError != 0:
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
