// Package learn trains the networks of package impute: the imputer, its members
// and the classifier of its reliability.
//
// They learn from gappy days alone: a Source cuts the observed cells of a patch
// in two, the network sees the context and is scored on the query.
//
//	Source ──Lesson──▶ train.Task ──Trainer──▶ impute.Model, Members, Reliability
//
// Lesson n is a function of n, the data, the config and its seed, so that
// package train makes the same network of them whatever interrupts it.
//
// Package learn touches no file, and knows nothing of physical units, model
// stores or scores, nor of how the loop of a training goes or masks are drawn:
// package train runs the tasks, and a Source brings the partitions.
package learn
