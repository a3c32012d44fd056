// Package train turns a loss into a compiled training step and keeps the state
// that steps change.
//
// A Step holds the weights of a network, their moving average and the moments
// of Adam in the memory of its engine; one Run is one execution of one
// compiled graph: loss, gradient, clipping, schedule, Adam and average. Only
// the batch goes in and two numbers come out.
//
// A run is a function of the state, the batch and the config: on one engine the
// same seed and batches give the same bytes, and a run that was saved and
// restored goes on as if it had not been interrupted. A loss or gradient that
// is not finite leaves the state as it was before.
//
// Package train knows nothing of datasets, masks or noise: batches come from
// the caller. It does not write files; State encodes itself to any writer.
package train
