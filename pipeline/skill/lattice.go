package skill

import "math"

// Steps sums the steps between neighbouring cells of maps of one size, line by
// line of the grid. A method that works in blocks, windows or strides leaves a
// lattice: at every so many lines its steps are larger, or smaller, than between.
type Steps struct {
	height, width int
	sum, count    [2][]float64 // by axis and line
}

// Axes of a lattice.
const (
	AlongRows    = iota // steps from one column to the next
	AlongColumns        // steps from one row to the next
)

// NewSteps returns the empty sums of maps of a size.
func NewSteps(height, width int) *Steps {
	s := &Steps{height: height, width: width}
	for axis, lines := range [2]int{AlongRows: width - 1, AlongColumns: height - 1} {
		s.sum[axis], s.count[axis] = make([]float64, max(lines, 0)), make([]float64, max(lines, 0))
	}
	return s
}

// Add adds a map. A step counts between two cells that were both filled.
func (s *Steps) Add(values []float32, filled []bool) {
	if len(values) != s.height*s.width || len(filled) != len(values) {
		panic("skill: slice length differs from the grid")
	}
	for i := range s.height {
		for j := range s.width {
			c := i*s.width + j
			if !filled[c] {
				continue
			}
			if j+1 < s.width && filled[c+1] {
				s.add(AlongRows, j, values[c], values[c+1])
			}
			if i+1 < s.height && filled[c+s.width] {
				s.add(AlongColumns, i, values[c], values[c+s.width])
			}
		}
	}
}

func (s *Steps) add(axis, line int, a, b float32) {
	s.sum[axis][line] += math.Abs(float64(b) - float64(a))
	s.count[axis][line]++
}

// A Lattice is every so many lines of a grid along an axis.
type Lattice struct {
	Axis, Period, Phase int
	// Ratio is the mean step at its lines over that of the lines around them, 1
	// for maps without a lattice.
	Ratio float64
	// Error is the standard error of the logarithm of Ratio. Seas have structure
	// of their own, and few lines make a lattice of a long period.
	Error float64
}

// Sure returns how far the ratio is from one at the least, four standard errors
// allowed for chance: there are a thousand lattices of up to 32 lines.
func (l Lattice) Sure() float64 {
	return math.Exp(max(math.Abs(math.Log(l.Ratio))-4*l.Error, 0)) - 1
}

// WorstLattice returns the lattice of a period of 2 to most that is surely the
// farthest from none. A control holds maps of the same cells by a method that has
// no lattice, or the truth: what shows in both is the sea's. It may be nil.
func WorstLattice(s, control *Steps, most int) Lattice {
	worst := Lattice{Ratio: 1}
	for axis := range s.sum {
		lines := s.logs(axis)
		if control != nil {
			for line, v := range control.logs(axis) {
				lines[line] -= v
			}
		}
		for period := 2; period <= min(most, len(lines)/4); period++ {
			for phase, l := range lattices(lines, period) {
				l.Axis, l.Period, l.Phase = axis, period, phase
				if l.Sure() > worst.Sure() || worst.Sure() == 0 && math.Abs(math.Log(l.Ratio)) > math.Abs(math.Log(worst.Ratio)) {
					worst = l
				}
			}
		}
	}
	return worst
}

// logs returns the logarithm of the mean step of each line, NaN where too few
// were counted.
func (s *Steps) logs(axis int) []float64 {
	out := make([]float64, len(s.sum[axis]))
	for line, sum := range s.sum[axis] {
		if out[line] = math.Log(sum / s.count[axis][line]); s.count[axis][line] < leastSteps || math.IsInf(out[line], 0) {
			out[line] = math.NaN()
		}
	}
	return out
}

// leastSteps is the number of steps that a line must have.
const leastSteps = 50

// lattices returns the lattice of each phase of a period. A line is compared with
// the mean of the period around it, which takes out what changes slowly.
func lattices(lines []float64, period int) []Lattice {
	out := make([]Lattice, period)
	sum, squares, n := make([]float64, period), make([]float64, period), make([]float64, period)
	for line := period / 2; line+(period-1)/2 < len(lines); line++ {
		around := 0.0
		for _, v := range lines[line-period/2 : line+(period+1)/2] {
			around += v
		}
		d := lines[line] - around/float64(period)
		if phase := line % period; d == d {
			sum[phase], squares[phase], n[phase] = sum[phase]+d, squares[phase]+d*d, n[phase]+1
		}
	}
	// The spread of the lines about the means of their phases, which is the same
	// for all phases but for chance.
	free, rest := 0.0, 0.0
	for k := range n {
		if n[k] > 1 {
			free, rest = free+n[k]-1, rest+squares[k]-sum[k]*sum[k]/n[k]
		}
	}
	for k := range out {
		out[k].Ratio = 1
		if n[k] >= 2 {
			// The lines around a line hold the line itself.
			others := float64(period) / float64(period-1)
			out[k].Ratio = math.Exp(sum[k] / n[k] * others)
			out[k].Error = math.Sqrt(rest/max(free, 1)/n[k]) * others
		}
	}
	return out
}

// Wave returns how strongly the mean steps of an axis go up and down with a
// period in lines: the amplitude over the mean. Drawn against the period it is
// the spectrum of a map's gradients, in which a lattice is a peak.
func (s *Steps) Wave(axis int, period float64) float64 {
	var re, im, sum float64
	for line, v := range s.sum[axis] {
		if s.count[axis][line] == 0 {
			continue
		}
		mean := v / s.count[axis][line]
		sin, cos := math.Sincos(2 * math.Pi * float64(line) / period)
		re, im, sum = re+mean*cos, im+mean*sin, sum+mean
	}
	if sum == 0 {
		return 0
	}
	return 2 * math.Hypot(re, im) / sum
}
