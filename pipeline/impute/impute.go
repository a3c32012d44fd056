package impute

import (
	"errors"
	"fmt"

	"lacuna/pipeline/samples"
)

// Inputs are the data of a target day that a network may use. Values of cells
// that are not visible are never read.
type Inputs struct {
	Height, Width int
	Values        []float32 // normalised anomalies where Visible; anything elsewhere
	Visible, Sea  []bool
	Last, Next    samples.Composite // the zero value: absent
	// Background is an analysis of the neighbouring days, and BackgroundSigma
	// its standard deviation. Nil: absent.
	Background, BackgroundSigma []float32
	// Analysis is one of the visible cells and the neighbouring days together,
	// and AnalysisSigma its standard deviation. Nil: absent.
	Analysis, AnalysisSigma []float32
	DayOfYear               int // 1 for the first of January; 0: unknown
	// Covariates are other variables in the order of the network's channels, each in units
	// of its spread and NaN where it is missing; nil: one, or all of them, is absent.
	Covariates [][]float32
}

// Prediction is a network's estimate of a target, in normalised anomalies.
// Visible cells keep their value, with a sigma of zero. Values on land are
// undefined.
type Prediction struct {
	Mean, Sigma []float32
}

// Extras are the inputs of a network besides the visible cells and the sea.
// It is recorded in the model file. An input that a network has may still be
// absent on a day; one that it does not have is ignored.
type Extras struct {
	Last       bool `json:"last" yaml:"last"`             // the last observation of each cell and its freshness
	Next       bool `json:"next" yaml:"next"`             // the next one, for delayed mode
	Background bool `json:"background" yaml:"background"` // optimal interpolation of the neighbouring days
	Analysis   bool `json:"analysis" yaml:"analysis"`     // optimal interpolation of the context and the neighbouring days
	Season     bool `json:"season" yaml:"season"`         // day of the year as sine and cosine
}

// Cells returns the size of the window in cells.
func (in Inputs) Cells() int { return in.Height * in.Width }

// Validate reports everything wrong with in.
func (in Inputs) Validate() error {
	n := in.Cells()
	if in.Height < 1 || in.Width < 1 {
		return fmt.Errorf("window of %d x %d cells, must be positive", in.Height, in.Width)
	}
	var errs []error
	check := func(name string, got int, optional bool) {
		if got != n && (!optional || got != 0) {
			errs = append(errs, fmt.Errorf("%s has %d cells, the window %d", name, got, n))
		}
	}
	check("values", len(in.Values), false)
	check("visible", len(in.Visible), false)
	check("sea", len(in.Sea), false)
	for _, c := range []struct {
		name string
		samples.Composite
	}{{"last", in.Last}, {"next", in.Next}} {
		check(c.name, len(c.Value), true)
		check(c.name+" freshness", len(c.Freshness), true)
		if len(c.Value) != len(c.Freshness) {
			errs = append(errs, fmt.Errorf("%s has %d values and %d freshnesses", c.name, len(c.Value), len(c.Freshness)))
		}
	}
	check("background", len(in.Background), true)
	check("background sigma", len(in.BackgroundSigma), true)
	if len(in.Background) != len(in.BackgroundSigma) {
		errs = append(errs, errors.New("background and its sigma must be given together"))
	}
	check("analysis", len(in.Analysis), true)
	check("analysis sigma", len(in.AnalysisSigma), true)
	if len(in.Analysis) != len(in.AnalysisSigma) {
		errs = append(errs, errors.New("analysis and its sigma must be given together"))
	}
	for k, m := range in.Covariates {
		check(fmt.Sprintf("covariate %d", k+1), len(m), true)
	}
	for i, visible := range in.Visible[:min(n, len(in.Visible))] {
		if visible && i < len(in.Values) && !finite(in.Values[i]) {
			errs = append(errs, fmt.Errorf("visible cell %d is %v", i, in.Values[i]))
			break
		}
	}
	return errors.Join(errs...)
}

func finite(v float32) bool { return v-v == 0 }

// compose puts the visible values over a prediction, so that they come out as
// they went in.
func compose(p Prediction, in Inputs) {
	for i, visible := range in.Visible {
		if visible {
			p.Mean[i], p.Sigma[i] = in.Values[i], 0
		}
	}
}
