// Package tables makes the tables of an evaluation: it trains the networks of a
// table, scores all its rows on the same overlays, and writes results.json,
// results.md and pictures. The rows reproduce the comparisons of
// *Observation-Aligned Mask Priors for Learning Physical Dynamics from Authentic
// Occlusions* (Ma, Zhou, Yu; "the paper" below) and add our own.
//
// A Table is data: a list of Rows, each a method and, where it is a network,
// how that is trained. Run does one row after the other, for every seed.
//
//	Table ──Run──▶ network (trained once, kept) ──▶ evaluate.Exam ──▶ record (kept) ──▶ results, pictures
//
// Finished networks and records are kept in the folder of the run under the
// sha256 of everything they depend on: data, split, overlays, row, budget and
// seed. A run that was killed goes on from there and writes the same
// results.json, byte for byte; a run with other settings shares the files that
// do not depend on them. Several tables of one series may share networks,
// programs and analyses. All rows of a table see the same overlays, and all
// trainings the same days, patches and number of steps.
//
// Package tables knows nothing of granule files, model stores or terminals: a
// series, an engine and the files of a champion come from the caller, and
// progress is reported to a function.
package tables
