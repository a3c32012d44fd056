package scenes

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/samples"
)

// A Class holds the scores of the cells in one range of distances to the nearest observation.
type Class struct {
	AboveKM float64 `json:"above_km"`
	UpToKM  float64 `json:"up_to_km"` // 0: any distance
	Cells   int     `json:"cells"`
	Scenes  int     `json:"scenes"` // scenes with such cells
	// In units of the variance of the variable: 1 is no better than a constant.
	MSE   float64 `json:"mse"`
	MSEOI float64 `json:"mse_oi"` // MSE of optimal interpolation
	Bias  float64 `json:"bias"`   // in units of the standard deviation
	// Shares of the truths inside the 90 % intervals: as they would be
	// published, of optimal interpolation, and after a calibration by distance
	// on the other half of the scenes.
	Coverage           float64 `json:"coverage_90"`
	CoverageOI         float64 `json:"coverage_90_oi"`
	CoverageCalibrated float64 `json:"coverage_90_calibrated"`
	SpreadSkill        float64 `json:"spread_skill"` // sigma over real error
	Factor             float64 `json:"factor"`       // calibration factor on sigma from all scenes
}

// Report holds the scores of filled scenes.
type Report struct {
	Grid    string  `json:"grid"`
	Days    int     `json:"days"` // days of the series
	Scenes  int     `json:"scenes"`
	Tier    string  `json:"tier"`
	Windows int     `json:"windows"` // number of windows of the last scene
	Overall Class   `json:"overall"`
	Classes []Class `json:"classes"`
	// Calibration is by distance and of all scenes. Its factors come on top of
	// those of the model.
	Calibration impute.Calibration `json:"calibration"`

	unit, stepKM float64
	edges        []float64
	cells        []cell
}

type cell struct {
	scene                   int
	km                      float64
	miss, sigma             float32
	missOI, sigmaOI, factor float32
}

func newReport(c Config, s samples.Series, unit float64) Report {
	return Report{Grid: s.Grid.String(), Days: len(s.Days), unit: unit, stepKM: s.Grid.StepKM(), edges: c.EdgesKM}
}

// add fills a scene by both methods and keeps the errors on the hidden cells.
func (r *Report) add(ctx context.Context, sc scene, by, interpolation *infer.Filler) error {
	said, err := by.Fill(ctx, sc.Scene, nil)
	if err != nil {
		return err
	}
	plain, err := interpolation.Fill(ctx, sc.Scene, nil)
	if err != nil {
		return err
	}
	value, valueOI := transformed(sc, said[0].Value), transformed(sc, plain[0].Value)
	for i, scored := range sc.scored {
		if !scored || said[0].Flags[i]&infer.Interpolated == 0 || plain[0].Flags[i]&infer.Interpolated == 0 {
			continue
		}
		r.cells = append(r.cells, cell{
			scene: sc.number, km: float64(said[0].Details.DistanceKM[i]),
			miss: value[i] - sc.truth[i], sigma: said[0].Sigma[i],
			missOI: valueOI[i] - sc.truth[i], sigmaOI: plain[0].Sigma[i],
		})
	}
	r.Scenes++
	r.Tier, r.Windows = string(said[0].Sampling.Tier), said[0].Took.Windows
	return nil
}

func transformed(sc scene, physical []float32) []float32 {
	out := make([]float32, len(physical))
	sc.Transform.Forward(out, physical)
	return out
}

// finish calibrates and scores.
func (r *Report) finish() (Report, error) {
	if len(r.cells) == 0 {
		return *r, ErrNoScenes
	}
	var halves [2]impute.Calibration
	var all []impute.Case
	var half [2][]impute.Case
	for _, c := range r.cells {
		k := caseOf(c.miss, c.sigma, c.km, r.stepKM)
		all, half[c.scene%2] = append(all, k), append(half[c.scene%2], k)
	}
	cfg := impute.CalibrationConfig{MinCases: 2000}
	for _, km := range r.edges {
		cfg.EdgesCells = append(cfg.EdgesCells, float32(km/r.stepKM))
	}
	var err error
	if r.Calibration, err = impute.Calibrate(all, cfg); err != nil {
		return *r, err
	}
	for h := range halves {
		if halves[h], err = impute.Calibrate(half[h], cfg); err != nil { // with a single scene one half is empty
			halves[h] = r.Calibration
		}
	}
	for i := range r.cells {
		c := &r.cells[i]
		c.factor = halves[1-c.scene%2].Apply(1, float32(c.km/r.stepKM), 0)
	}
	r.Overall = r.score(0, math.Inf(1))
	above := 0.0
	for _, edge := range append(r.edges, math.Inf(1)) {
		if c := r.score(above, edge); c.Cells > 0 {
			r.Classes = append(r.Classes, c)
		}
		above = edge
	}
	return *r, nil
}

// score scores the cells of a class.
func (r *Report) score(above, upTo float64) Class {
	out := Class{AboveKM: above, UpToKM: upTo}
	if math.IsInf(upTo, 1) {
		out.UpToKM = 0
	}
	seen := map[int]bool{}
	var squares, squaresOI, bias, claimed, inside, insideOI, calibrated, factor float64
	count := func(sum *float64, miss, sigma float32) {
		if math.Abs(float64(miss)) <= quantile90*float64(sigma) {
			*sum++
		}
	}
	for _, c := range r.cells {
		if !(c.km > above && c.km <= upTo) {
			continue
		}
		out.Cells++
		seen[c.scene] = true
		squares += float64(c.miss) * float64(c.miss)
		squaresOI += float64(c.missOI) * float64(c.missOI)
		bias += float64(c.miss)
		claimed += float64(c.sigma) * float64(c.sigma)
		factor += float64(r.Calibration.Apply(1, float32(c.km/r.stepKM), 0))
		count(&inside, c.miss, c.sigma)
		count(&insideOI, c.missOI, c.sigmaOI)
		count(&calibrated, c.miss, c.factor*c.sigma)
	}
	n := float64(max(out.Cells, 1))
	out.Scenes = len(seen)
	out.MSE, out.MSEOI, out.Bias = squares/n/(r.unit*r.unit), squaresOI/n/(r.unit*r.unit), bias/n/r.unit
	out.Coverage, out.CoverageOI, out.CoverageCalibrated = inside/n, insideOI/n, calibrated/n
	out.SpreadSkill, out.Factor = math.Sqrt(claimed/max(squares, 1e-30)), factor/n
	return out
}

// quantile90 is the half width of the 90 % interval of a normal distribution
// in standard deviations.
const quantile90 = 1.6448536

// Print writes the report as a table.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d days; %d scenes, tier %s, %d windows\n\n", r.Grid, r.Days, r.Scenes, r.Tier, r.Windows)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "nearest seen\tcells\tscenes\tMSE\tof OI\tbias\t90 % covers\tcalibrated\tof OI\tspread/skill\tfactor\t")
	for _, c := range append(r.Classes, r.Overall) {
		name := fmt.Sprintf("%g..%g km", c.AboveKM, c.UpToKM)
		switch {
		case c.UpToKM == 0 && c.AboveKM == 0:
			name = "all"
		case c.UpToKM == 0:
			name = fmt.Sprintf("> %g km", c.AboveKM)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.4f\t%.4f\t%+.3f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t\n", name, c.Cells, c.Scenes,
			c.MSE, c.MSEOI, c.Bias, c.Coverage, c.CoverageCalibrated, c.CoverageOI, c.SpreadSkill, c.Factor)
	}
	return table.Flush()
}
