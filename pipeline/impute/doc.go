// Package impute fills the gaps of a day of sea: it trains the networks that
// do, and applies them.
//
// A Model predicts the clean field and its standard deviation from what is
// visible of a day and, where there is any, from the days around it. It learns
// from gappy days alone: a Source cuts the observed cells of a patch in two,
// the network sees the context and is scored on the query.
//
//	Source ──Lesson──▶ train.Task ──Train──▶ Model ──Predict──▶ mean, sigma
//	                                └──────▶ Members ──Draw──▶ ensemble
//
// Three things are guaranteed. Nothing but the visible cells of the target day
// reaches a network: what lies under the mask may be NaN or 1e6 and the answer
// is the same, bit for bit. Visible cells come out as they went in. And lesson n
// is a function of n, the data, the config and its seed, so that package train
// makes the same network of them whatever interrupts it.
//
// Package impute works in the normalised anomalies of package samples. It
// touches no file, and knows nothing of physical units, model stores or scores,
// nor of how a network is trained or masks are drawn: package train runs the
// tasks, and a Source brings the partitions.
package impute
