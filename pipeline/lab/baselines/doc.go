// Package baselines holds methods that only the tables use, for comparison with
// Lacuna: the samplers of *Observation-Aligned Mask Priors for Learning Physical
// Dynamics from Authentic Occlusions* (Ma, Zhou, Yu) on a one-step imputer,
// DINDiff, and MissDiff, which learns from all observations without a partition.
// Strategies that a version may be trained with are in packages partition and
// prior, and classical methods in package evaluate.
package baselines
