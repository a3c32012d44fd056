// Package classical fills gaps with methods that need no training: the smooth
// mean of a window of days, persistence of the last observation, and optimal
// interpolation in space and time.
//
// They are the baselines that a network has to beat, the background it may
// build on, and the fallback of the product while no model exists. Every method
// gives a mean and a standard deviation for each sea cell. A method uses the
// Series it is given and nothing else: whether an analysis is near-real-time or
// delayed is decided by the frames that the caller puts in. The same input gives
// the same bytes on any number of workers.
//
// Package classical is pure: no file, clock, log or network. It knows nothing
// of units, logarithms or products: values are in whatever space the caller
// averages in. Coasts do not stop its correlations: two basins on either side
// of an isthmus are as close as their distance says.
package classical
