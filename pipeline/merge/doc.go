// Package merge makes one field of the fields that several sources have of a day:
// sensors, near-real-time and reprocessed archives, mirrors.
//
// Sources differ by a bias and by their errors. Both are fitted from the cells that
// two sources saw on the same day, a summary a day (Summarize), robustly, so that
// neither bad cells nor bad days count for much:
//
//	bias     median of the differences, and of the days
//	sum      variance of the differences: σa² + σb²
//	diff     variance of a about a past background, less that of b: σa² - σb²
//
// The background is common to both and its error falls out of diff, so sum and diff
// give both variances: the three-cornered hat, with the past as the third sensor.
// A fit (Record.Fit) goes from all days to the season and from there to regions of
// the grid, each as far as its days suffice, and between the centres of regions
// biases change linearly, so that no border shows in a map. It sees no day after
// the one that it is for.
//
// Merge corrects every source to the first, the reference, and gives each cell to
// the source with the least error there; between equals the order of the sources
// decides. Cells of the reference keep their numbers.
//
// Package merge does not know files, units or archives: fields come on one grid, in
// the space in which their errors are additive.
package merge
