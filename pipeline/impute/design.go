package impute

import (
	"math"

	"lacuna/pipeline/nn"
)

// Design describes a network and its inputs. It is recorded in the model file.
type Design struct {
	Backbone string `json:"backbone" yaml:"backbone"` // unet or vit
	Size     string `json:"size" yaml:"size"`         // tiny, small, base or large
	Extras   Extras `json:"extras" yaml:"extras"`
	// Departure lets the network see and predict departures from the analysis,
	// or else from the background, instead of anomalies; on a day with neither
	// the two are the same.
	Departure bool `json:"departure" yaml:"departure"`
	Variance  bool `json:"variance" yaml:"variance"` // adds a second output, the logarithm of the variance
	// Covariates are the names of other variables that the network sees, in the order of
	// their planes and separated by commas, and Standing those of maps that stay, whose
	// planes follow. A string keeps designs comparable.
	Covariates string `json:"covariates,omitempty" yaml:"covariates"`
	Standing   string `json:"standing,omitempty" yaml:"standing"`
}

// Input planes of every network: the context at its noise level, the mask of
// the context, and the sea.
const (
	ValuePlane = iota
	MaskPlane
	SeaPlane
	basicPlanes
)

// Planes returns the number of input planes.
func (d Design) Planes() int {
	n := basicPlanes
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis, d.Extras.Season} {
		if has {
			n += 2
		}
	}
	return n + covariatePlanes*len(d.Channels())
}

// Signed returns the planes whose sign is that of anomalies.
func (d Design) Signed() []int {
	planes := []int{ValuePlane}
	at := basicPlanes
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis} {
		if has {
			planes = append(planes, at)
			at += 2
		}
	}
	// A variable that goes with the anomalies goes with the opposite ones by its opposite; a
	// map that stays is what it is.
	at = d.covariatePlane(0)
	for range namesOf(d.Covariates) {
		planes = append(planes, at)
		at += covariatePlanes
	}
	return planes
}

// Network returns the configuration of the network.
func (d Design) Network() nn.Config {
	out := 1
	if d.Variance {
		out = 2
	}
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: d.Planes(), Out: out}
}

// An Image is a stack of planes of height x width cells in a larger buffer. A
// window smaller than the planes lies in their upper left corner, and the cells
// beyond it count as land.
type Image struct {
	Data          []float32
	Height, Width int
}

// Plane returns plane i, which shares memory with the image.
func (m Image) Plane(i int) []float32 {
	n := m.Height * m.Width
	return m.Data[i*n : (i+1)*n]
}

// A Level is the noise level of the context. The zero level has no noise.
type Level struct {
	T       float32
	Eps     []float32 // noise of each cell of the window; not read where T is 0
	Applied bool      // the values are noised already, and departures from the base
}

// Encode writes the planes of in with the context at a level. Cells that are
// not visible are not read.
func (d Design) Encode(m Image, in *Inputs, l Level) { d.EncodeTimes(m, in, l, 1) }

// EncodeTimes is Encode with all anomalies multiplied by a factor, which may be
// negative: estimates are then as much less certain.
func (d Design) EncodeTimes(m Image, in *Inputs, l Level, factor float32) {
	clear(m.Data[:d.Planes()*m.Height*m.Width])
	d.encodeContext(m, in, l)
	at := basicPlanes
	if d.Extras.Last {
		d.encodeComposite(m, at, in, in.Last.Value, in.Last.Freshness)
		at += 2
	}
	if d.Extras.Next {
		d.encodeComposite(m, at, in, in.Next.Value, in.Next.Freshness)
		at += 2
	}
	if d.Extras.Background {
		encodeEstimate(m, at, in, in.Background, in.BackgroundSigma, factor)
		at += 2
	}
	if d.Extras.Analysis {
		encodeEstimate(m, at, in, in.Analysis, in.AnalysisSigma, factor)
		at += 2
	}
	if d.Extras.Season {
		encodeSeason(m, at, in.DayOfYear)
	}
	for k, values := range in.Covariates {
		encodeCovariate(m, d.covariatePlane(k), in, values)
	}
	if factor != 1 {
		m.Scale(factor, d.Signed()...)
	}
}

func (d Design) encodeContext(m Image, in *Inputs, l Level) {
	alpha, sigma := AlphaSigma(l.T)
	values, mask, sea := m.Plane(ValuePlane), m.Plane(MaskPlane), m.Plane(SeaPlane)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.Width+col
			if in.Sea[src] {
				sea[dst] = 1
			}
			if !in.Visible[src] {
				continue
			}
			v := in.Values[src]
			if !l.Applied {
				v -= d.Base(in, src)
				if l.T > 0 {
					v = alpha*v + sigma*l.Eps[src]
				}
			}
			values[dst], mask[dst] = v, 1
		}
	}
}

// Base returns the value from which predictions depart at a cell.
func (d Design) Base(in *Inputs, cell int) float32 {
	switch {
	case !d.Departure:
		return 0
	case d.Extras.Analysis && in.Analysis != nil && finite(in.Analysis[cell]):
		return in.Analysis[cell]
	case d.Extras.Background && in.Background != nil && finite(in.Background[cell]):
		return in.Background[cell]
	}
	return 0
}

func (d Design) encodeComposite(m Image, at int, in *Inputs, value, fresh []float32) {
	if value == nil {
		return
	}
	values, freshness := m.Plane(at), m.Plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.Width+col
			if fresh[src] > 0 {
				values[dst], freshness[dst] = value[src]-d.Base(in, src), fresh[src]
			}
		}
	}
}

// encodeEstimate writes an estimate and exp(-sigma), the trust in it: 1 for a
// perfect one, 0 for a worthless one. A factor of anomalies is one of sigma.
func encodeEstimate(m Image, at int, in *Inputs, estimate, sigma []float32, factor float32) {
	size := math.Abs(float64(factor))
	if estimate == nil {
		return
	}
	values, trust := m.Plane(at), m.Plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.Width+col
			if in.Sea[src] && finite(estimate[src]) {
				values[dst] = estimate[src]
				trust[dst] = float32(math.Exp(-size * float64(sigma[src])))
			}
		}
	}
}

func encodeSeason(m Image, at, dayOfYear int) {
	if dayOfYear == 0 {
		return
	}
	sin, cos := math.Sincos(2 * math.Pi * float64(dayOfYear) / 365.25)
	for i := range m.Plane(at) {
		m.Plane(at)[i], m.Plane(at + 1)[i] = float32(sin), float32(cos)
	}
}
