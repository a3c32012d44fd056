// Package partition splits the observed cells of a map into context, which an
// imputer sees, and query, which it must reconstruct.
//
//	Strategy ──Partition──▶ Parts ──NewPool──▶ Pool
//	    └──DrawQueries──▶ QueryMap: P(query) of each cell
//
// The strategies here need no model: Pixel and Block as in the literature,
// Saliency by steepness, Coherent by a smooth random field and Empirical by the
// gaps of other days. Package prior has those that draw masks from a network.
//
// Everything drawn depends on the address of its noise alone: the same patches
// and stream give the same parts, and an item does not depend on its neighbours
// in a batch. Only which parts a Pool has ready depends on the clock, unless it
// is paced by count. Strategies that claim a partition keep it for every draw:
// context and query are disjoint, neither is empty, and together they are the
// observed cells.
//
// Package partition does not know the values of a map, except for the strategy
// that looks for steep places, nor the imputer that learns from the parts.
package partition
