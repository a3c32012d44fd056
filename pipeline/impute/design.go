package impute

import (
	"math"

	"lacuna/pipeline/nn"
)

// Design is what must be known of a network to feed it: it is recorded in the
// model file.
type Design struct {
	Backbone string `json:"backbone" yaml:"backbone"` // unet or vit
	Size     string `json:"size" yaml:"size"`         // tiny, small, base or large
	Extras   Extras `json:"extras" yaml:"extras"`
	// Departure lets the network see and predict departures from the analysis,
	// or else the background, instead of anomalies; without either on a day
	// they are the same.
	Departure bool `json:"departure" yaml:"departure"`
	// Scaled makes the unit of departures the analysis's own sigma: close to
	// what is visible, where an analysis is hard to better, the network has
	// little to say, and one that says nothing is the analysis.
	Scaled   bool `json:"scaled" yaml:"scaled"`
	Variance bool `json:"variance" yaml:"variance"` // a second output, the logarithm of the variance
}

// Planes that every network sees: the context at its noise level, where it
// is, and the sea.
const (
	ValuePlane = iota
	MaskPlane
	SeaPlane
	basicPlanes
)

// Planes returns how many planes the network sees.
func (d Design) Planes() int {
	n := basicPlanes
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis, d.Extras.Season} {
		if has {
			n += 2
		}
	}
	return n
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
	return planes
}

// Network returns the network that the design asks for.
func (d Design) Network() nn.Config {
	out := 1
	if d.Variance {
		out = 2
	}
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: d.Planes(), Out: out}
}

// An Image is a stack of planes of height x width cells in a larger buffer. A
// window smaller than the planes lies in their upper left corner, and what is
// beyond it counts as land.
type Image struct {
	Data          []float32
	Height, Width int
}

// Plane returns plane i.
func (m Image) Plane(i int) []float32 {
	n := m.Height * m.Width
	return m.Data[i*n : (i+1)*n]
}

// A Level is how much noise lies over the context. The zero level is none.
type Level struct {
	T       float32
	Eps     []float32 // one number a cell of the window; not looked at where T is 0
	Applied bool      // the values are at the level already, and less the base
}

// Encode draws the planes of in with the context at a level. Cells that are
// not visible are not read.
func (d Design) Encode(m Image, in *Inputs, l Level) {
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
		encodeEstimate(m, at, in, in.Background, in.BackgroundSigma)
		at += 2
	}
	if d.Extras.Analysis {
		encodeEstimate(m, at, in, in.Analysis, in.AnalysisSigma)
		at += 2
	}
	if d.Extras.Season {
		encodeSeason(m, at, in.DayOfYear)
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

// Base is what predictions depart from at a cell.
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

// Unit is what a prediction's departure from the base is multiplied with.
func (d Design) Unit(in *Inputs, cell int) float32 {
	if !d.Scaled || !d.Departure || !d.Extras.Analysis || in.AnalysisSigma == nil || !(in.AnalysisSigma[cell] > leastUnit) {
		return 1
	}
	return in.AnalysisSigma[cell]
}

// leastUnit keeps logarithms of units finite. An analysis that claims less is
// one of a visible cell or of land, where nothing is predicted.
const leastUnit = 1e-3

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

// encodeEstimate draws an estimate and exp(-sigma), the trust in it: 1 for a
// perfect one, 0 for none at all.
func encodeEstimate(m Image, at int, in *Inputs, estimate, sigma []float32) {
	if estimate == nil {
		return
	}
	values, trust := m.Plane(at), m.Plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.Width+col
			if in.Sea[src] && finite(estimate[src]) {
				values[dst] = estimate[src]
				trust[dst] = float32(math.Exp(-float64(sigma[src])))
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
