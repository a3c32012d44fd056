// Package chart draws the pictures of an evaluation: maps side by side, sheets
// of masks, errors against distance, spectra, rank histograms and maps of
// probability.
//
// Each picture is a struct of plain slices with a Draw method that returns an
// image, and nothing else happens; WritePNG stores one so that a reader never
// sees half a file. Every picture has a title, labelled axes with units and,
// where colours stand for values, a colour bar. Colours are spaced evenly to
// the eye, so equal steps of the value look like equal steps. Land is grey,
// gaps are white, and north is up whichever way the rows run. The
// same input gives the same pixels.
//
// Package chart knows nothing of methods, scores or files other than the PNG it
// writes; the truth of a picture is the caller's business. Wrong lengths are the
// caller's bug and panic.
package chart
