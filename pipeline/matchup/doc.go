// Package matchup holds measurements in the sea against maps: each is paired with
// the cell nearest to it in the map nearest in time, within a distance and a
// duration, and the pairs are scored.
//
// A platform counts once a day. What a buoy or a ship measured while one map
// holds is one pair of medians, apart for cells that were observed and cells that
// were filled: a thousand readings of an hour are not a thousand tests of a map.
// Where no platform is told, a cell stands for one.
//
// Differences are product less measurement, in the space of the product: of the
// decimal logarithm where errors are log-normal.
//
// Package matchup knows neither files of products nor pictures; tables it reads
// from a stream.
package matchup
