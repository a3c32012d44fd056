// Package learn trains the networks of a version: the mask prior of package
// prior, and the imputer of package impute with its members and the classifier
// of its reliability.
//
// The prior learns from the masks of days alone. The others learn from gappy
// days: a Source cuts the observed cells of a patch in two, the network sees the
// context and is scored on the query.
//
//	masks ──TrainPrior──▶ train.Task ──────────────────▶ prior.Model
//	Source ──Example──▶ Trainer ──▶ train.Task ──▶ impute.Model, Members, Reliability
//
// Example n is a function of n, the data, the config and its seed, so that
// package train makes the same network of them whatever interrupts it.
//
// Package learn touches no file, and knows nothing of physical units or model
// stores, nor of the loop of a training or how masks are drawn: package train
// runs the tasks, and a Source brings the partitions.
package learn
