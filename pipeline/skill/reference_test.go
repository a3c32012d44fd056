package skill

import (
	"math"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// The reference numbers of this file were computed with numpy 2.4.6, scipy
// 1.17.1 and scikit-image 0.26.0 on the same inputs, which a linear
// congruential generator makes in any language. The functions that gave them
// are named beside them.

// uniform returns n numbers in [0, 1): x ← (1103515245 x + 12345) mod 2³¹.
func uniform(seed uint64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		seed = (1103515245*seed + 12345) % (1 << 31)
		out[i] = float64(seed) / (1 << 31)
	}
	return out
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// slanted is a sample of noise, visible left of a slanted line, with a few
// cells of unknown truth.
func slanted() Sample {
	const h, w = 12, 16
	x := Sample{
		Day: time.Date(2021, 6, 1, 0, 0, 0, 0, time.UTC), Height: h, Width: w,
		Truth: narrow(uniform(1, h*w)), Mean: narrow(uniform(2, h*w)),
		Visible: make(field.Mask, h*w), Scored: make(field.Mask, h*w),
		Physical: Physical{
			Normalisation: field.Normalisation{Mean: -0.5, Std: 0.3},
			Transform:     field.Transform{Log10: true, Floor: 1e-3},
		},
	}
	for c, u := range uniform(3, h*w) {
		left := c%w+c/w/3 < 8
		x.Visible[c], x.Scored[c] = u < 0.97 && left, u < 0.97 && !left
		if u >= 0.97 {
			x.Truth[c], x.Mean[c] = field.NaN(), field.NaN()
		}
	}
	return x
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

const exact = 1e-9 // rounding of double precision sums of a few hundred terms

func TestPixelErrorsAreThoseOfScikitImage(t *testing.T) {
	opt := DefaultOptions()
	opt.Range = 1.5
	s := NewScores(opt)
	if err := s.Add(slanted()); err != nil {
		t.Fatal(err)
	}
	sum := s.Summary()
	if sum.Pixels != 110 || sum.Samples != 1 || sum.Days != 1 {
		t.Fatalf("scored %d pixels of %d samples on %d days", sum.Pixels, sum.Samples, sum.Days)
	}
	near(t, "MSE", *sum.MSE, 0.15398207283950197, 1e-8) // skimage.metrics.mean_squared_error
	near(t, "bias", *sum.Bias, -0.020981191674416717, 1e-8)
	near(t, "PSNR", *sum.PSNR, 11.647123514853401, 1e-6) // skimage.metrics.peak_signal_noise_ratio, data_range=1.5
	near(t, "physical RMSE", *sum.RMSEPhysical, 0.12404305197359956, 1e-8)
	near(t, "physical bias", *sum.BiasPhysical, -0.006345877284791748, 1e-8)
	near(t, "CBGD", *sum.CBGD, 1.0183952877705733, 1e-8) // skimage.filters.sobel, stencils by scipy.ndimage
	if sum.Gaussian != nil || sum.Ensemble != nil || sum.WeightedMSE != nil {
		t.Error("a score was given though the sample has no sigma or members")
	}
}

func TestDistancesAreThoseOfScipy(t *testing.T) {
	// scipy.ndimage.distance_transform_edt
	total := func(d []float64) (sum, most float64) {
		for _, v := range d {
			sum += v
			most = max(most, v)
		}
		return sum, most
	}
	d := Distances(slanted().Visible, 12, 16)
	sum, most := total(d)
	near(t, "sum", sum, 564.0640842277974, 1e-9)
	near(t, "largest", most, 10.44030650891055, exact)
	near(t, "cell 5, 13", d[5*16+13], 6.708203932499369, exact)

	sparse := make(field.Mask, 40*50)
	for c, u := range uniform(4, len(sparse)) {
		sparse[c] = u < 0.004
	}
	sum, most = total(Distances(sparse, 40, 50))
	near(t, "sum of sparse", sum, 14092.154541902797, 1e-8)
	near(t, "largest of sparse", most, 20.615528128088304, exact)
}

func TestGapsAreThoseOfScipy(t *testing.T) {
	// scipy.ndimage.label with the default structure of four neighbours
	observed, sea := make(field.Mask, 900), make(field.Mask, 900)
	for c, u := range uniform(5, 900) {
		observed[c], sea[c] = u < 0.45, c%30+c/30 > 10
	}
	g := DescribeGaps(observed, sea, 30, 30)
	if g.Gaps != 32 || g.LargestSize != 192 || g.Sea != 834 || g.MedianSize != 3 || g.MeanSize != 15 {
		t.Errorf("gaps are %+v, want 32 of mean 15, median 3, largest 192 in 834 cells of sea", g)
	}
	near(t, "typical size", g.TypicalSize, 101.19583333333334, exact)
	near(t, "coverage", g.Coverage, 0.4244604316546763, exact)
}

func TestCRPSOfAGaussianIsItsIntegral(t *testing.T) {
	// scipy.integrate.quad of (Φ(x) - 1[x ≥ y])²
	for _, tt := range []struct{ mean, sigma, y, want float64 }{
		{0, 1, 0, 0.23369497725510904},
		{0, 1, 1.5, 0.994424003977453},
		{2, 0.5, 0.7, 1.0193690885981388},
		{-1, 3, 4, 3.426390559385076},
		{1, 0, -2, 3}, // no spread: the absolute error
	} {
		near(t, "CRPS", CRPSGaussian(tt.mean, tt.sigma, tt.y), tt.want, 1e-9)
	}
}

func TestAUCAndKolmogorovSmirnovAreThoseOfScipy(t *testing.T) {
	// scipy.stats.mannwhitneyu over the number of pairs, scipy.stats.ks_2samp
	a, b := uniform(6, 40), uniform(7, 55)
	for i := range b {
		b[i] = math.Pow(b[i], 1.5)
	}
	near(t, "AUC", AUC(a, b), 0.65, exact)
	near(t, "KS", KolmogorovSmirnov(a, b), 0.27045454545454545, exact)
	for i := range a {
		a[i] = math.Floor(8 * a[i])
	}
	for i := range b {
		b[i] = math.Floor(8 * b[i])
	}
	near(t, "AUC with ties", AUC(a, b), 0.6481818181818182, exact)
	near(t, "KS with ties", KolmogorovSmirnov(a, b), 0.25227272727272726, exact)
}

func TestPowerIsThatOfScipy(t *testing.T) {
	// numpy.linalg.lstsq for the plane, scipy.signal.windows.cosine squared,
	// scipy.fft.fft2, means over rings by numpy.rint
	const n = 16
	patch := uniform(8, n*n)
	for i := range patch {
		patch[i] += 0.2*float64(i%n) - 0.1*float64(i/n)
	}
	want := []float64{
		0.04089368695746147, 0.07156732486708016, 0.0750625729433585, 0.06791712492027874,
		0.07983167275887493, 0.10538627032073514, 0.09066165506300586, 0.10638471479506091,
	}
	for k, p := range NewSpectrometer(n).Power(patch) {
		near(t, "power", p, want[k], exact)
	}
}

func TestIntervalsOfFewMembersAreStudents(t *testing.T) {
	// scipy.stats.t.ppf((1+p)/2, 7) · √(1+1/8) and scipy.stats.norm.ppf
	for k, want := range []float64{0.7542797605000352, 1.5007534561571676, 2.00950406872514} {
		near(t, "half width", halfWidth(Levels()[k], 8, false), want, 1e-8)
	}
	for k, want := range []float64{0.6744897501960817, 1.2815515655446004, 1.6448536269514722} {
		near(t, "half width of a Gaussian", halfWidth(Levels()[k], 0, false), want, 1e-9)
	}
}
