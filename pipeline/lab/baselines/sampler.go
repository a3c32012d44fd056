package baselines

import (
	"context"
	"fmt"

	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// A Denoiser returns the expected clean field of each member, given x at noise
// level t, of which only the cells of mask may be read.
type Denoiser func(ctx context.Context, t float32, x [][]float32, mask [][]bool) ([][]float32, error)

// Contexts draws the masks that a sampler shows its denoiser.
type Contexts interface {
	// Within returns some of the visible cells.
	Within(s noise.Stream) []bool
	// Anywhere returns cells of the sea as if they had been observed.
	Anywhere(s noise.Stream) []bool
}

// Problem is a field to complete.
type Problem struct {
	Observed []float32 // clean values; read where Visible
	Visible  []bool
	Sea      []bool
	Contexts Contexts
}

// A Blend says how the expectation from the observations alone and that of the
// diffusion are mixed on the way from noise to field.
type Blend string

// The blends. As printed by Ma, Zhou and Yu, the diffusion counts at first and
// the observations at the end, and all members come out alike; reversed is the
// order that makes an ensemble.
const (
	Reversed  Blend = "reversed"
	Printed   Blend = "printed"
	Diffusion Blend = "diffusion" // the diffusion alone
)

// A Scope says where a sampler draws the contexts of its loop.
type Scope string

// The scopes.
const (
	ScopeDomain   Scope = "domain"   // anywhere in the sea
	ScopeObserved Scope = "observed" // among the visible cells
	ScopeSea      Scope = "sea"      // all of the sea
)

// SamplerConfig holds the constants of the samplers; each says which it uses.
type SamplerConfig struct {
	Members int     `json:"members" yaml:"members"`
	Draws   int     `json:"draws" yaml:"draws"` // contexts that the expectation from the observations averages over; 0: one context of all observations
	Delta   float32 `json:"delta" yaml:"delta"` // noise level of the proximal prediction
	Steps   int     `json:"steps" yaml:"steps"` // number of steps from noise to field
	Jumps   int     `json:"jumps" yaml:"jumps"` // stages of the recursive jump
	Length  int     `json:"length" yaml:"length"`
	Every   int     `json:"every" yaml:"every"` // number of steps after which resampling goes Length steps back
	Blend   Blend   `json:"blend" yaml:"blend"`
	Scope   Scope   `json:"scope" yaml:"scope"`
	// Schedule names how the noise falls from step to step; empty: vp-cosine.
	Schedule string `json:"schedule,omitempty" yaml:"schedule,omitempty"`
}

// DefaultSampler returns the constants of the tables. On a Gaussian field with
// known posterior, all observations at once as the context of the expectation
// bring the mean of members to within 8 % of the posterior's, ten draws of 80 %
// of them to within 24 %.
func DefaultSampler() SamplerConfig {
	return SamplerConfig{
		Members: 8, Draws: 0, Delta: 1e-3, Steps: 20, Jumps: 3, Length: 5, Every: 10,
		Blend: Reversed, Scope: ScopeDomain,
	}
}

// Validate reports everything wrong with c.
func (c SamplerConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Members > 0, "members is %d, must be positive", c.Members)
	errs.Check(c.Draws >= 0, "draws is %d, must not be negative", c.Draws)
	errs.Check(c.Delta > 0 && c.Delta < 1, "delta is %g, must lie between 0 and 1", c.Delta)
	errs.Check(c.Steps > 0, "steps is %d, must be positive", c.Steps)
	errs.Check(c.Jumps > 0 && c.Jumps <= c.Steps, "jumps is %d, must be in 1..steps", c.Jumps)
	errs.Check(c.Length > 0 && c.Length < c.Every, "length is %d and every %d: going back further than forth never ends", c.Length, c.Every)
	errs.Check(c.Blend == Reversed || c.Blend == Printed || c.Blend == Diffusion, "blend is %q", c.Blend)
	errs.Check(c.Scope == ScopeDomain || c.Scope == ScopeObserved || c.Scope == ScopeSea, "scope is %q", c.Scope)
	_, err := scheduleOf(c.Schedule)
	errs.Add(err)
	return errs.Err()
}

// Drawn is the result of a sampler.
type Drawn struct {
	Members [][]float32
	Calls   int // network calls for each member
}

// A Sampler completes a field.
type Sampler func(ctx context.Context, d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (Drawn, error)

// SamplerOf returns the sampler of a name: direct, proximal, iterative,
// resampling or recursive.
func SamplerOf(name string) (Sampler, error) {
	s, ok := map[string]Sampler{
		"direct": DirectProjection, "proximal": ProximalPrediction, "iterative": IterativeConditioning,
		"resampling": ResamplingInpainting, "recursive": RecursiveJump,
	}[name]
	if !ok {
		return nil, fmt.Errorf("sampler is %q, must be direct, proximal, iterative, resampling or recursive", name)
	}
	return s, nil
}

// A walk holds a sampler's members on their way from noise to field, in steps
// that are even in the time of its schedule.
type walk struct {
	denoise Denoiser
	p       Problem
	cfg     SamplerConfig
	stream  noise.Stream
	timeOf  schedule

	expected []float32   // expectation from the observations alone
	x        [][]float32 // the members, at step at
	at       int         // cfg.Steps is noise, 0 the field
	calls    int
	jumps    uint64
}

// Numbered streams below a sampler's.
const (
	streamContexts = iota // contexts of the expectation
	streamMembers         // noise of each member
	streamLoop            // contexts of each member and step
)

func newWalk(d Denoiser, p Problem, cfg SamplerConfig, s noise.Stream) (*walk, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sampler: %w", err)
	}
	timeOf, err := scheduleOf(cfg.Schedule)
	if err != nil {
		return nil, fmt.Errorf("sampler: %w", err)
	}
	w := &walk{denoise: d, p: p, cfg: cfg, stream: s, timeOf: timeOf, at: cfg.Steps, x: make([][]float32, cfg.Members)}
	for m := range w.x {
		w.x[m] = make([]float32, len(p.Visible))
		s.Sub(streamMembers).Sub(uint64(m)).Normals(w.x[m], 0)
	}
	return w, nil
}

func (w *walk) time(step int) float32 { return w.timeOf(float32(step) / float32(w.cfg.Steps)) }

// expect sets the expectation from the observations at noise level t, the mean
// over contexts; eps is the noise that lies over them.
func (w *walk) expect(ctx context.Context, t float32, eps []float32) error {
	alpha, sigma := impute.AlphaSigma(t)
	shown := make([]float32, len(w.p.Observed))
	for i, visible := range w.p.Visible {
		if visible {
			shown[i] = w.p.Observed[i]
			if t > 0 {
				shown[i] = alpha*shown[i] + sigma*eps[i]
			}
		}
	}
	x, masks := [][]float32{shown}, [][]bool{w.p.Visible}
	if w.cfg.Draws > 0 {
		x, masks = make([][]float32, w.cfg.Draws), make([][]bool, w.cfg.Draws)
		for k := range masks {
			x[k], masks[k] = shown, w.p.Contexts.Within(w.stream.Sub(streamContexts).Sub(uint64(k)))
		}
	}
	answers, err := w.denoise(ctx, t, x, masks)
	if err != nil {
		return err
	}
	w.calls += len(masks)
	w.expected = make([]float32, len(shown))
	for _, a := range answers {
		for i, v := range a {
			w.expected[i] += v / float32(len(answers))
		}
	}
	return nil
}

// down takes the members one step towards the field.
func (w *walk) down(ctx context.Context) error {
	t := w.time(w.at)
	diffused, err := w.denoise(ctx, t, w.x, w.contexts())
	if err != nil {
		return err
	}
	w.calls++
	alpha, sigma := impute.AlphaSigma(t)
	alphaNext, sigmaNext := impute.AlphaSigma(w.time(w.at - 1))
	share := w.share()
	for m, x := range w.x {
		for i := range x {
			clean := share*diffused[m][i] + (1-share)*w.expected[i]
			if w.p.Visible[i] {
				clean = w.p.Observed[i]
			}
			x[i] = alphaNext*clean + sigmaNext*(x[i]-alpha*clean)/sigma
		}
	}
	w.at--
	return nil
}

// share is the weight of the diffusion at the present step.
func (w *walk) share() float32 {
	switch w.cfg.Blend {
	case Printed:
		return w.time(w.at)
	case Diffusion:
		return 1
	default:
		return 1 - w.time(w.at)
	}
}

// contexts draws a mask for each member.
func (w *walk) contexts() [][]bool {
	masks := make([][]bool, len(w.x))
	for m := range masks {
		s := w.stream.Sub(streamLoop).Sub(uint64(m)).Sub(uint64(w.calls))
		switch w.cfg.Scope {
		case ScopeObserved:
			masks[m] = w.p.Contexts.Within(s)
		case ScopeSea:
			masks[m] = w.p.Sea
		default:
			masks[m] = w.p.Contexts.Anywhere(s)
		}
	}
	return masks
}

// jump takes the members back to a noisier step by the noise of the schedule.
func (w *walk) jump(to int) {
	w.jumps++
	eps := make([]float32, len(w.p.Visible))
	for m, x := range w.x {
		w.stream.Sub(streamMembers).Sub(uint64(m)).Normals(eps, w.jumps)
		impute.Renoise(x, eps, w.time(w.at), w.time(to))
	}
	w.at = to
}

// finish copies the observations over the members.
func (w *walk) finish() Drawn {
	for _, x := range w.x {
		for i, visible := range w.p.Visible {
			if visible {
				x[i] = w.p.Observed[i]
			}
		}
	}
	return Drawn{Members: w.x, Calls: w.calls}
}
