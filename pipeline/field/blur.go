package field

import "math"

// blurKernel weighs the cells along an axis: the binomial of four steps, which
// takes out a wave of two cells, fifteen sixteenths of one of three and three
// quarters of one of four.
var blurKernel = [...]float32{1, 4, 6, 4, 1}

// Blur returns a map of positive values with the wanted cells replaced by the
// geometric mean of the wanted cells around them, five by five with weights that
// fall from the middle. Other cells keep their value and have no part in it.
func Blur(values []float32, wanted []bool, g Grid) []float32 {
	logs, weight := make([]float32, len(values)), make([]float32, len(values))
	for i, v := range values {
		if wanted[i] && v > 0 {
			logs[i], weight[i] = float32(math.Log(float64(v))), 1
		}
	}
	both := func(m []float32) []float32 { return blurColumns(blurRows(m, g), g) }
	logs, weight = both(logs), both(weight)
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = v
		if wanted[i] && v > 0 {
			out[i] = float32(math.Exp(float64(logs[i] / weight[i])))
		}
	}
	return out
}

// blurRows sums along the rows, around the globe where the grid goes round.
func blurRows(m []float32, g Grid) []float32 {
	out := make([]float32, len(m))
	w := g.Width()
	for row := 0; row < len(m); row += w {
		for j := range w {
			for d, share := range blurKernel {
				k := j + d - len(blurKernel)/2
				if g.Periodic() {
					k = (k + w) % w
				}
				if k >= 0 && k < w {
					out[row+j] += share * m[row+k]
				}
			}
		}
	}
	return out
}

// blurColumns sums along the columns.
func blurColumns(m []float32, g Grid) []float32 {
	out := make([]float32, len(m))
	w := g.Width()
	for i := range g.Height() {
		for d, share := range blurKernel {
			k := i + d - len(blurKernel)/2
			if k < 0 || k >= g.Height() {
				continue
			}
			from, to := m[k*w:(k+1)*w], out[i*w:(i+1)*w]
			for j, v := range from {
				to[j] += share * v
			}
		}
	}
	return out
}
