// Package quality finds observations that should not be used, and the cells of a
// day that are under ice.
//
// Tests judges the fields of a scene with one another: the range that the
// climatology of a place allows, the edges of gaps, where thin cloud passes for
// sea, and spikes. Each test is off or on by itself. A Verdict says of every cell
// which test refused it; callers make gaps of those cells, fill them, and score
// nothing by them. Ice says which cells have more ice than water.
//
//	fields, sea mask, climatology ──▶ range ──▶ edge ──▶ spike ──▶ Verdict
//
// A field is judged by the fields of the scene only, so that a caller who leaves
// out later days gets a verdict of near real time.
//
// Package quality is pure. It knows nothing of files, of granules or of methods
// that fill.
package quality
