// Package baselines holds what the tables compare Lacuna with and nothing else
// uses: the samplers of the paper on a one-step imputer, DINDiff, and MissDiff,
// which learns from all that is observed without a partition. Strategies
// that a version may be trained with are in packages partition and prior, and
// classical methods in package evaluate.
package baselines
