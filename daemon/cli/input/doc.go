// Package input reads what flags name: granules or packed days as a series, and
// the method or model that fills.
//
// A file that was named and cannot be read is an error; one that was found in a
// folder is left out with a note on standard error. A model is opened with its
// engine, and both are closed together.
//
// It does not know what the data are for: training, judging and filling are up
// to the commands that import it.
package input
