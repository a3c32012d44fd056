// Package train trains a network, whatever its purpose: one loop, one loader,
// one checkpoint, one progress and one report.
//
// A Task is a layout of weights, a loss, and a Filler that writes numbered
// examples into a Batch. A Step is its compiled form: it holds
// the weights, their moving average and the moments of Adam in the memory of
// its engine, and one execution of its graph is loss, gradient, clipping,
// schedule, Adam and average. Run repeats it.
//
//	Filler ──examples──▶ loader ──batches──▶ Step ──Progress──▶ Hooks ──Score──▶ best weights
//	                                          └──state──▶ checkpoint ──▶ a later Run
//
// Three things are guaranteed. A run is a function of its task, its seed and its
// examples: on one engine the same give the same weights, bit for bit, whatever
// the number of workers. A run that was cancelled, killed or that
// failed goes on from its checkpoint as if it had not been interrupted; the file
// is written whole or not at all, and one of another task is refused. And a loss
// or gradient that is not finite leaves the state as it was before, and in the
// checkpoint.
//
// Package train knows nothing of datasets, masks or noise, nor of the purpose of
// the weights: examples come from the filler, and scores from Hooks.Score. The
// only file it touches is the checkpoint that Hooks names.
package train
