// Package compiled keeps what XLA compiles, so that a network is compiled once on a
// machine and not once in each process: on an H200 that is a minute of a fine-tune, and
// ten seconds before the first product.
//
// A plug-in of XLA is a table of functions. Load hands its Go binding a copy of that
// table in which one function is ours: it looks into a folder before it compiles, and
// puts there what had to be compiled. A program is known by all that its code depends
// on: the program and the options, the plug-in, the driver, the kind of card and the
// flags of XLA. A file that is damaged, or that others may change, is not used.
//
// Package compiled knows nothing of networks or of GoMLX. It declares the few parts of
// the plug-in's interface that it needs by itself, and a test holds them against the
// header of the binding: that interface only ever grows at its end.
package compiled
