package maskprior

import (
	"math"

	"lacuna/pipeline/samples"
)

// spread returns the mean over the sea of the standard deviation over the
// draws of each patch, which come one after the other.
func spread(patches []samples.Patch, drawn [][]bool, draws int) float64 {
	sum, cells := 0.0, 0
	for from := 0; from < len(drawn); from += draws {
		for c, sea := range patches[from].Sea {
			if !sea {
				continue
			}
			p := 0.0
			for _, m := range drawn[from : from+draws] {
				if m[c] {
					p += 1 / float64(draws)
				}
			}
			sum += math.Sqrt(p * (1 - p))
			cells++
		}
	}
	return sum / float64(max(cells, 1))
}
