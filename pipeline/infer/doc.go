// Package infer turns gappy fields into analyses: a value, an uncertainty and
// a flag for every cell.
//
// A Scene is a granule with what is known around it; a Filler applies one
// method to it. The guarantees are the product's: an observed cell keeps its
// value and has no flag, land is never filled, a filled cell is flagged and
// has a finite value and uncertainty, and what cannot be said is flagged
// instead of invented. The same scene gives the same analysis.
//
// Package infer knows nothing of files, ledgers or Kafka. Which neighbouring
// days a scene may see is the caller's decision up to the window of the
// Config, which a Filler never looks beyond.
package infer
