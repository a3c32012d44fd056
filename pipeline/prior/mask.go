package prior

import (
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// A Mask is which cells of a place were observed, or could have been by a draw
// of a prior.
type Mask struct {
	Place
	Observed []bool
}

// MaskOf returns the mask of a patch.
func MaskOf(p samples.Patch) Mask { return Mask{Place: PlaceOf(p), Observed: p.Observed()} }

// MasksAt puts drawn masks to their places.
func MasksAt(places []Place, drawn [][]bool) []Mask {
	out := make([]Mask, len(drawn))
	for i, m := range drawn {
		out[i] = Mask{Place: places[i], Observed: m}
	}
	return out
}

// masksOf returns the masks of patches, with the day before them where the
// network looks at it.
func (m *Model) masksOf(patches []samples.Patch) []Mask {
	out := make([]Mask, len(patches))
	for i, p := range patches {
		out[i] = Mask{Place: m.Place(p), Observed: p.Observed()}
	}
	return out
}

// coverage returns the share of the sea that is observed, NaN without sea.
func (m Mask) coverage() float64 {
	return float64(field.Mask(m.Observed).Count()) / float64(field.Mask(m.Sea).Count())
}

// miss returns the sum over sea of the squared distance between the truth and
// the probability of "observed".
func (m Mask) miss(observed []float32) float64 {
	sum := 0.0
	for i, sea := range m.Sea {
		if sea {
			d := indicator(m.Observed[i]) - float64(observed[i])
			sum += d * d
		}
	}
	return sum
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
