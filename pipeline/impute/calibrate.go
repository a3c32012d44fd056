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
	DistanceCells float32
}

// Calibration holds factors on sigma by distance from the nearest visible cell, so
// that 90 % intervals cover 90 %. A factor holds in the middle of its class, and
// between the middles they are interpolated: a map of sigma has no steps. The zero
// value changes nothing.
type Calibration struct {
	// EdgesCells are the upper ends of the classes of distance; the last class
	// has none.
	EdgesCells []float32 `json:"edges_cells"`
	// Factors by class: one row, or in versions of before four for the seasons of
	// ninety-odd days from the first of January on. The cells of a season are of few
	// days, and factors of its own made intervals worse on other days of it.
	Factors [][]float32 `json:"factors"`
	Cases   int         `json:"cases"` // number of held-out cells behind it
}

// CalibrationConfig says how fine a calibration is.
type CalibrationConfig struct {
	EdgesCells []float32 `json:"edges_cells" yaml:"edges_cells"`
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

// seasons is how many rows of factors a calibration by season had.
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
	factors := make([]float32, len(cfg.EdgesCells)+1)
	c := Calibration{EdgesCells: cfg.EdgesCells, Factors: [][]float32{factors}}
	var all []Case
	byClass := make([][]Case, len(factors))
	for _, k := range cases {
		if !(k.Sigma > 0) || !finite(k.Error) {
			continue
		}
		_, class := c.place(k.DistanceCells, 0)
		all, byClass[class] = append(all, k), append(byClass[class], k)
	}
	if len(all) == 0 {
		return Calibration{}, errors.New("calibrate: no held-out cell has a sigma: hold out more days")
	}
	c.Cases = len(all)
	common := factor(all)
	for class := range factors {
		factors[class] = float32(common)
	}
	// Interpolation carries a part of a factor into the classes beside its own, so
	// that each is corrected for what the others do.
	for range calibrationRounds {
		next := slices.Clone(factors)
		for class, own := range byClass {
			if len(own) == 0 {
				continue
			}
			trust := min(float64(len(own))/float64(max(cfg.MinCases, 1)), 1)
			full := float64(factors[class]) * factor(c.applied(own))
			next[class] = float32(math.Pow(full, trust) * math.Pow(common, 1-trust))
		}
		copy(factors, next)
	}
	return c, nil
}

// calibrationRounds is how often factors are corrected: the third changes them by
// less than held-out days can tell.
const calibrationRounds = 3

// applied returns cases with their sigma calibrated.
func (c Calibration) applied(cases []Case) []Case {
	out := slices.Clone(cases)
	for i, k := range cases {
		out[i].Sigma = c.Apply(k.Sigma, k.DistanceCells, 0)
	}
	return out
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

// place returns the row and the class of a cell.
func (c Calibration) place(distanceCells float32, dayOfYear int) (row, class int) {
	for class < len(c.EdgesCells) && distanceCells > c.EdgesCells[class] {
		class++
	}
	if len(c.Factors) == seasons && dayOfYear > 0 {
		row = min((dayOfYear-1)*seasons/366, seasons-1)
	}
	return row, class
}

// Apply returns the sigma to publish for a cell.
func (c Calibration) Apply(sigma, distanceCells float32, dayOfYear int) float32 {
	if len(c.Factors) == 0 {
		return sigma
	}
	row, class := c.place(distanceCells, dayOfYear)
	factors := c.Factors[row]
	middle := c.middle(class)
	beside := class + 1
	if distanceCells < middle {
		beside = class - 1
	}
	if beside < 0 || beside >= len(factors) || c.middle(beside) == middle {
		return sigma * factors[class]
	}
	away := float64(distanceCells-middle) / float64(c.middle(beside)-middle)
	return sigma * float32(math.Pow(float64(factors[class]), 1-away)*math.Pow(float64(factors[beside]), away))
}

// middle returns the distance at which the factor of a class holds.
func (c Calibration) middle(class int) float32 {
	last := len(c.EdgesCells)
	switch {
	case last == 0:
		return 0
	case class == last: // it has no end: as far beyond its beginning as the class before is wide
		return c.EdgesCells[last-1] + (c.EdgesCells[last-1]-c.lower(last-1))/2
	}
	return (c.lower(class) + c.EdgesCells[class]) / 2
}

// lower returns the lower end of a class.
func (c Calibration) lower(class int) float32 {
	if class == 0 {
		return min(1, c.EdgesCells[0]) // no hidden cell is nearer
	}
	return c.EdgesCells[class-1]
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
