package evaluate

import (
	"fmt"
	"math"

	"lacuna/pipeline/skill"
)

// Results are the content of one table, ready to be written as JSON. They hold no
// time of day and no duration: the same data and settings give the same bytes.
type Results struct {
	Table     string    `json:"table"`
	Dataset   string    `json:"dataset"`
	Mode      string    `json:"mode"`
	Side      int       `json:"side"` // cells
	Cases     int       `json:"cases"`
	Reference string    `json:"reference"`  // the method that others are compared with
	BlockDays int       `json:"block_days"` // block length of the bootstrap
	Rows      []Row     `json:"rows"`
	Verdicts  []Verdict `json:"verdicts"`
	Notes     []string  `json:"notes,omitempty"` // remarks for the reader, a sentence each
}

// A Row is one method over its seeds.
type Row struct {
	Method string  `json:"method"`
	Seeds  int     `json:"seeds"`
	MSE    Spread  `json:"mse"`
	Scores Columns `json:"scores"`
	// Difference is the MSE less the reference's, both as means over their
	// seeds, paired by case; nil for the reference itself.
	Difference     *skill.Difference `json:"difference,omitempty"`
	CRPSDifference *skill.Difference `json:"crps_difference,omitempty"`
	// CoverageIn is where the coverage lies by bootstrap over days; nil: there is
	// no uncertainty, or there are too few days.
	CoverageIn *skill.Interval `json:"coverage_90_in,omitempty"`

	SelfCalibrated bool        `json:"self_calibrated,omitempty"` // see Verdict
	Calls          int         `json:"calls,omitempty"`           // network calls for each member; 0: not counted
	Truth          *TruthScore `json:"truth,omitempty"`           // absent if the truth under the clouds is unknown
	Masks          *MaskScore  `json:"masks,omitempty"`           // scores of guided strategies only
}

// A TruthScore is the error against a truth without noise, under overlays and
// under the real clouds. If values were missing at random, both would be the
// same.
type TruthScore struct {
	Overlay   float64         `json:"overlay_mse"`
	OverlayIn *skill.Interval `json:"overlay_mse_in,omitempty"` // bootstrap interval over days
	Gaps      float64         `json:"gaps_mse"`
	GapsIn    *skill.Interval `json:"gaps_mse_in,omitempty"`
}

// A MaskScore measures the effect of guidance on the masks of a strategy.
type MaskScore struct {
	ContextShare float64 `json:"context_share"` // share of context in the observed cells
	SD           float64 `json:"sd"`            // standard deviation of a mask cell over draws, mean over the sea
	Draws        int     `json:"draws"`         // draws for each patch
}

// Columns are means over seeds; absent where a method has no such score.
type Columns struct {
	MSEOfSamples *float64 `json:"mse_of_samples,omitempty"`
	GapMSE       *float64 `json:"gap_mse,omitempty"` // weighted to the age and distance of true gaps
	PSNR         *float64 `json:"psnr,omitempty"`
	RMSEPhysical *float64 `json:"rmse_physical,omitempty"`
	BiasPhysical *float64 `json:"bias_physical,omitempty"`
	CBGD         *float64 `json:"cbgd,omitempty"`
	CBGDError    *float64 `json:"cbgd_error,omitempty"` // |CBGD - 1|
	CRPS         *float64 `json:"crps,omitempty"`
	SpreadSkill  *float64 `json:"spread_skill,omitempty"`
	Coverage90   *float64 `json:"coverage_90,omitempty"`
	Resolved     *float64 `json:"resolved_scale_cells,omitempty"`
}

// A Spread is the mean over seeds and half the range between them.
type Spread struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_range"`
}

// NewResults returns the results of verdicts on an exam.
func NewResults(table string, e *Exam, reference string, verdicts []Verdict) (Results, error) {
	return Results{
		Table: table, Mode: string(e.mode), Cases: e.Cases(), Side: e.overlays[0].Window.Height,
		Reference: reference, BlockDays: e.options.Bootstrap.BlockDays,
	}.Of(verdicts)
}

// Of returns r with verdicts grouped by method, in the order in which they
// first appear, and each compared with the reference, seeds pooled.
func (r Results) Of(verdicts []Verdict) (Results, error) {
	boot := skill.DefaultBootstrap()
	boot.BlockDays = r.BlockDays
	var names []string
	byName := map[string][]Verdict{}
	for _, v := range verdicts {
		if byName[v.Method] == nil {
			names = append(names, v.Method)
		}
		byName[v.Method] = append(byName[v.Method], v)
		v.Seconds = 0
		r.Verdicts = append(r.Verdicts, v)
	}
	for _, name := range names {
		row := newRow(byName[name])
		if in, known := boot.Share(pooled(byName[name]).Covered); known {
			row.CoverageIn = &in
		}
		if ref := byName[r.Reference]; len(ref) > 0 && name != r.Reference {
			mse, crps, err := pooled(byName[name]).against(pooled(ref), boot)
			if err != nil {
				return r, fmt.Errorf("compare %s with %s: %w", name, r.Reference, err)
			}
			row.Difference, row.CRPSDifference = &mse, crps
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// pooled returns the losses of each case as means over seeds.
func pooled(of []Verdict) Losses {
	mean := func(get func(Losses) []skill.Loss) []skill.Loss {
		out := append([]skill.Loss(nil), get(of[0].Losses)...)
		for _, v := range of[1:] {
			if len(get(v.Losses)) != len(out) {
				return nil // a result of before these were kept
			}
			for i, l := range get(v.Losses) {
				out[i].Sum += l.Sum
			}
		}
		for i := range out {
			out[i].Sum /= float64(len(of))
		}
		return out
	}
	return Losses{
		Squared: mean(func(l Losses) []skill.Loss { return l.Squared }),
		CRPS:    mean(func(l Losses) []skill.Loss { return l.CRPS }),
		Covered: mean(func(l Losses) []skill.Loss { return l.Covered }),
	}
}

func newRow(of []Verdict) Row {
	row := Row{Method: of[0].Method, Seeds: len(of)}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range of {
		row.SelfCalibrated = row.SelfCalibrated || v.SelfCalibrated
		if v.Summary.MSE != nil {
			row.MSE.Mean += *v.Summary.MSE / float64(len(of))
			low, high = min(low, *v.Summary.MSE), max(high, *v.Summary.MSE)
		}
	}
	if high > low {
		row.MSE.Half = (high - low) / 2
	}
	column := func(of []Verdict, get func(skill.Summary) *float64) *float64 {
		sum := 0.0
		for _, v := range of {
			p := get(v.Summary)
			if p == nil {
				return nil
			}
			sum += *p / float64(len(of))
		}
		return &sum
	}
	row.Scores = Columns{
		MSEOfSamples: column(of, func(s skill.Summary) *float64 { return s.MSEOfSamples }),
		GapMSE:       column(of, func(s skill.Summary) *float64 { return s.WeightedMSE }),
		PSNR:         column(of, func(s skill.Summary) *float64 { return s.PSNR }),
		RMSEPhysical: column(of, func(s skill.Summary) *float64 { return s.RMSEPhysical }),
		BiasPhysical: column(of, func(s skill.Summary) *float64 { return s.BiasPhysical }),
		CBGD:         column(of, cbgd),
		Resolved:     column(of, func(s skill.Summary) *float64 { return s.ResolvedScaleCells }),
		CRPS: column(of, func(s skill.Summary) *float64 {
			return calibrated(s, func(c *skill.Calibration) *float64 { return &c.CRPS })
		}),
		SpreadSkill: column(of, func(s skill.Summary) *float64 {
			return calibrated(s, func(c *skill.Calibration) *float64 { return c.SpreadSkill })
		}),
		Coverage90: column(of, func(s skill.Summary) *float64 {
			return calibrated(s, func(c *skill.Calibration) *float64 {
				if share, ok := c.Covers(0.9); ok {
					return &share
				}
				return nil
			})
		}),
	}
	if c := row.Scores.CBGD; c != nil {
		off := math.Abs(*c - 1)
		row.Scores.CBGDError = &off
	}
	return row
}

// cbgd returns the CBGD of single members if there are some: they have the
// texture of a map, while a mean is smooth by nature.
func cbgd(s skill.Summary) *float64 {
	if s.Ensemble != nil && s.Ensemble.CBGD != nil {
		return s.Ensemble.CBGD
	}
	return s.CBGD
}

// calibrated returns a calibration score of the ensemble if there is one, else
// that of mean and sigma.
func calibrated(s skill.Summary, get func(*skill.Calibration) *float64) *float64 {
	switch {
	case s.Ensemble != nil:
		return get(s.Ensemble)
	case s.Gaussian != nil:
		return get(s.Gaussian)
	}
	return nil
}
