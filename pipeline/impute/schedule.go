package impute

import "math"

// AlphaSigma returns the weights of the field and of the noise at time
// t of the variance-preserving schedule
//
//	x_t = α_t x_0 + σ_t ε,  α_t = cos(πt/2),  σ_t = sin(πt/2)
//
// from the field itself at t=0 to pure noise at t=1. At both ends the two are
// exact.
func AlphaSigma(t float32) (alpha, sigma float32) {
	switch {
	case t <= 0:
		return 1, 0
	case t >= 1:
		return 0, 1
	}
	sin, cos := math.Sincos(math.Pi / 2 * float64(t))
	return float32(cos), float32(sin)
}

// Renoise adds noise to x of time t until it is of the later time s:
//
//	x_s = (α_s/α_t) x_t + sqrt(σ_s² - (α_s/α_t)² σ_t²) ε
func Renoise(x, eps []float32, t, s float32) {
	alphaT, sigmaT := AlphaSigma(t)
	alphaS, sigmaS := AlphaSigma(s)
	ratio := float64(alphaS) / float64(alphaT)
	fresh := math.Sqrt(max(float64(sigmaS)*float64(sigmaS)-ratio*ratio*float64(sigmaT)*float64(sigmaT), 0))
	for i := range x {
		x[i] = float32(ratio)*x[i] + float32(fresh)*eps[i]
	}
}
