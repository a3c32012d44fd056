package skill

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"

	"lacuna/pipeline/field"
)

// A Spectrum is the isotropic power of a truth, of its fill and of the
// difference, over wavelengths. Power is per Fourier mode, in
// squared units of the values: white noise of variance v has the power v at
// all wavelengths.
type Spectrum struct {
	Patches    int       `json:"patches"`
	Wavelength []float64 `json:"wavelength"` // cells, longest first
	Truth      []float64 `json:"truth"`
	Filled     []float64 `json:"filled"`
	Error      []float64 `json:"error"`
}

// Ratio returns the power of the filled map over that of the truth at each
// wavelength: 1 is the right texture, less is too smooth. It is NaN where the
// truth has no power.
func (s Spectrum) Ratio() []float64 {
	out := make([]float64, len(s.Truth))
	for k := range out {
		out[k] = s.Filled[k] / s.Truth[k]
	}
	return out
}

// ResolvedScale returns the shortest wavelength, in cells, down to which the
// power of the error stays below half of the power of the truth, interpolated
// between wavelengths. It is not known if even the longest wave is not
// resolved. If all are, it is the shortest wave of the grid.
//
// See Ballarotta and others, Ocean Science 15 (2019), 1091-1109.
func (s Spectrum) ResolvedScale() (cells float64, known bool) {
	const half = 0.5
	before := math.NaN()
	for k, wave := range s.Wavelength {
		now := s.Error[k] / s.Truth[k]
		if !(now < half) {
			if k == 0 {
				return 0, false
			}
			// Between the two in wavenumber, where the modes are evenly spaced.
			share := (half - before) / (now - before)
			low, high := 1/s.Wavelength[k-1], 1/wave
			return 1 / (low + share*(high-low)), true
		}
		before = now
	}
	if len(s.Wavelength) == 0 {
		return 0, false
	}
	return s.Wavelength[len(s.Wavelength)-1], true
}

// A Spectrometer sums up the power of square patches.
type Spectrometer struct {
	side    int
	window  []float64
	fft     *fourier.CmplxFFT
	patches int
	sums    [3][]float64 // truth, filled, error; by wavenumber from 1
}

// NewSpectrometer returns a Spectrometer for patches of side×side cells, at
// least 4.
func NewSpectrometer(side int) *Spectrometer {
	if side < 4 {
		panic("skill: a spectrum needs patches of at least 4 cells")
	}
	s := &Spectrometer{side: side, window: make([]float64, side), fft: fourier.NewCmplxFFT(side)}
	for i := range s.window {
		// Hann's window, half a cell off so that no row is lost to a zero.
		s.window[i] = math.Pow(math.Sin(math.Pi*(float64(i)+0.5)/float64(side)), 2)
	}
	for k := range s.sums {
		s.sums[k] = make([]float64, side/2)
	}
	return s
}

// Add counts one patch, row by row, without gaps.
func (s *Spectrometer) Add(truth, filled []float64) {
	n := s.side * s.side
	if len(truth) != n || len(filled) != n {
		panic(badLength)
	}
	miss := make([]float64, n)
	for i := range miss {
		miss[i] = filled[i] - truth[i]
	}
	for k, patch := range [][]float64{truth, filled, miss} {
		for r, p := range s.Power(patch) {
			s.sums[k][r] += p
		}
	}
	s.patches++
}

// Power returns the isotropic power of one patch for the wavenumbers 1, 2, ...
// side/2, in cycles per side: the mean over all modes whose wavenumber rounds
// to it, after subtracting the plane through the patch and applying Hann's
// window.
func (s *Spectrometer) Power(patch []float64) []float64 {
	n := s.side
	modes := make([]complex128, n*n)
	weights := 0.0
	for i, v := range detrended(patch, n) {
		w := s.window[i/n] * s.window[i%n]
		weights += w * w
		modes[i] = complex(v*w, 0)
	}
	s.transform(modes)
	power, count := make([]float64, n/2), make([]float64, n/2)
	for c, m := range modes {
		ky, kx := wrapped(c/n, n), wrapped(c%n, n)
		r := int(math.Round(math.Hypot(ky, kx)))
		if r >= 1 && r <= n/2 {
			power[r-1] += (real(m)*real(m) + imag(m)*imag(m)) / weights
			count[r-1]++
		}
	}
	for r := range power {
		power[r] /= count[r]
	}
	return power
}

// transform replaces a square by its Fourier transform.
func (s *Spectrometer) transform(modes []complex128) {
	n := s.side
	column := make([]complex128, n)
	for i := range n {
		row := modes[i*n : (i+1)*n]
		copy(row, s.fft.Coefficients(nil, row))
	}
	for j := range n {
		for i := range n {
			column[i] = modes[i*n+j]
		}
		for i, v := range s.fft.Coefficients(nil, column) {
			modes[i*n+j] = v
		}
	}
}

// wrapped returns the signed wavenumber of mode k.
func wrapped(k, n int) float64 {
	if k > n/2 {
		k -= n
	}
	return float64(k)
}

// detrended returns the patch without its mean and its slopes, by least
// squares; on a full square the three are independent of each other.
func detrended(patch []float64, n int) []float64 {
	mean, slopeY, slopeX, squares := 0.0, 0.0, 0.0, 0.0
	middle := float64(n-1) / 2
	for i, v := range patch {
		y, x := float64(i/n)-middle, float64(i%n)-middle
		mean += v
		slopeY += y * v
		slopeX += x * v
		squares += x * x
	}
	mean, slopeY, slopeX = mean/float64(n*n), slopeY/squares, slopeX/squares
	out := make([]float64, len(patch))
	for i, v := range patch {
		out[i] = v - mean - slopeY*(float64(i/n)-middle) - slopeX*(float64(i%n)-middle)
	}
	return out
}

// Spectrum returns the mean over all patches, or nil without any.
func (s *Spectrometer) Spectrum() *Spectrum {
	if s.patches == 0 {
		return nil
	}
	out := &Spectrum{Patches: s.patches}
	for r := range s.side / 2 {
		out.Wavelength = append(out.Wavelength, float64(s.side)/float64(r+1))
		out.Truth = append(out.Truth, s.sums[0][r]/float64(s.patches))
		out.Filled = append(out.Filled, s.sums[1][r]/float64(s.patches))
		out.Error = append(out.Error, s.sums[2][r]/float64(s.patches))
	}
	return out
}

// leastScoredShare is the filled share of a patch from which on its spectrum
// tells something about the filling.
const leastScoredShare = 0.25

// AddSample counts the patches of a sample that have no gap in the truth and
// of which at least a quarter was filled. Patches do not overlap. It returns
// their number.
func (s *Spectrometer) AddSample(x Sample, fill []float32) int {
	composed := x.Composed(fill)
	taken := make(field.Mask, len(composed))
	added := 0
	// Steps of half a patch find most of the patches that fit into the clear
	// sky.
	step := max(s.side/2, 1)
	for top := 0; top+s.side <= x.Height; top += step {
		for left := 0; left+s.side <= x.Width; left += step {
			cells, ok := s.clear(x, composed, taken, top*x.Width+left)
			if !ok {
				continue
			}
			truth, filled := make([]float64, len(cells)), make([]float64, len(cells))
			for k, c := range cells {
				truth[k], filled[k] = float64(x.Truth[c]), float64(composed[c])
				taken[c] = true
			}
			s.Add(truth, filled)
			added++
		}
	}
	return added
}

// clear returns the cells of the patch with the given first cell, if it can be
// used.
func (s *Spectrometer) clear(x Sample, composed []float32, taken field.Mask, first int) (cells []int, ok bool) {
	scored := 0
	for i := range s.side {
		for j := range s.side {
			c := first + i*x.Width + j
			if taken[c] || !finite(composed[c]) {
				return nil, false
			}
			if x.Scored[c] {
				scored++
			}
			cells = append(cells, c)
		}
	}
	return cells, float64(scored) >= leastScoredShare*float64(len(cells))
}
