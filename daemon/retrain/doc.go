// Package retrain is the training service: it decides when the model of a
// dataset is trained anew, has that done by a process of its own, and promotes
// or refuses the new version.
//
//	Scheduler ──lacuna train───▶ Training     a version, its card, promoted or refused
//	    │     ──lacuna drift───▶ Measurement  how far days have moved from the champion's
//	    ▲     ──lacuna shadow──▶ Measurement  a version that won, on days that it has not seen
//	    └────────Event, a JSON line each───────┘
//
// A Scheduler runs in the daemon. It checks the triggers, starts the process,
// pauses it while a granule is filled, and keeps its jobs in files of its
// folder. Training and Measurement run in that process, or in the command of a
// person.
//
// What it guarantees: a version is in the store whole or not at all, and serves
// only if it won and the policy lets it. A training that is killed at any
// moment is resumed by the same request, from its checkpoints, and ends with
// the same version, card and decision, which are written once. A version that
// lost stays in the store with the reasons. No process is left behind by a
// Scheduler that ends, and a training that fails again and again is given up
// until the next trigger.
//
// What it does not know: the ledger, of which it asks two questions (Ledger);
// how granules are read, which the caller does (Data) or the arguments of the
// process say (Dataset); flags, terminals and exit statuses; the daemon itself.
package retrain
