// Package geo knows the map projections that ocean grids are written in, by the
// names that CF gives them: polar_stereographic and rotated_latitude_longitude.
//
// A Projection turns the two coordinates of a grid into a latitude and a
// longitude, and back, to a millimetre.
//
// Package geo is pure. It knows neither files nor grids: a place is a pair of
// numbers.
package geo
