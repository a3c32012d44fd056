// Package input reads the data and the model that flags name: granules or packed
// days become a series, a method or a version becomes a filler.
//
// A file that was named and cannot be read is an error; one that was found in a
// folder is left out with a note on standard error. A model is opened with its
// engine, and both are closed together.
//
// It does not know what the data are for: training, judging and filling are up
// to the commands that import it.
package input
