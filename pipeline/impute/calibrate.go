package impute

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Case is one held-out cell: the error of the prediction, its sigma, and the
// distance to the nearest visible cell.
type Case struct {
	Error, Sigma  float32
	Spread        float32 // spread of members by Departure; for CalibrateMembers only
	DistanceCells float32
	DayOfYear     int // 0: unknown
}

// Calibration holds factors on sigma by distance from the nearest visible cell
// and by season, so that 90 % intervals cover 90 %. The zero value changes
// nothing.
type Calibration struct {
	// EdgesCells are the upper ends of the classes of distance; the last class
	// has none.
	EdgesCells []float32 `json:"edges_cells"`
	// Factors by season and class: one row for all seasons, or four of
	// ninety-odd days from the first of January on.
	Factors [][]float32 `json:"factors"`
	Cases   int         `json:"cases"` // number of held-out cells behind it
}

// CalibrationConfig says how fine a calibration is.
type CalibrationConfig struct {
	EdgesCells []float32 `json:"edges_cells" yaml:"edges_cells"`
	Seasons    bool      `json:"seasons" yaml:"seasons"`
	// MinCases is how many cells a class needs for a factor of its own; with
	// fewer the factor is drawn towards that of all cells.
	MinCases int `json:"min_cases" yaml:"min_cases"`
}

// DefaultCalibration returns classes that hold about equal numbers of cells
// under real clouds.
func DefaultCalibration() CalibrationConfig {
	return CalibrationConfig{EdgesCells: []float32{1.5, 3, 6, 12}, MinCases: 2000}
}

// The 90 % interval of a normal distribution.
const (
	coverage       = 0.90
	coverageSigmas = 1.6448536
)

// seasons is how many rows of factors a calibration by season has.
const seasons = 4

// Calibrate returns the calibration under which the intervals of the cases
// cover 90 % of their errors, in every class that has enough of them.
func Calibrate(cases []Case, cfg CalibrationConfig) (Calibration, error) {
	return calibrate(cases, cfg, coverFactor)
}

// calibrate returns a calibration whose factors come from the cases of each
// class.
func calibrate(cases []Case, cfg CalibrationConfig, factor func([]Case) float64) (Calibration, error) {
	if !slices.IsSorted(cfg.EdgesCells) {
		return Calibration{}, fmt.Errorf("calibrate: edges %v do not ascend", cfg.EdgesCells)
	}
	rows := 1
	if cfg.Seasons {
		rows = seasons
	}
	c := Calibration{EdgesCells: cfg.EdgesCells, Factors: make([][]float32, rows)}
	var all []Case
	byClass := make([][][]Case, rows)
	for r := range rows {
		c.Factors[r], byClass[r] = make([]float32, len(cfg.EdgesCells)+1), make([][]Case, len(cfg.EdgesCells)+1)
	}
	for _, k := range cases {
		if !(k.Sigma > 0) || !finite(k.Error) {
			continue
		}
		r, class := c.row(k.DayOfYear), c.class(k.DistanceCells)
		all, byClass[r][class] = append(all, k), append(byClass[r][class], k)
	}
	if len(all) == 0 {
		return Calibration{}, errors.New("calibrate: no held-out cell has a sigma: hold out more days")
	}
	c.Cases = len(all)
	common := factor(all)
	for r := range rows {
		for class, own := range byClass[r] {
			c.Factors[r][class] = float32(common)
			if n := float64(len(own)); n > 0 {
				trust := min(n/float64(max(cfg.MinCases, 1)), 1)
				c.Factors[r][class] = float32(trust*factor(own) + (1-trust)*common)
			}
		}
	}
	return c, nil
}

// coverFactor returns the factor on sigma with which 90 % of the errors are
// inside.
func coverFactor(cases []Case) float64 {
	ratios := make([]float64, len(cases))
	for i, k := range cases {
		ratios[i] = math.Abs(float64(k.Error) / float64(k.Sigma))
	}
	slices.Sort(ratios)
	i := min(int(math.Ceil(coverage*float64(len(ratios))))-1, len(ratios)-1)
	return ratios[max(i, 0)] / coverageSigmas
}

// row returns the row of factors of a day.
func (c Calibration) row(dayOfYear int) int {
	if len(c.Factors) == seasons && dayOfYear > 0 {
		return min((dayOfYear-1)*seasons/366, seasons-1)
	}
	return 0
}

// class returns the class of a distance.
func (c Calibration) class(distanceCells float32) int {
	class := 0
	for class < len(c.EdgesCells) && distanceCells > c.EdgesCells[class] {
		class++
	}
	return class
}

// Apply returns the sigma to publish for a cell. Between the middles of two
// classes of distance the factor goes from one to the other: it would show as a
// rim around every observation, if it jumped where one class ends.
func (c Calibration) Apply(sigma, distanceCells float32, dayOfYear int) float32 {
	if len(c.Factors) == 0 {
		return sigma
	}
	factors := c.Factors[c.row(dayOfYear)]
	class := c.class(distanceCells)
	if distanceCells < c.middle(class) {
		class--
	}
	if class < 0 || class == len(c.EdgesCells) {
		return sigma * factors[max(class, 0)]
	}
	from, to := c.middle(class), c.middle(class+1)
	share := (distanceCells - from) / (to - from)
	return sigma * (factors[class] + share*(factors[class+1]-factors[class]))
}

// middle returns the distance at which a class has its own factor. The first
// begins at the nearest gap, one cell away, and the last is as wide as the one
// before it.
func (c Calibration) middle(class int) float32 {
	low, high := float32(1), float32(math.Inf(1))
	if class > 0 {
		low = c.EdgesCells[class-1]
	}
	if class < len(c.EdgesCells) {
		high = max(c.EdgesCells[class], low)
	} else if class > 0 {
		before := float32(1)
		if class > 1 {
			before = c.EdgesCells[class-2]
		}
		high = low + max(low-before, 1)
	}
	return (low + high) / 2
}

// Validate reports the first fault of a calibration that was read from a file.
func (c Calibration) Validate() error {
	if len(c.Factors) != 0 && len(c.Factors) != 1 && len(c.Factors) != seasons {
		return fmt.Errorf("calibration has %d rows of factors, must have 1 or %d", len(c.Factors), seasons)
	}
	for _, row := range c.Factors {
		if len(row) != len(c.EdgesCells)+1 {
			return fmt.Errorf("calibration has %d factors for %d edges", len(row), len(c.EdgesCells))
		}
		for _, f := range row {
			if !(f > 0) || !finite(f) {
				return fmt.Errorf("calibration has a factor of %v, must be positive and finite", f)
			}
		}
	}
	if !slices.IsSorted(c.EdgesCells) {
		return fmt.Errorf("calibration has edges %v that do not ascend", c.EdgesCells)
	}
	return nil
}
