package baselines

import (
	"context"

	"lacuna/pipeline/noise"
)

// DirectProjection completes a field by its expectation given the clean
// observations, the mean over Draws contexts: one member, no noise. Ma, Zhou and
// Yu give all their headline numbers for it (appendix, "Implementation of
// Sampling Methods").
func DirectProjection(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error) {
	return oneStep(ctx, d, p, cfg, s, 0)
}

// ProximalPrediction is DirectProjection with a little noise over the
// observations, one draw of it for all contexts. It uses Draws and Delta.
func ProximalPrediction(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error) {
	return oneStep(ctx, d, p, cfg, s, cfg.Delta)
}

func oneStep(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream, t float32) (Drawn, error) {
	cfg.Members = 1
	w, err := newWalk(d, p, cfg, s)
	if err != nil {
		return Drawn{}, err
	}
	if err := w.expect(ctx, t, w.x[0]); err != nil {
		return Drawn{}, err
	}
	copy(w.x[0], w.expected)
	return w.finish(), nil
}
