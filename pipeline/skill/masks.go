package skill

import (
	"slices"

	"lacuna/pipeline/field"
)

// GapStats describes the gaps of one mask. A gap is a set of sea cells without
// observation that are connected by their sides.
type GapStats struct {
	Sea         int     `json:"sea"`          // cells
	Coverage    float64 `json:"coverage"`     // share of the sea that was observed; 0 without sea
	Gaps        int     `json:"gaps"`         // number of gaps
	MeanSize    float64 `json:"mean_size"`    // cells
	MedianSize  float64 `json:"median_size"`  // cells
	LargestSize int     `json:"largest_size"` // cells
	// TypicalSize is the mean size of a gap weighted by its cells, so that one
	// large gap counts more than a thousand specks.
	TypicalSize float64 `json:"typical_size"`
}

// DescribeGaps returns the statistics of the gaps that observed leaves in the
// sea. A nil sea means that every cell is sea.
func DescribeGaps(observed, sea field.Mask, height, width int) GapStats {
	sizes := GapSizes(observed, sea, height, width)
	g := GapStats{Gaps: len(sizes)}
	seen := 0
	for c, o := range observed {
		if sea == nil || sea[c] {
			g.Sea++
			if o {
				seen++
			}
		}
	}
	if g.Sea > 0 {
		g.Coverage = float64(seen) / float64(g.Sea)
	}
	if len(sizes) == 0 {
		return g
	}
	cells, squares := 0, 0.0
	for _, n := range sizes {
		cells += n
		squares += float64(n) * float64(n)
	}
	g.MeanSize = float64(cells) / float64(len(sizes))
	g.TypicalSize = squares / float64(cells)
	g.LargestSize = sizes[len(sizes)-1]
	half := len(sizes) / 2
	g.MedianSize = float64(sizes[half])
	if len(sizes)%2 == 0 {
		g.MedianSize = float64(sizes[half-1]+sizes[half]) / 2
	}
	return g
}

// GapSizes returns the sizes of all gaps in cells, in ascending order.
func GapSizes(observed, sea field.Mask, height, width int) []int {
	if len(observed) != height*width || (sea != nil && len(sea) != len(observed)) {
		panic(badLength)
	}
	open := make(field.Mask, len(observed)) // missing cells that belong to no gap yet
	for c := range open {
		open[c] = !observed[c] && (sea == nil || sea[c])
	}
	var sizes, stack []int
	for c := range open {
		if !open[c] {
			continue
		}
		open[c] = false
		stack = append(stack[:0], c)
		size := 0
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			size++
			for _, next := range sides(at, height, width) {
				if next >= 0 && open[next] {
					open[next] = false
					stack = append(stack, next)
				}
			}
		}
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	return sizes
}

// sides returns the four neighbours of a cell, -1 where the grid ends.
func sides(c, height, width int) [4]int {
	out := [4]int{-1, -1, -1, -1}
	row, col := c/width, c%width
	if row > 0 {
		out[0] = c - width
	}
	if row < height-1 {
		out[1] = c + width
	}
	if col > 0 {
		out[2] = c - 1
	}
	if col < width-1 {
		out[3] = c + 1
	}
	return out
}
