// Package impute fills the gaps of a day of sea with trained networks.
//
// A Model predicts the clean field and its standard deviation from what is
// visible of a day and, where there is any, from the days around it. Members
// draw fields that could be the truth about its prediction, Reliability says
// where it was taught to fill, and a Calibration what its sigma is worth.
//
//	Surroundings ──▶ Inputs ──Model.Predict──▶ mean, sigma ──Members.Draw──▶ ensemble
//
// Two things are guaranteed. Nothing but the visible cells of the target day
// reaches a network: what lies under the mask may be NaN or 1e6 and the answer
// is the same, bit for bit. And visible cells come out as they went in.
//
// Package impute works in the normalised anomalies of package samples. It
// touches no file, and knows nothing of physical units, model stores or scores,
// nor of how a network is trained: that is package learn.
package impute
