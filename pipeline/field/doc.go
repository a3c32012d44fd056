// Package field holds one satellite map of the ocean and the arithmetic on it.
//
// A Field is a row-major grid of physical values with a time and a sea mask.
// A gap is NaN, in every slice of this package and of its callers; there is
// no second mask that could disagree with it. Row i, column j of an H×W field
// is element i*W+j, rows follow Grid.Lat and columns Grid.Lon in the order of
// the file they came from, so nothing is ever flipped on the way to the
// product.
//
// Package field is pure: no file, clock, log or goroutine. It knows nothing
// of NetCDF, of models or of where a field came from. Wrong lengths are the
// caller's bug and panic; bad data are errors.
package field
