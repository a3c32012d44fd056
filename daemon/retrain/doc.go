// Package retrain is the training service. It makes versions of models, writes
// their cards, promotes or refuses them, and decides when that is to be done.
//
// A Training is the side of the process that trains: lacuna train prepares one
// and runs it. A Measurement is the same for the two comparisons that the daemon
// asks for: how far recent days have moved from those of the champion (drift),
// and whether a version that won is no worse on days that neither has seen
// (shadow). What such a process tells is an Event, a JSON line each.
//
// What it guarantees: a version is in the store whole or not at all, and serves
// only if it won and the policy lets it. A training that is killed at any moment
// is gone on with by the same request, from its checkpoints, and ends with the
// same version, card and decision, which are written once. A version that lost
// stays in the store with the reasons.
//
// What it does not know: how granules are read and what a dataset is configured
// to be, which the caller says in Data; flags, terminals and exit statuses; and
// the daemon itself.
package retrain
