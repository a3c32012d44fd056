package version

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/field"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// Drift is how far recent days have moved from those that a version was made
// from; nil: not known.
type Drift struct {
	// Masks is by how much more recent masks surprise the prior than held-out
	// ones did when it was made, in standard deviations of a mask's cost.
	// Simpler masks surprise as more complicated ones do. Without a prior it is
	// how far the deciles of the observed share of windows have moved, in
	// standard deviations of that share.
	Masks *float64 `json:"masks,omitempty"`
	// Values is how far the deciles of recent values lie from those of training
	// values of the same months on average, in standard deviations of the
	// latter: the shift where all have moved alike, and more than nothing where
	// the spread or the shape changed.
	Values *float64 `json:"values,omitempty"`
}

// DriftOf compares recent days, of one grid, with those of a version.
func DriftOf(ctx context.Context, b backends.Backend, version Parts, recent samples.Series, side int) (Drift, error) {
	var d Drift
	before, known := version.evaluation()
	if !known {
		return d, nil // the version has no statistics of its days
	}
	train, err := recent.Whole()
	if err != nil {
		return d, fmt.Errorf("measure drift: %w", err)
	}
	_, values := valuesOf(recent)
	if moved, ok := before.Months.distance(values, fewestValues); ok {
		d.Values = &moved
	}
	if moved, ok := before.Coverage.distance(coverageOf(train, side), fewestWindows); ok {
		d.Masks = &moved
	}
	if before.Prior == nil || before.Prior.Surprise == nil || version[PartPrior] == nil {
		return d, nil
	}
	model, err := prior.Load(b, version[PartPrior])
	if err != nil {
		return d, fmt.Errorf("measure drift: %w", err)
	}
	defer model.Close()
	model.Recall(train)
	patches := spreadPatches(train.Refs(side, side, partition.MinObservedCells), bitMasks, train.Cut)
	_, now, err := costOf(ctx, model, patches)
	if err != nil {
		return d, fmt.Errorf("measure drift: %w", err)
	}
	if now != nil {
		moved := *now - *before.Prior.Surprise
		d.Masks = &moved
	}
	return d, nil
}

// meanSurprise returns the mean surprise of masks, nil where none has sea.
func meanSurprise(each []prior.Surprise) *float64 {
	sum, n := 0.0, 0
	for _, s := range each {
		if !math.IsNaN(s.Score) { // a patch without sea
			sum, n = sum+s.Score, n+1
		}
	}
	if n == 0 {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// Values are the statistics of the training values in the space of the
// transform.
type Values struct {
	Mean    float64   `json:"mean"`
	Std     float64   `json:"std"`
	Count   int       `json:"count"`
	Deciles []float64 `json:"deciles,omitempty"` // from the first to the ninth
}

// Seasons are statistics by the month of the year, 1 to 12: spring is no
// reference for autumn.
type Seasons map[int]Values

// Smallest samples from which a distribution is estimated: of values, of which
// neighbours are alike, and of windows.
const (
	fewestValues  = 1000
	fewestWindows = 30
)

// distance returns the mean distance of the deciles in standard deviations of
// v: the Wasserstein distance of the two distributions, as nine quantiles see
// it.
func (v Values) distance(now Values) float64 {
	sum := 0.0
	for i, q := range now.Deciles {
		sum += math.Abs(q-v.Deciles[i]) / v.Std
	}
	return sum / float64(len(v.Deciles))
}

// distance returns the mean distance over the months that both know, each as
// often as now has values of it. It reports false where there is no such month.
func (s Seasons) distance(now Seasons, fewest int) (float64, bool) {
	sum, n := 0.0, 0
	for month, v := range now {
		then := s[month]
		if min(v.Count, then.Count) < fewest || !(then.Std > 0) || len(then.Deciles) != len(v.Deciles) {
			continue
		}
		sum, n = sum+float64(v.Count)*then.distance(v), n+v.Count
	}
	return sum / float64(max(n, 1)), n > 0
}

// valuesOf returns the statistics of the values of both kinds: of all days
// together, and by season.
func valuesOf(all ...samples.Series) (Values, Seasons) {
	var together []float64
	months := map[int][]float64{}
	for _, s := range all {
		for _, d := range s.Days {
			month := int(d.Time.UTC().Month())
			for _, v := range d.Values {
				if v == v { // not NaN
					together, months[month] = append(together, float64(v)), append(months[month], float64(v))
				}
			}
		}
	}
	return summarise(together), seasonsOf(months)
}

// coverageOf returns the statistics of the observed share of the sea in
// windows.
func coverageOf(data samples.Train, side int) Seasons {
	months := map[int][]float64{}
	for _, ref := range data.Refs(side, side, 0) {
		p := data.Cut(ref)
		if sea := field.Mask(p.Sea).Count(); sea >= partition.MinObservedCells {
			month := int(p.Time.UTC().Month())
			months[month] = append(months[month], float64(field.Mask(p.Observed()).Count())/float64(sea))
		}
	}
	return seasonsOf(months)
}

func seasonsOf(months map[int][]float64) Seasons {
	out := Seasons{}
	for month, values := range months {
		out[month] = summarise(values)
	}
	return out
}

// summarise sorts values and returns their statistics.
func summarise(values []float64) Values {
	out := Values{Count: len(values)}
	if out.Count == 0 {
		return out
	}
	for _, v := range values {
		out.Mean += v / float64(out.Count)
	}
	for _, v := range values {
		out.Std += (v - out.Mean) * (v - out.Mean) / float64(out.Count)
	}
	out.Std = math.Sqrt(out.Std)
	slices.Sort(values)
	const tenths = 10
	for k := 1; k < tenths; k++ {
		out.Deciles = append(out.Deciles, values[k*(len(values)-1)/tenths])
	}
	return out
}
