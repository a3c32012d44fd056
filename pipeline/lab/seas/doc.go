// Package seas judges a network on seas that it never saw. It takes one sea out,
// trains on the days of all others, and compares the network with optimal
// interpolation on the days of the sea that was left out, as a stranger to whom
// the network is given would find it:
//
//	packs ──▶ seas ──learn days of the others──▶ networks ──▶ judge days of the sea left out ──▶ results.jsonl, results.md
//	                └─choose days of the others──▶ calibration ──┘
//
// A day of a sea is for learning, for choosing or for judging, whichever sea is
// left out. A sea that is left out lends a network nothing: its values reach no
// weight and no calibration. Its own mean map and spread come from its days that
// are not judged.
//
// The analyses of a context do not depend on the sea that is left out. They are
// made once for all trainings and kept in a file of the work folder, with the
// networks, their checkpoints and the records that are done, so that a run that
// was stopped goes on.
//
// A network departs from optimal interpolation. How far it should be followed on
// a new sea is measured too: the error for every share of the departure, and for
// the share that the sea's own earlier judged days would have given.
//
// Package seas reads packs and touches no granule and no model store.
package seas
