// Package noise makes random numbers that depend on nothing but their address.
//
// An address is a seed, a stream and an index: "the noise of granule 17,
// member 3" is the same numbers in any batch, order, process or engine. The
// numbers come from the counter-based generator
// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As
// Easy as 1, 2, 3 (SC11), which has no state to carry along: block n of a
// sequence is a function of n.
//
// Two addresses of one stream never share a block. Two streams share one with
// the probability that two of their 64-bit keys are equal.
//
// Package noise is pure and safe for concurrent use. It knows nothing of
// fields, networks or schedules, and it is no source of secrets.
package noise
