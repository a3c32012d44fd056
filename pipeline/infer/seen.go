package infer

import (
	"slices"

	"lacuna/pipeline/field"
)

// seen returns the cells that were observed on any day that the scene or the
// model knows, and nil where the scene does not say. A cell of the model's own
// grid whose P(query) is known was observed in its training.
func (f *Filler) seen(s Scene) field.Mask {
	if s.Seen == nil {
		return nil
	}
	seen := slices.Clone(s.Seen)
	n := len(seen)
	for _, of := range [][]field.Field{s.Frames, s.History} {
		for i, known := range field.EverObserved(n, of...) {
			seen[i] = seen[i] || known
		}
	}
	if f.model != nil && f.model.queryFits(s.Frames[0].Grid) {
		for i, p := range f.model.version.Query {
			seen[i] = seen[i] || p == p // not NaN
		}
	}
	return seen
}
