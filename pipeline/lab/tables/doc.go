// Package tables makes the tables of an evaluation: it trains what a table
// lists, asks all of it about the same overlays, and writes results.json,
// results.md and pictures.
//
// A Table is data: a list of Rows, each a method and, where it is a network,
// how that is trained. Run does one row after the other, for every seed.
//
//	Table ──Run──▶ network (trained once, kept) ──▶ evaluate.Exam ──▶ record (kept) ──▶ results, pictures
//
// Everything that is finished is kept in the folder of the run under a name
// that is the sha256 of what it depends on: data, split, overlays, row, budget
// and seed. A run that was killed goes on from there and writes the same
// results.json, byte for byte; a run with other settings shares what is the
// same. Several tables of one series may share the networks, the programs and
// the analyses that they have in common. All rows of a table see the same overlays, and those that are trained
// see the same days, patches and number of steps.
//
// Package tables knows nothing of granule files, model stores or terminals: a
// series, an engine and the files of a champion come from the caller, and
// progress is told to a function.
package tables
