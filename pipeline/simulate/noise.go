package simulate

import "math"

// mix returns a number that looks random and depends on all its arguments
// (the finaliser of splitmix64, chained).
func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h += p
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// unit returns a number in [0, 1) made of the bits of h.
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// gauss returns a standard normal number made of the bits of h (Box-Muller).
func gauss(h uint64) float64 {
	u := (float64(h>>32) + 0.5) / (1 << 32)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*float64(h&0xffffffff)/(1<<32))
}

// A turbulence is a random field on the sphere that drifts and evolves: a sum
// of octaves of gradient noise with a red spectrum. Being made of
// three-dimensional noise it has neither seams nor poles.
type turbulence struct {
	longestKM, shortestKM float64 // wavelengths; an octave each in between
	// slope is the growth of the amplitude with the wavelength: a slope s
	// gives a one-dimensional power spectrum k^-(1+2s).
	slope float64
	// memoryDays is how long the longest wave keeps its shape; shorter ones
	// forget faster, by the two-thirds power of the wavelength.
	memoryDays float64
	// eastKMPerDay is the drift along the parallel of latDegrees.
	eastKMPerDay, latDegrees float64
}

// seeded returns the field of a seed.
func (t turbulence) seeded(seed uint64) *medium {
	m := &medium{turbulence: t}
	power := 0.0
	for k, wave := uint64(0), t.longestKM; k == 0 || wave >= t.shortestKM; k, wave = k+1, wave/2 {
		size := wave / t.longestKM
		w := newWave(mix(seed, k))
		w.cellsPerKM = cellsPerWave / wave
		w.memoryDays = t.memoryDays * math.Pow(size, 2.0/3)
		w.amplitude = math.Pow(size, t.slope)
		power += w.amplitude * w.amplitude
		m.waves = append(m.waves, w)
	}
	for _, w := range m.waves {
		w.amplitude /= math.Sqrt(power) * noiseStd
	}
	return m
}

const (
	// cellsPerWave is the number of lattice cells in one wave of gradient
	// noise: neighbouring cells tend to opposite signs.
	cellsPerWave = 2.0
	// noiseStd is the standard deviation of one octave with unit gradients,
	// which TestTurbulenceHasUnitVariance measures.
	noiseStd = 0.19
)

// A medium is a turbulence of one seed, for all times.
type medium struct {
	turbulence
	waves []*wave
}

// A wave is one octave for all times. Its lattice gradients turn, each at its
// own random speed in its own plane, so the field evolves and never repeats
// (after the flow noise of K. Perlin and F. Neyret, 2001).
type wave struct {
	seed       uint64
	amplitude  float64
	cellsPerKM float64
	memoryDays float64
	axes       [3][3]float64 // random orientation of the lattice, which hides it
	turning    [gradients]struct {
		from, to     [3]float64 // the plane
		phase, speed float64    // radians, radians per memory
	}
}

// gradients is the number of different lattice gradients of an octave.
const gradients = 256

func newWave(seed uint64) *wave {
	w := &wave{seed: mix(seed, 1)}
	for p := range w.turning {
		g, h := &w.turning[p], mix(seed, 2, uint64(p))
		g.from, g.to = frame(mix(h, 1))
		g.phase, g.speed = 2*math.Pi*unit(mix(h, 2)), gauss(mix(h, 3))
	}
	a, b := frame(mix(seed, 3))
	w.axes = [3][3]float64{a, b, {a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}}
	return w
}

// frame returns two random unit vectors at right angles.
func frame(h uint64) (a, b [3]float64) {
	var v [2][3]float64
	for i := range v {
		for j := range v[i] {
			v[i][j] = gauss(mix(h, uint64(i), uint64(j)))
		}
	}
	a = normalised(v[0])
	dot := a[0]*v[1][0] + a[1]*v[1][1] + a[2]*v[1][2]
	for j := range b {
		b[j] = v[1][j] - dot*a[j]
	}
	return a, normalised(b)
}

func normalised(v [3]float64) [3]float64 {
	r := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
	return [3]float64{v[0] / r, v[1] / r, v[2] / r}
}

// at returns the field at one time. Its values have mean 0 and variance 1.
func (m *medium) at(day float64) fractal {
	f := make(fractal, len(m.waves))
	turn := m.eastKMPerDay * day / (earthRadiusKM * math.Cos(m.latDegrees*math.Pi/180))
	for i, w := range m.waves {
		f[i] = w.at(day, turn)
	}
	return f
}

// at freezes the wave at one time, its lattice turned east by an angle.
func (w *wave) at(day, east float64) *octave {
	o := &octave{seed: w.seed, amplitude: w.amplitude}
	for p := range w.turning {
		g := &w.turning[p]
		sin, cos := math.Sincos(g.phase + g.speed*day/w.memoryDays)
		for i := range 3 {
			o.gradient[p][i] = cos*g.from[i] + sin*g.to[i]
		}
	}
	sin, cos := math.Sincos(east)
	for i, axis := range w.axes {
		o.matrix[3*i] = (axis[0]*cos - axis[1]*sin) * w.cellsPerKM
		o.matrix[3*i+1] = (axis[0]*sin + axis[1]*cos) * w.cellsPerKM
		o.matrix[3*i+2] = axis[2] * w.cellsPerKM
	}
	return o
}

// A fractal is a field at one time: a sum of octaves.
type fractal []*octave

// value returns the field at a point of the sphere, given in kilometres.
func (f fractal) value(x, y, z float64) float64 {
	sum := 0.0
	for _, o := range f {
		sum += o.amplitude * o.value(x, y, z)
	}
	return sum
}

// An octave is gradient noise at one wavelength and one time.
type octave struct {
	seed      uint64
	amplitude float64
	matrix    [9]float64 // kilometres to lattice cells, row by row
	gradient  [gradients][3]float64
}

// latticeOffset moves the origin away from the centre of the Earth, so that
// coordinates truncate towards one side.
const latticeOffset = 1 << 20

// value returns the noise at a point in kilometres: at each corner of the
// lattice cell a linear ramp along the corner's gradient, blended by quintic
// weights (K. Perlin, Improving noise, 2002).
func (o *octave) value(x, y, z float64) float64 {
	m := &o.matrix
	px := m[0]*x + m[1]*y + m[2]*z + latticeOffset
	py := m[3]*x + m[4]*y + m[5]*z + latticeOffset
	pz := m[6]*x + m[7]*y + m[8]*z + latticeOffset
	ix, iy, iz := uint64(px), uint64(py), uint64(pz)
	fx, fy, fz := px-float64(ix), py-float64(iy), pz-float64(iz)

	const ax, ay, az = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9
	h0, h1 := o.seed^ix*ax, o.seed^(ix+1)*ax
	k00, k01 := iy*ay+iz*az, iy*ay+(iz+1)*az
	k10, k11 := (iy+1)*ay+iz*az, (iy+1)*ay+(iz+1)*az

	wx, wy, wz := fade(fx), fade(fy), fade(fz)
	v00 := lerp(wx, o.ramp(h0+k00, fx, fy, fz), o.ramp(h1+k00, fx-1, fy, fz))
	v10 := lerp(wx, o.ramp(h0+k10, fx, fy-1, fz), o.ramp(h1+k10, fx-1, fy-1, fz))
	v01 := lerp(wx, o.ramp(h0+k01, fx, fy, fz-1), o.ramp(h1+k01, fx-1, fy, fz-1))
	v11 := lerp(wx, o.ramp(h0+k11, fx, fy-1, fz-1), o.ramp(h1+k11, fx-1, fy-1, fz-1))
	return lerp(wz, lerp(wy, v00, v10), lerp(wy, v01, v11))
}

func (o *octave) ramp(h uint64, x, y, z float64) float64 {
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	g := &o.gradient[h>>56]
	return g[0]*x + g[1]*y + g[2]*z
}

func fade(t float64) float64 { return t * t * t * (t*(t*6-15) + 10) }

func lerp(t, a, b float64) float64 { return a + t*(b-a) }
