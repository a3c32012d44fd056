package infer

import (
	"math"

	"lacuna/pipeline/field"
)

// sigmaKernel weighs the cells along an axis in the smoothing of sigma: the
// binomial of four steps, which takes out a wave of two cells and three quarters
// of one of four.
var sigmaKernel = [...]float64{1, 4, 6, 4, 1}

// smoothSigma returns the sigma of a network without the lattice of its strides:
// the geometric mean over the wanted cells around. A network with a stride of two
// and of four answers differently at every fourth cell, by a hundredth of sigma,
// which is nothing beside sigma and a tenth of its gradient.
func smoothSigma(sigma []float32, wanted []bool, grid field.Grid) []float32 {
	h, w := grid.Height(), grid.Width()
	logs, weight := make([]float32, len(sigma)), make([]float32, len(sigma))
	for i, s := range sigma {
		if wanted[i] && s > 0 {
			logs[i], weight[i] = float32(math.Log(float64(s))), 1
		}
	}
	along := func(src []float32, lines, stride int, first func(k int) int, n int, periodic bool) []float32 {
		dst := make([]float32, len(src))
		each(n, func(k int) {
			at := first(k)
			for i := range lines {
				sum := 0.0
				for d, share := range sigmaKernel {
					j := i + d - len(sigmaKernel)/2
					if periodic {
						j = (j + lines) % lines
					} else if j < 0 || j >= lines {
						continue
					}
					sum += share * float64(src[at+j*stride])
				}
				dst[at+i*stride] = float32(sum)
			}
		})
		return dst
	}
	both := func(src []float32) []float32 {
		src = along(src, w, 1, func(k int) int { return k * w }, h, grid.Periodic())
		return along(src, h, w, func(k int) int { return k }, w, false)
	}
	logs, weight = both(logs), both(weight)
	out := make([]float32, len(sigma))
	for i, s := range sigma {
		out[i] = s
		if wanted[i] && weight[i] > 0 {
			out[i] = float32(math.Exp(float64(logs[i] / weight[i])))
		}
	}
	return out
}
