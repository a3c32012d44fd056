package impute

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Case is one held-out cell: how far the prediction was off, what it said of
// itself, and how far the nearest visible cell was.
type Case struct {
	Error, Sigma  float32
	DistanceCells float32
	DayOfYear     int // 0: not known
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
	Cases   int         `json:"cases"` // that it was made from
}

// CalibrationConfig says how fine a calibration is.
type CalibrationConfig struct {
	EdgesCells []float32 `json:"edges_cells" yaml:"edges_cells"`
	Seasons    bool      `json:"seasons" yaml:"seasons"`
	// MinCases is how many cells a factor of its own needs; with fewer it is
	// drawn towards that of all cells.
	MinCases int `json:"min_cases" yaml:"min_cases"`
}

// DefaultCalibration returns classes that hold about equal numbers of cells
// under real clouds.
func DefaultCalibration() CalibrationConfig {
	return CalibrationConfig{EdgesCells: []float32{1.5, 3, 6, 12}, MinCases: 2000}
}

// How much of a normal distribution lies within how many standard deviations.
const (
	coverage       = 0.90
	coverageSigmas = 1.6448536
)

// seasons is how many rows of factors a calibration by season has.
const seasons = 4

// Calibrate returns the calibration under which the intervals of the cases
// cover 90 % of their errors, in every class that has enough of them.
func Calibrate(cases []Case, cfg CalibrationConfig) (Calibration, error) {
	if !slices.IsSorted(cfg.EdgesCells) {
		return Calibration{}, fmt.Errorf("calibrate: edges %v do not ascend", cfg.EdgesCells)
	}
	rows := 1
	if cfg.Seasons {
		rows = seasons
	}
	c := Calibration{EdgesCells: cfg.EdgesCells, Factors: make([][]float32, rows)}
	var all []float64
	byClass := make([][][]float64, rows)
	for r := range rows {
		c.Factors[r], byClass[r] = make([]float32, len(cfg.EdgesCells)+1), make([][]float64, len(cfg.EdgesCells)+1)
	}
	for _, k := range cases {
		if !(k.Sigma > 0) || !finite(k.Error) {
			continue
		}
		ratio := math.Abs(float64(k.Error) / float64(k.Sigma))
		r, class := c.place(k.DistanceCells, k.DayOfYear)
		all, byClass[r][class] = append(all, ratio), append(byClass[r][class], ratio)
	}
	if len(all) == 0 {
		return Calibration{}, errors.New("calibrate: no held-out cell with a sigma")
	}
	c.Cases = len(all)
	common := factorOf(all)
	for r := range rows {
		for class, ratios := range byClass[r] {
			c.Factors[r][class] = float32(common)
			if n := float64(len(ratios)); n > 0 {
				trust := min(n/float64(max(cfg.MinCases, 1)), 1)
				c.Factors[r][class] = float32(trust*factorOf(ratios) + (1-trust)*common)
			}
		}
	}
	return c, nil
}

// factorOf returns the factor on sigma with which 90 % of the ratios of error
// to sigma are inside.
func factorOf(ratios []float64) float64 {
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
	return sigma * c.Factors[row][class]
}

// Validate reports what is wrong with a calibration that was read from a file.
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
				return fmt.Errorf("calibration has a factor of %v", f)
			}
		}
	}
	if !slices.IsSorted(c.EdgesCells) {
		return fmt.Errorf("calibration has edges %v that do not ascend", c.EdgesCells)
	}
	return nil
}

// Recentre returns members moved so that their mean is the given one, with
// their departures from their own mean multiplied by factor. The one-step mean
// errs less than the mean of members, and members of a network spread a little
// too little: both are mended here. Cells of visible keep their value.
func Recentre(members [][]float32, mean []float32, visible []bool, factor func(cell int) float32) [][]float32 {
	out := make([][]float32, len(members))
	for m := range out {
		out[m] = make([]float32, len(mean))
	}
	for i := range mean {
		own, _ := Spread(members, i)
		f := factor(i)
		for m := range out {
			out[m][i] = mean[i]
			if !visible[i] {
				out[m][i] += f * (members[m][i] - own)
			}
		}
	}
	return out
}

// Spread returns mean and standard deviation of members at a cell. The
// variance divides by one less than their number.
func Spread(members [][]float32, cell int) (mean, sigma float32) {
	sum := 0.0
	for _, m := range members {
		sum += float64(m[cell])
	}
	center := sum / float64(len(members))
	if len(members) < 2 {
		return float32(center), 0
	}
	square := 0.0
	for _, m := range members {
		d := float64(m[cell]) - center
		square += d * d
	}
	return float32(center), float32(math.Sqrt(square / float64(len(members)-1)))
}
