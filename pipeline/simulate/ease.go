package simulate

import "math"

// easeLatitudes returns the latitudes of n rows of equal area between the
// edges of the global EASE-Grid 2.0 (EPSG:6933), from the north. 584 rows are
// those of the 25 km grid.
//
// The grid is a cylindrical equal-area projection of the WGS84 ellipsoid with
// true scale at 30 degrees; northing y and authalic function q of the latitude
// are tied by y = a q / (2 k0) (M. Brodzik and others, EASE-Grid 2.0, ISPRS
// Int. J. Geo-Inf. 1, 2012).
func easeLatitudes(n int) []float64 {
	lat := make([]float64, n)
	for i := range lat {
		y := easeNorthM * (1 - 2*(float64(i)+0.5)/float64(n))
		lat[i] = easeLatitude(y)
	}
	return lat
}

const (
	wgs84A = 6378137.0
	wgs84E = 0.0818191908426 // eccentricity
	// easeNorthM is the upper edge of the grid: 292 cells of 25025.26 m.
	easeNorthM = 292 * 25025.26
)

// easeLatitude returns the latitude, in degrees, of a northing in metres.
func easeLatitude(y float64) float64 {
	const e2 = wgs84E * wgs84E
	sin30 := 0.5
	k0 := math.Sqrt(3) / 2 / math.Sqrt(1-e2*sin30*sin30)
	want := 2 * y * k0 / wgs84A
	low, high := -math.Pi/2, math.Pi/2
	for range 60 { // bisection: to the last bit
		middle := (low + high) / 2
		if authalic(math.Sin(middle)) < want {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2 * 180 / math.Pi
}

func authalic(s float64) float64 {
	const e = wgs84E
	return (1 - e*e) * (s/(1-e*e*s*s) - math.Log((1-e*s)/(1+e*s))/(2*e))
}
