package skill

import (
	"math"
	"slices"
)

// CRPSGaussian returns the continuous ranked probability score of the normal
// distribution with the given mean and standard deviation for the outcome y:
//
//	σ [ z (2Φ(z) - 1) + 2φ(z) - 1/√π ],  z = (y - μ)/σ
//
// It is in the units of y and is never negative; less is better. With sigma 0
// it is the absolute error.
//
// See Gneiting and Raftery, Journal of the American Statistical Association
// 102 (2007), 359-378.
func CRPSGaussian(mean, sigma, y float64) float64 {
	if !(sigma > 0) {
		return math.Abs(y - mean)
	}
	z := (y - mean) / sigma
	density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	return sigma * (z*math.Erf(z/math.Sqrt2) + 2*density - 1/math.SqrtPi)
}

// CRPSEnsemble returns the fair continuous ranked probability score of an
// ensemble of M members for the outcome y:
//
//	1/M Σ|xᵢ - y| - 1/(2M(M-1)) ΣΣ|xᵢ - xⱼ|
//
// Fair means that an ensemble drawn from the right distribution has the
// expected score of that distribution whatever its size, so that ensembles of
// different sizes compare; a single value of it may be negative. One member
// gives the absolute error.
//
// See Ferro, Quarterly Journal of the Royal Meteorological Society 140 (2014),
// 1917-1923.
func CRPSEnsemble(members []float64, y float64) float64 {
	sorted := slices.Clone(members)
	slices.Sort(sorted)
	return crpsSorted(sorted, y, false)
}

// CRPSCentred is CRPSEnsemble for members that were moved so that their mean is
// exactly the published one. Such members are no independent draws: each
// deviates from the mean as far as the truth, but two of them are further apart
// than two draws would be, by √(M/(M-1)) if they are Gaussian, so that the fair
// score would be too good. The distance between members is divided by that
// factor.
func CRPSCentred(members []float64, y float64) float64 {
	sorted := slices.Clone(members)
	slices.Sort(sorted)
	return crpsSorted(sorted, y, true)
}

// crpsSorted is CRPSEnsemble, or CRPSCentred, of members in ascending order. The double sum
// is 2 Σ (2i - M + 1) xᵢ then, with i counted from 0.
func crpsSorted(x []float64, y float64, centred bool) float64 {
	m := float64(len(x))
	miss, spread := 0.0, 0.0
	for i, v := range x {
		miss += math.Abs(v - y)
		spread += (2*float64(i) - m + 1) * v
	}
	if len(x) < 2 {
		return miss / m
	}
	if centred {
		spread *= math.Sqrt((m - 1) / m)
	}
	return miss/m - spread/(m*(m-1))
}
