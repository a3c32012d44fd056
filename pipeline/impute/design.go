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
	valuePlane = iota
	maskPlane
	seaPlane
	basicPlanes
)

func (d Design) planes() int {
	n := basicPlanes
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis, d.Extras.Season} {
		if has {
			n += 2
		}
	}
	return n
}

// signed returns the planes whose sign is that of anomalies.
func (d Design) signed() []int {
	planes := []int{valuePlane}
	at := basicPlanes
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis} {
		if has {
			planes = append(planes, at)
			at += 2
		}
	}
	return planes
}

func (d Design) network() nn.Config {
	out := 1
	if d.Variance {
		out = 2
	}
	return nn.Config{Backbone: d.Backbone, Size: d.Size, In: d.planes(), Out: out}
}

// An image is a stack of planes of height x width cells in a larger buffer. A
// window smaller than the planes lies in their upper left corner, and what is
// beyond it counts as land.
type image struct {
	data          []float32
	height, width int
}

func (m image) plane(i int) []float32 {
	n := m.height * m.width
	return m.data[i*n : (i+1)*n]
}

// A level is how much noise lies over the context. The zero level is none.
type level struct {
	t     float32
	eps   []float32 // one number a cell of the window; not looked at where t is 0
	there bool      // the values are at the level already, and less the base
}

// encode draws the planes of in with the context at a level. Cells that are
// not visible are not read.
func (d Design) encode(m image, in *Inputs, l level) {
	clear(m.data[:d.planes()*m.height*m.width])
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

func (d Design) encodeContext(m image, in *Inputs, l level) {
	alpha, sigma := alphaSigma(l.t)
	values, mask, sea := m.plane(valuePlane), m.plane(maskPlane), m.plane(seaPlane)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.width+col
			if in.Sea[src] {
				sea[dst] = 1
			}
			if !in.Visible[src] {
				continue
			}
			v := in.Values[src]
			if !l.there {
				v -= d.base(in, src)
				if l.t > 0 {
					v = alpha*v + sigma*l.eps[src]
				}
			}
			values[dst], mask[dst] = v, 1
		}
	}
}

// base is what predictions depart from at a cell.
func (d Design) base(in *Inputs, cell int) float32 {
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

// unit is what a prediction's departure from the base is multiplied with.
func (d Design) unit(in *Inputs, cell int) float32 {
	if !d.Scaled || !d.Departure || !d.Extras.Analysis || in.AnalysisSigma == nil || !(in.AnalysisSigma[cell] > leastUnit) {
		return 1
	}
	return in.AnalysisSigma[cell]
}

// leastUnit keeps logarithms of units finite. An analysis that claims less is
// one of a visible cell or of land, where nothing is predicted.
const leastUnit = 1e-3

func (d Design) encodeComposite(m image, at int, in *Inputs, value, fresh []float32) {
	if value == nil {
		return
	}
	values, freshness := m.plane(at), m.plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.width+col
			if fresh[src] > 0 {
				values[dst], freshness[dst] = value[src]-d.base(in, src), fresh[src]
			}
		}
	}
}

// encodeEstimate draws an estimate and exp(-sigma), the trust in it: 1 for a
// perfect one, 0 for none at all.
func encodeEstimate(m image, at int, in *Inputs, estimate, sigma []float32) {
	if estimate == nil {
		return
	}
	values, trust := m.plane(at), m.plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.width+col
			if in.Sea[src] && finite(estimate[src]) {
				values[dst] = estimate[src]
				trust[dst] = float32(math.Exp(-float64(sigma[src])))
			}
		}
	}
}

func encodeSeason(m image, at, dayOfYear int) {
	if dayOfYear == 0 {
		return
	}
	sin, cos := math.Sincos(2 * math.Pi * float64(dayOfYear) / 365.25)
	for i := range m.plane(at) {
		m.plane(at)[i], m.plane(at + 1)[i] = float32(sin), float32(cos)
	}
}
