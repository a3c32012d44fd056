// Package covariate brings other variables to the days and the grid of a dataset, and
// finds out what they say of it.
//
// A covariate is a map for every day: another variable such as temperature, the
// magnitude of its gradient, or a map that stays. Its anomalies, less a smooth mean map
// as those of the variable itself, are the inputs of a ridge regression. What the
// regression explains is the drift of a day (classical.Frame), which optimal
// interpolation leaves out and adds again. Coefficients come from days that learn; which
// covariates are used is decided on days that choose, by the error of optimal
// interpolation with and without each: none is used that does not pay.
//
// A network sees covariates as further inputs; Keep decides by the same rule which of
// them it uses.
//
// All of it is pure: no file, clock, log or network. Which maps a near-real-time product
// may know of is decided by Nearest; where they come from is up to the caller.
package covariate
