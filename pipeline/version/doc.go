// Package version makes a new version of a model: learned, calibrated, judged
// against the one that serves, with everything that its card says of it.
//
// Make takes series of days and goes through the phases
//
//	prior ──▶ strength ──▶ imputer ──▶ members, reliability ──▶ calibration ──▶ gate
//
// Its Outcome holds the bytes of every part of the version, the evaluation and
// the decision with its reasons. The gate asks challenger and champion about the
// same overlays of the days that judge, each with the scaling and the
// calibration that were stored with it: both are judged as they would serve.
//
// A training from scratch and a fine-tune are the same request without a parent
// and with one. With a parent, networks begin with its weights, its prior is
// kept while masks have not drifted, and new days are learned from more often
// than old ones (Replay). Settings.From shortens the training accordingly.
//
// Days are used as their calendar says: networks learn from days that learn, days
// that choose end trainings and calibrate, and days that judge reach the gate and
// nothing else. No day judges that an ancestor has learned from or was chosen by.
//
// Where the level of the data changed, as with another sensor, the days before are
// brought to the level of now (samples.Level), and the gate looks at the days since by
// themselves, too.
//
// Three things are guaranteed. Networks learn from a samples.Train alone: no
// held-out day reaches a weight. The same request gives the same weights. And with a
// checkpoint folder a run that was killed at any moment goes on from there and
// ends with the weights of a run that was not. (The exception to the last two
// is a pool of partitions that is paced by the clock, as on a GPU: two runs then
// differ as two seeds do.)
//
// The days may be of several seas on grids of their own. Each keeps its own mean
// map and spread, so that the networks belong to none of them, and the version
// has no scaling: where it serves, that place learns its own.
//
// Package version writes nothing but the checkpoint folder that it is given.
// It knows nothing of model stores, the file that a card is written to, granule
// files or of when a training is due.
package version
