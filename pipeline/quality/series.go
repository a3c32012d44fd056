package quality

import (
	"slices"

	"lacuna/pipeline/field"
)

// blockFrames is how many frames of a series are judged together, and contextFrames
// how many before and after them take part: a climatology of more would be one of
// other seasons.
const (
	blockFrames   = 45
	contextFrames = 15
)

// ScreenSeries judges the frames of a long series, a block after the other, each
// with the frames around it, and calls refuse with the verdict of each frame.
func (t Tests) ScreenSeries(s Scene, refuse func(frame int, v Verdict)) {
	order := make([]int, len(s.Frames))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.Frames[a].Time.Compare(s.Frames[b].Time) })
	for first := 0; first < len(order); first += blockFrames {
		last := min(first+blockFrames, len(order))
		from, to := max(first-contextFrames, 0), min(last+contextFrames, len(order))
		block := s
		block.Frames = nil
		for _, i := range order[from:to] {
			block.Frames = append(block.Frames, s.Frames[i])
		}
		verdicts := t.Screen(block)
		for k := first; k < last; k++ {
			refuse(order[k], verdicts[k-from])
		}
	}
}

// Refuse makes gaps of the refused cells of a field and marks them. It changes
// values and rejected.
func (v Verdict) Refuse(values []float32, rejected field.Mask) {
	for i, cause := range v {
		if cause != Passed {
			values[i], rejected[i] = field.NaN(), true
		}
	}
}
