package impute

import (
	"math"
	"testing"

	"lacuna/pipeline/noise"
)

func TestAJumpHasTheVarianceOfItsTime(t *testing.T) {
	const n = 200_000
	for _, jump := range []struct{ from, to float32 }{{0, 0.3}, {0.2, 0.7}, {0.5, 1}} {
		x, eps := make([]float32, n), make([]float32, n)
		noise.New(1, "x").Normals(x, 0)
		noise.New(1, "eps").Normals(eps, 0)
		const clean = 1.5
		alpha, sigma := AlphaSigma(jump.from)
		for i := range x {
			x[i] = alpha*clean + sigma*x[i]
		}
		Renoise(x, eps, jump.from, jump.to)
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		alpha, sigma = AlphaSigma(jump.to)
		mean, variance := sum/n, squares/n-sum/n*sum/n
		if math.Abs(mean-clean*float64(alpha)) > 0.01 || math.Abs(variance-float64(sigma*sigma)) > 0.01 {
			t.Errorf("from %v to %v: mean %.3f and variance %.3f, want %.3f and %.3f", jump.from, jump.to, mean, variance, clean*alpha, sigma*sigma)
		}
	}
}
