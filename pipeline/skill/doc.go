// Package skill says how good a filled map is: errors, texture, calibration
// and scale, on pixels whose truth was hidden from the method.
//
// Scores takes one Sample after the other and yields a Summary. A sample is a
// day of which another day's gaps hide a part; the hidden part is scored. All
// numbers are in the normalised units of the sample unless their name says
// physical. A Summary never holds NaN: a score that the samples cannot give is
// absent, so a Summary can always be written as JSON. Rule decides from two
// summaries and a paired bootstrap whether a challenger replaces the champion.
//
// The same samples in the same order give the same bytes: random draws come
// from a seed, and ties are shared out, not tossed for.
//
// Package skill is pure: no file, clock, log or goroutine. It knows nothing of
// methods, of files or of how a sample was hidden; whether the hidden values
// leaked to the method is for the caller to prevent. Wrong lengths are the
// caller's bug and panic; bad data are errors.
package skill
