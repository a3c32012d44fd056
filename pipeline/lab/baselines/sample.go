package baselines

import (
	"context"
	"errors"
	"fmt"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// Sampling holds a sampler and its settings.
type Sampling struct {
	Sampler  Sampler
	Contexts Contexts
	Config   SamplerConfig
}

// Sample completes a window with one of the published samplers. Visible cells
// keep their value.
func Sample(ctx context.Context, m *impute.Model, in impute.Inputs, how Sampling, s noise.Stream) (Drawn, error) {
	if err := in.Validate(); err != nil {
		return Drawn{}, fmt.Errorf("sample: %w", err)
	}
	if m.Design().Extras.Analysis {
		return Drawn{}, errors.New("sample: the network sees an analysis of the clean observations, so noise over them means nothing to it; " +
			"train one with the paper's preset, or draw members")
	}
	// The network sees and predicts departures from its base.
	observed := make([]float32, in.Cells())
	for i, visible := range in.Visible {
		if visible {
			observed[i] = in.Values[i] - m.Design().Base(&in, i)
		}
	}
	p := Problem{Observed: observed, Visible: in.Visible, Sea: in.Sea, Contexts: how.Contexts}
	drawn, err := how.Sampler(ctx, denoiserOf(m, in), p, how.Config, s)
	if err != nil {
		return Drawn{}, fmt.Errorf("sample: %w", err)
	}
	for _, x := range drawn.Members {
		for i := range x {
			x[i] += m.Design().Base(&in, i)
			if in.Visible[i] {
				x[i] = in.Values[i]
			}
		}
	}
	return drawn, nil
}

// denoiserOf returns a model as a denoiser of departures from the base,
// with everything around the window as in has it.
func denoiserOf(m *impute.Model, in impute.Inputs) Denoiser {
	return func(ctx context.Context, t float32, x [][]float32, mask [][]bool) ([][]float32, error) {
		windows, levels := make([]impute.Inputs, len(x)), make([]impute.Level, len(x))
		for i := range x {
			windows[i], levels[i] = in, impute.Level{T: t, Applied: true}
			windows[i].Values, windows[i].Visible = x[i], mask[i]
		}
		answers, err := m.Denoise(ctx, windows, levels)
		if err != nil {
			return nil, err
		}
		out := make([][]float32, len(x))
		for i, a := range answers {
			for k := range a.Mean {
				a.Mean[k] -= m.Design().Base(&in, k)
			}
			out[i] = a.Mean
		}
		return out, nil
	}
}

// Masks are contexts made of real observation masks, such as those of other
// days of the same place.
type Masks struct {
	Observed [][]bool
	Visible  []bool // visible cells of the sampled window
}

// MasksOf returns the observation masks of a window on training days of all
// seasons, as contexts for it.
func MasksOf(train samples.Train, w samples.Window, visible []bool) Masks {
	const days = 64 // enough variety at little cost
	m := Masks{Visible: visible}
	for k := range train.Days() {
		day := k * 37 % train.Days() // over all seasons
		observed := train.Cut(samples.Ref{Day: day, Window: w}).Observed()
		if field.Mask(observed).Count() >= partition.MinObservedCells {
			m.Observed = append(m.Observed, observed)
		}
		if len(m.Observed) == days {
			break
		}
	}
	if len(m.Observed) == 0 {
		m.Observed = [][]bool{visible}
	}
	return m
}

// Within implements Contexts: the visible cells that another day observed too,
// or all of them if there are none.
func (m Masks) Within(s noise.Stream) []bool {
	out := make([]bool, len(m.Visible))
	some := false
	for i, observed := range m.Anywhere(s) {
		out[i] = observed && m.Visible[i]
		some = some || out[i]
	}
	if !some {
		copy(out, m.Visible)
	}
	return out
}

// Anywhere implements Contexts: the observation mask of another day.
func (m Masks) Anywhere(s noise.Stream) []bool {
	return m.Observed[s.Rand(0).IntN(len(m.Observed))]
}
