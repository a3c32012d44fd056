package prior

import (
	"context"
	"fmt"
	"math"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Levels of ln(α/σ) at which a mask's likelihood is added up: beyond the last,
// cells are known for certain.
const (
	likelihoodLevels     = 24
	likelihoodLogSNRLast = 1.6 // a cell's evidence is then 7 standard deviations
)

// BitsPerPixel returns, for each patch, how many bits a cell of its mask costs
// under the prior: the loss of a Bayesian Flow Network,
//
//	∫ 2·||e - ê||² dSNR / (d ln 2),  SNR = (α/σ)²,
//
// over the sea. It is a bound of the negative log-likelihood, and equal to it
// for an exact predictor. Salt and pepper costs more than masks as the prior
// has learned them, and masks of a calmer region cost less: Surprises tells
// both. A patch without sea costs NaN.
//
// Every patch meets the same noise, so scores of patches can be compared.
func (m *Model) BitsPerPixel(ctx context.Context, patches []samples.Patch) ([]float64, error) {
	return m.MaskBits(ctx, m.masksOf(patches), DefaultSampling().Batch)
}

// MaskBits is BitsPerPixel for masks that are not of a patch, batch at a time;
// with the batch of a sampler, nothing more is compiled.
func (m *Model) MaskBits(ctx context.Context, masks []Mask, batch int) ([]float64, error) {
	costs, err := m.costs(ctx, masks, batch)
	if err != nil {
		return nil, fmt.Errorf("score masks: %w", err)
	}
	out := make([]float64, len(masks))
	for i, c := range costs {
		out[i] = c.bits()
	}
	return out, nil
}

// costs returns the cost of masks at each level, batch at a time.
func (m *Model) costs(ctx context.Context, masks []Mask, batch int) ([]bitProfile, error) {
	out := make([]bitProfile, 0, len(masks))
	for from := 0; from < len(masks); from += batch {
		part := masks[from:min(from+batch, len(masks))]
		places := make([]Place, len(part))
		for i, mask := range part {
			places[i] = mask.Place
		}
		if err := (drawing{places: places, cfg: GuideConfig{SampleConfig: SampleConfig{Batch: batch}}}).check(); err != nil {
			return nil, err
		}
		s := m.open(places, batch)
		some, err := bitProfiles(ctx, s.predict, m.schedule, part)
		s.close()
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// A bitProfile is the cost of a cell of a mask at each level, from noise to the
// mask: first how much is observed, then where, then the edges. Levels are even
// in ln(α/σ), of which SNR = exp(2·ln(α/σ)) makes the weight.
type bitProfile [likelihoodLevels]float64

// bits adds up the loss over all levels.
func (p bitProfile) bits() float64 {
	sum := 0.0
	for _, b := range p {
		sum += b
	}
	return sum
}

func bitProfiles(ctx context.Context, predict Predictor, schedule Schedule, masks []Mask) ([]bitProfile, error) {
	cells := len(masks[0].Sea)
	first, _ := LogSNRRange(cells)
	last := min(likelihoodLogSNRLast, schedule.At(0).LogSNR())
	step := (last - first) / likelihoodLevels
	out := make([]bitProfile, len(masks))
	x := make([]float32, len(masks)*Classes*cells)
	stream := noise.New(1, "prior", "likelihood") // one seed for all time: scores are to be compared
	for k := range likelihoodLevels {
		logSNR := first + (float64(k)+0.5)*step
		level := schedule.At(schedule.TimeOf(logSNR))
		for i, mask := range masks {
			latents(x[i*Classes*cells:(i+1)*Classes*cells], mask.Observed, level, stream, uint64(k))
		}
		observed, err := predict(ctx, Latents{X: x, Items: len(masks), Cells: cells, Level: level})
		if err != nil {
			return nil, err
		}
		snr := math.Exp(2 * logSNR)
		for i, mask := range masks {
			// Two classes miss by the same, hence 2·2; dSNR = 2·SNR·dln(α/σ).
			miss := mask.miss(observed[i*cells : (i+1)*cells])
			out[i][k] = 4 * miss * 2 * snr * step / (math.Ln2 * float64(field.Mask(mask.Sea).Count()))
		}
	}
	return out, nil
}

// latents fills x with α·K·e + σ·ε.
func latents(x []float32, observed []bool, l Level, stream noise.Stream, index uint64) {
	stream.Normals(x, index)
	cells := len(observed)
	sigma, signal := float32(l.Sigma), float32(Classes*l.Alpha)
	for i := range x {
		x[i] *= sigma
	}
	for i, o := range observed {
		if o {
			x[cells+i] += signal
		} else {
			x[i] += signal
		}
	}
}
