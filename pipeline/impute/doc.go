// Package impute fills the gaps of a day of sea with trained networks.
//
// A Model, the imputer of *Observation-Aligned Mask Priors for Learning Physical
// Dynamics from Authentic Occlusions* (Ma, Zhou, Yu), predicts the clean field
// and its standard deviation from the visible cells of a day and from the days
// around it, if there are any. Members draw equally likely fields about its
// prediction, Reliability tells where it was taught to fill, and a Calibration
// corrects its sigma.
//
//	Surroundings ──▶ Inputs ──Model.Predict──▶ mean, sigma ──Members.Draw──▶ ensemble
//
// Two things are guaranteed. Nothing but the visible cells of the target day
// reaches a network: values under the mask may be NaN or 1e6 and the answer is
// the same, bit for bit. And visible cells come out as they went in.
//
// Package impute works in the normalised anomalies of package samples. It
// touches no file, and knows nothing of physical units, model stores or scores,
// nor of how a network is trained: that is package learn.
package impute
