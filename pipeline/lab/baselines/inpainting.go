package baselines

import (
	"context"

	"lacuna/pipeline/noise"
)

// IterativeConditioning goes from noise to field in Steps steps; at each, the
// clean field is a blend of two expectations, that of the diffusion and that of
// the observations alone. It uses Members, Draws, Steps, Blend and Scope.
func IterativeConditioning(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error) {
	cfg.Jumps = 1
	return RecursiveJump(ctx, d, p, cfg, s)
}

// RecursiveJump is IterativeConditioning that goes on: it jumps forward again
// to Steps·k/Jumps and comes down from there, for k from Jumps-1 to 1. That is
// about Steps·(Jumps+1)/2 calls of the network.
func RecursiveJump(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error) {
	w, err := newWalk(d, p, cfg, s)
	if err != nil {
		return Drawn{}, err
	}
	if err := w.expect(ctx, 0, nil); err != nil {
		return Drawn{}, err
	}
	for k := cfg.Jumps; k >= 1; k-- {
		if k < cfg.Jumps {
			w.finish()
			w.jump(cfg.Steps * k / cfg.Jumps)
		}
		for w.at > 0 {
			if err := w.down(ctx); err != nil {
				return Drawn{}, err
			}
		}
	}
	return w.finish(), nil
}

// ResamplingInpainting is IterativeConditioning that jumps Length steps forward
// again after every Every steps. Length must be less than Every, or it would
// never arrive.
func ResamplingInpainting(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error) {
	w, err := newWalk(d, p, cfg, s)
	if err != nil {
		return Drawn{}, err
	}
	if err := w.expect(ctx, 0, nil); err != nil {
		return Drawn{}, err
	}
	for since := 0; w.at > 0; {
		if err := w.down(ctx); err != nil {
			return Drawn{}, err
		}
		if since++; since == cfg.Every && w.at > 0 {
			w.jump(min(w.at+cfg.Length, cfg.Steps))
			since = 0
		}
	}
	return w.finish(), nil
}
