package field

import "math"

// blurKernel weighs the cells along an axis: the binomial of four steps, which
// takes out a wave of two cells, fifteen sixteenths of one of three and three
// quarters of one of four.
var blurKernel = [...]float32{1, 4, 6, 4, 1}

// Blur returns a map of positive values with the wanted cells replaced by the
// geometric mean of the wanted cells around them, five by five with weights that
// fall from the middle, and that so many times over. Other cells keep their value
// and have no part in it.
func Blur(values []float32, wanted []bool, g Grid, times int) []float32 {
	logs, weight := make([]float32, len(values)), make([]float32, len(values))
	for i, v := range values {
		if wanted[i] && v > 0 {
			logs[i], weight[i] = float32(math.Log(float64(v))), 1
		}
	}
	rows, wraps := make([]float32, len(values)), g.Periodic()
	blur := func(m []float32) {
		blurRows(m, rows, g.Width(), wraps)
		blurColumns(rows, m, g.Width())
	}
	blur(weight)
	for range times {
		blur(logs)
		for i := range logs {
			if wanted[i] && values[i] > 0 {
				logs[i] /= weight[i]
			} else {
				logs[i] = 0
			}
		}
	}
	out := rows // is not needed any more
	for i, v := range values {
		out[i] = v
		if wanted[i] && v > 0 {
			out[i] = float32(math.Exp(float64(logs[i])))
		}
	}
	return out
}

// blurRows sums along the rows, around the globe where they go round.
func blurRows(m, out []float32, width int, wraps bool) {
	const reach = len(blurKernel) / 2
	for begin := 0; begin < len(m); begin += width {
		row, to := m[begin:begin+width], out[begin:begin+width]
		for j := range to {
			sum := float32(0)
			if j >= reach && j < width-reach {
				for d, v := range row[j-reach : j+reach+1] {
					sum += blurKernel[d] * v
				}
			} else {
				for d, share := range blurKernel {
					k := j + d - reach
					if wraps {
						k = (k + width) % width
					}
					if k >= 0 && k < width {
						sum += share * row[k]
					}
				}
			}
			to[j] = sum
		}
	}
}

// blurColumns sums along the columns.
func blurColumns(m, out []float32, width int) {
	height := len(m) / width
	for i := range height {
		to := out[i*width : (i+1)*width]
		clear(to)
		for d, share := range blurKernel {
			k := i + d - len(blurKernel)/2
			if k < 0 || k >= height {
				continue
			}
			for j, v := range m[k*width : (k+1)*width] {
				to[j] += share * v
			}
		}
	}
}
