package geo

import (
	"errors"
	"fmt"
	"math"
)

// A Projection is a map projection with its parameters.
type Projection interface {
	// Place returns the latitude and the longitude, in degrees, of the point with
	// the coordinates y and x: metres, or degrees of a rotated grid.
	Place(y, x float64) (lat, lon float64)
	// Project returns the coordinates of a place. It is the inverse of Place.
	Project(lat, lon float64) (y, x float64)
}

// The projections, as the attribute grid_mapping_name calls them.
const (
	PolarStereographic = "polar_stereographic"
	RotatedPole        = "rotated_latitude_longitude"
)

// ErrUnknown marks a projection that this package does not have.
var ErrUnknown = errors.New("its projection is not known")

// Of returns the projection of a CF grid mapping. The attributes that are
// numbers come by their names; the first number where one has several.
func Of(name string, attr func(name string) (float64, bool)) (Projection, error) {
	switch name {
	case PolarStereographic:
		return polarOf(attr)
	case RotatedPole:
		return rotatedOf(attr)
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
}

const radians = math.Pi / 180

// turned returns a longitude in [-180, 180).
func turned(lon float64) float64 {
	lon = math.Mod(lon+180, 360)
	if lon < 0 {
		lon += 360
	}
	return lon - 180
}

// or returns an attribute, or a default where there is none.
func or(attr func(string) (float64, bool), name string, otherwise float64) float64 {
	if v, ok := attr(name); ok {
		return v
	}
	return otherwise
}

// An ellipsoid is the figure of the Earth.
type ellipsoid struct{ a, e float64 } // semi-major axis in metres, eccentricity

// ellipsoidOf returns the figure that the attributes describe, WGS 84 where they
// say nothing.
func ellipsoidOf(attr func(string) (float64, bool)) (ellipsoid, error) {
	if r, ok := attr("earth_radius"); ok {
		return checked(ellipsoid{a: r})
	}
	flattening := 1 / 298.257223563
	a, given := attr("semi_major_axis")
	if !given {
		a = 6378137
	}
	if b, ok := attr("semi_minor_axis"); ok {
		flattening = (a - b) / a
	} else if inverse, ok := attr("inverse_flattening"); ok {
		flattening = 0 // CF: an inverse flattening of 0 is a sphere
		if inverse != 0 {
			flattening = 1 / inverse
		}
	}
	return checked(ellipsoid{a: a, e: math.Sqrt(flattening * (2 - flattening))})
}

func checked(f ellipsoid) (ellipsoid, error) {
	if !(f.a > 0) || math.IsInf(f.a, 0) || !(f.e >= 0 && f.e < 1) {
		return f, fmt.Errorf("the figure of the Earth has a semi-major axis of %g m and an eccentricity of %g", f.a, f.e)
	}
	return f, nil
}

// Rotated is a sphere whose poles were moved: coordinates are latitudes and
// longitudes about other poles, in degrees.
type Rotated struct {
	PoleLat, PoleLon float64 // where the north pole of the grid lies
	Turn             float64 // longitude of the grid at which the true north pole lies
}

func rotatedOf(attr func(string) (float64, bool)) (Projection, error) {
	lat, known := attr("grid_north_pole_latitude")
	lon, also := attr("grid_north_pole_longitude")
	if !known || !also {
		return nil, errors.New("grid_north_pole_latitude or grid_north_pole_longitude is missing")
	}
	if !(math.Abs(lat) <= 90) || !(math.Abs(lon) <= 360) {
		return nil, fmt.Errorf("the north pole of the grid is at %g°N, %g°E", lat, lon)
	}
	return Rotated{PoleLat: lat, PoleLon: lon, Turn: or(attr, "north_pole_grid_longitude", 0)}, nil
}

// Place implements Projection.
func (r Rotated) Place(y, x float64) (lat, lon float64) {
	lat, lon = turnSphere(y, x-r.Turn, r.PoleLat)
	return lat, turned(r.PoleLon + lon)
}

// Project implements Projection.
func (r Rotated) Project(lat, lon float64) (y, x float64) {
	y, x = turnSphere(lat, lon-r.PoleLon, r.PoleLat)
	return y, turned(x + r.Turn)
}

// turnSphere returns a place about a pole that lies at a latitude on the meridian
// 0, by longitudes from the meridian that has the old pole: it is its own inverse.
func turnSphere(lat, lon, pole float64) (y, x float64) {
	sinPole, cosPole := math.Sincos(pole * radians)
	sinLat, cosLat := math.Sincos(lat * radians)
	sinLon, cosLon := math.Sincos(lon * radians)
	up := cosPole*cosLat*cosLon + sinPole*sinLat
	return math.Asin(min(max(up, -1), 1)) / radians,
		math.Atan2(-cosLat*sinLon, cosPole*sinLat-sinPole*cosLat*cosLon) / radians
}
