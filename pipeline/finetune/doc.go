// Package finetune makes a new version of a model and decides whether it may
// replace the one that serves.
//
// Make takes a series of days and, where there is one, the version to begin
// from, and goes through the phases
//
//	prior ──▶ strength ──▶ imputer ──▶ members, reliability ──▶ calibration ──▶ gate
//
// Its Outcome holds the bytes of every part of the version and the decision
// with its reasons. The gate asks challenger and champion about the same
// overlays of the same held-out days, each with the scaling and the
// calibration that were stored with it, so that what is judged is what would
// serve.
//
// Three things are guaranteed. What trains is a samples.Train: no held-out day
// reaches a weight. The same request gives the same weights. And with a
// checkpoint folder a run that was killed at any moment goes on from there and
// ends with the weights of a run that was not. (The exception to the last two
// is a pool of partitions that is paced by the clock, as on a GPU: two runs then
// differ as two seeds do.)
//
// The days may be of several seas on grids of their own. Each keeps its own mean
// map and spread, so what the networks learn belongs to none of them, and the
// version has no scaling: where it serves, that place learns its own.
//
// Package finetune writes nothing but the checkpoint folder that it is given.
// It knows nothing of model stores, cards, granule files or of when a training
// is due.
package finetune
