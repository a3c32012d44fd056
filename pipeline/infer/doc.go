// Package infer turns gappy fields into analyses: a value, an uncertainty and
// a flag for every cell.
//
// A Scene is a granule with its neighbouring days; a Filler applies one method
// to it. The guarantees are the product's: an observed cell keeps its value and
// has no flag, land is never filled, a filled cell is flagged and has a finite
// value and uncertainty, and a cell that cannot be reconstructed is flagged
// instead of filled. The same scene gives the same analysis.
//
// The method model fills with the networks of a Model:
//
//	scene ──▶ anomalies, composites, optimal interpolation ──▶ windows ──▶ imputer ──▶ mean, sigma
//	                                                              └──────▶ members ──▶ ensemble
//
// A basin that fits goes through as one window; a larger one is cut into
// windows that overlap and are blended, members at every step of their
// sampler, so that the windows agree. Windows without a gap are left out.
// Observations beyond a window reach it by way of the optimal interpolation,
// which is made of the whole basin at once: it is the coarse pass on which the
// networks build, and it fills gaps larger than a window. The analysis depends
// on the scene, the model, the seed, the engine and the size of the windows,
// and not on the number of workers; on a processor not on batches either.
// Values under the mask or on land never reach a network.
//
// Means are taken in the space of the transform. For log10 the published value
// is therefore the median of the distribution, not its mean.
//
// Package infer knows nothing of files, ledgers or Kafka. Which neighbouring
// days a scene may see is the caller's decision up to the window of the
// Config, which a Filler never looks beyond.
package infer
