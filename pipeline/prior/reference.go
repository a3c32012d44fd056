package prior

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/samples"
)

// A Reference holds the bits that masks of the training cost under their prior,
// by how much of the sea they observe: coverage alone makes bits differ tenfold,
// and masks of a calmer region cost less than usual, not more.
type Reference struct {
	Masks    int         `json:"masks"`    // number of masks measured
	Coverage []float64   `json:"coverage"` // coverages of the bins, rising
	Mean     [][]float64 `json:"mean"`     // mean logarithm of the bits in each band
	SD       [][]float64 `json:"sd"`
	// Correlation of the bands' deviations, row by row.
	Correlation []float64 `json:"correlation"`
}

// costBands is into how many bands the levels of a likelihood are put: the cost
// of coverage, of places and of edges.
const costBands = 3

// ReferenceMasks is the fewest masks that a reference, or a bin of it, is made
// of: a deviation is then known to a fifth.
const ReferenceMasks = 12

// Numbers of a reference.
const (
	referenceBins  = 8
	leastBits      = 1e-4 // a cell, below which the cost of a band does not matter
	leastDeviation = 0.05 // least deviation of a logarithm, where the masks of a bin are all alike
	ridge          = 0.05 // added to the diagonal of the correlation, so that bands that go together do not blow up
)

// errNoReference is the error of scores without a reference.
var errNoReference = errors.New("the prior has no reference: calibrate it with masks that it has learned from")

// Calibrate measures the cost of the masks of patches, batch at a time. A
// training does it with its own masks; Encode keeps it. It is for the time before the
// model is shared.
func (m *Model) Calibrate(ctx context.Context, patches []samples.Patch, batch int) error {
	masks := m.masksOf(patches)
	costs, err := m.costs(ctx, masks, batch)
	if err != nil {
		return fmt.Errorf("calibrate prior: %w", err)
	}
	y, err := referenceOf(masks, costs)
	if err != nil {
		return fmt.Errorf("calibrate prior: %w", err)
	}
	m.reference = &y
	return nil
}

// Reference returns the costs of training masks, nil where they were not
// measured.
func (m *Model) Reference() *Reference { return m.reference }

// A Surprise is how a mask's cost compares with that of training masks.
type Surprise struct {
	Bits float64 `json:"bits"` // a cell, as BitsPerPixel
	// Score is how far the cost lies from the usual one of masks of that
	// coverage, to either side, in standard deviations: about 1 for masks as the
	// prior has learned them, more for salt and pepper, and more for masks that
	// are simpler than usual. NaN for a patch without sea.
	Score float64 `json:"score"`
}

// Surprises scores the masks of patches: a score of drift.
func (m *Model) Surprises(ctx context.Context, patches []samples.Patch) ([]Surprise, error) {
	return m.MaskSurprises(ctx, m.masksOf(patches), DefaultSampling().Batch)
}

// MaskSurprises is Surprises for masks that are not of a patch, batch at a
// time.
func (m *Model) MaskSurprises(ctx context.Context, masks []Mask, batch int) ([]Surprise, error) {
	if m.reference == nil {
		return nil, fmt.Errorf("score masks: %w", errNoReference)
	}
	costs, err := m.costs(ctx, masks, batch)
	if err != nil {
		return nil, fmt.Errorf("score masks: %w", err)
	}
	score, err := m.reference.scorer()
	if err != nil {
		return nil, fmt.Errorf("score masks: %w", err)
	}
	out := make([]Surprise, len(masks))
	for i, mask := range masks {
		out[i] = Surprise{Bits: costs[i].bits(), Score: score(mask.coverage(), costs[i].bands())}
	}
	return out, nil
}

// bands returns the logarithm of the cost of each band, the sum over its levels.
func (p bitProfile) bands() []float64 {
	out := make([]float64, costBands)
	for k, bits := range p {
		out[k*costBands/len(p)] += bits
	}
	for b, bits := range out {
		out[b] = math.Log(bits + leastBits)
	}
	return out
}

// referenceOf puts masks into bins of coverage, as many in each.
func referenceOf(masks []Mask, costs []bitProfile) (Reference, error) {
	type measured struct {
		coverage float64
		bands    []float64
	}
	var all []measured
	for i, mask := range masks {
		if c := mask.coverage(); c == c { // not NaN: there is sea
			all = append(all, measured{c, costs[i].bands()})
		}
	}
	if len(all) < ReferenceMasks {
		return Reference{}, fmt.Errorf("a reference of %d masks with sea: at least %d are needed, give more patches", len(all), ReferenceMasks)
	}
	slices.SortStableFunc(all, func(a, b measured) int { return cmp.Compare(a.coverage, b.coverage) })
	bins := min(max(len(all)/ReferenceMasks, 1), referenceBins)
	y := Reference{Masks: len(all), Correlation: make([]float64, costBands*costBands)}
	each := func(bin int, do func(measured, float64)) {
		from, to := bin*len(all)/bins, (bin+1)*len(all)/bins
		for _, one := range all[from:to] {
			do(one, 1/float64(to-from))
		}
	}
	for bin := range bins {
		coverage, mean := 0.0, make([]float64, costBands)
		each(bin, func(one measured, share float64) {
			coverage += share * one.coverage
			for b, v := range one.bands {
				mean[b] += share * v
			}
		})
		y.Coverage, y.Mean = append(y.Coverage, coverage), append(y.Mean, mean)
	}
	for bin := range bins {
		sd := make([]float64, costBands)
		each(bin, func(one measured, share float64) {
			mean := y.at(y.Mean, one.coverage) // on the line between bins: a slope is no deviation
			for b, v := range one.bands {
				sd[b] += share * (v - mean[b]) * (v - mean[b])
			}
		})
		for b := range sd {
			sd[b] = max(math.Sqrt(sd[b]), leastDeviation)
		}
		y.SD = append(y.SD, sd)
	}
	for _, one := range all {
		u := y.deviations(one.coverage, one.bands)
		for i := range u {
			for j := range u {
				y.Correlation[i*costBands+j] += u[i] * u[j] / float64(len(all))
			}
		}
	}
	return y, nil
}

// at returns a row of table at a coverage, between the two that are known
// nearest to it.
func (y *Reference) at(table [][]float64, coverage float64) []float64 {
	k, _ := slices.BinarySearch(y.Coverage, coverage)
	if k == 0 {
		return table[0]
	}
	if k == len(y.Coverage) {
		return table[k-1]
	}
	low, high := y.Coverage[k-1], y.Coverage[k]
	part := (coverage - low) / (high - low)
	out := make([]float64, len(table[k]))
	for b := range out {
		out[b] = (1-part)*table[k-1][b] + part*table[k][b]
	}
	return out
}

// deviations returns how far bands lie from their means, in deviations.
func (y *Reference) deviations(coverage float64, bands []float64) []float64 {
	mean, sd := y.at(y.Mean, coverage), y.at(y.SD, coverage)
	out := make([]float64, len(bands))
	for b, v := range bands {
		out[b] = (v - mean[b]) / sd[b]
	}
	return out
}

// scorer returns the length of a mask's deviations, measured along the axes in
// which those of the training masks are independent, over the root of their
// number.
func (y *Reference) scorer() (func(coverage float64, bands []float64) float64, error) {
	c := mat.NewSymDense(costBands, slices.Clone(y.Correlation))
	for b := range costBands {
		c.SetSym(b, b, c.At(b, b)+ridge)
	}
	var factor mat.Cholesky
	if !factor.Factorize(c) {
		return nil, errors.New("the bands of the reference have no valid correlation matrix: the prior's file is damaged, or was calibrated with too few masks")
	}
	return func(coverage float64, bands []float64) float64 {
		if coverage != coverage { // NaN: no sea
			return math.NaN()
		}
		u := mat.NewVecDense(costBands, y.deviations(coverage, bands))
		var solved mat.VecDense
		if err := factor.SolveVecTo(&solved, u); err != nil {
			return math.NaN() // it is singular; the ridge does not let it be
		}
		return math.Sqrt(mat.Dot(u, &solved) / costBands)
	}, nil
}

// decodeReference reads a reference that Encode wrote.
func decodeReference(text string) (*Reference, error) {
	var y Reference
	if err := json.Unmarshal([]byte(text), &y); err != nil {
		return nil, err
	}
	if len(y.Coverage) == 0 || len(y.Mean) != len(y.Coverage) || len(y.SD) != len(y.Coverage) || len(y.Correlation) != costBands*costBands {
		return nil, errors.New("the tables of the reference differ in length: the file is damaged")
	}
	for k := range y.Coverage {
		if len(y.Mean[k]) != costBands || len(y.SD[k]) != costBands {
			return nil, fmt.Errorf("row %d does not have %d bands", k, costBands)
		}
	}
	return &y, nil
}
