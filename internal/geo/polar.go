package geo

import (
	"errors"
	"fmt"
	"math"
)

// polar is the polar stereographic projection of an ellipsoid. Formulas and
// their numbers are those of Snyder, Map Projections: A Working Manual (1987),
// chapter 21.
type polar struct {
	figure                      ellipsoid
	side                        float64 // 1 about the north pole, -1 about the south pole
	meridian                    float64 // longitude that runs straight down, or up from the south pole
	scale                       float64 // metres from the pole where t is 1
	falseEasting, falseNorthing float64
}

func polarOf(attr func(string) (float64, bool)) (Projection, error) {
	figure, err := ellipsoidOf(attr)
	if err != nil {
		return nil, err
	}
	origin := or(attr, "latitude_of_projection_origin", math.NaN())
	if math.Abs(origin) != 90 {
		return nil, fmt.Errorf("latitude_of_projection_origin is %g, must be 90 or -90", origin)
	}
	p := polar{figure: figure, side: origin / 90, falseEasting: or(attr, "false_easting", 0), falseNorthing: or(attr, "false_northing", 0)}
	meridian, ok := attr("straight_vertical_longitude_from_pole")
	if !ok {
		meridian, ok = attr("longitude_of_projection_origin")
	}
	if !ok || !(math.Abs(meridian) <= 360) {
		return nil, errors.New("straight_vertical_longitude_from_pole is missing or no longitude")
	}
	p.meridian = meridian
	e := figure.e
	atPole := 2 * figure.a / math.Sqrt(math.Pow(1+e, 1+e)*math.Pow(1-e, 1-e)) // (21-33)
	parallel, given := attr("standard_parallel")
	switch {
	case given && math.Abs(parallel) < 90 && parallel*p.side > 0:
		sin, cos := math.Sincos(math.Abs(parallel) * radians)
		p.scale = figure.a * cos / math.Sqrt(1-e*e*sin*sin) / figure.t(math.Abs(parallel)) // (14-15), (21-34)
	case given && parallel != 90*p.side:
		return nil, fmt.Errorf("standard_parallel is %g, which is not on the side of the pole at %g", parallel, origin)
	default:
		p.scale = atPole * or(attr, "scale_factor_at_projection_origin", 1)
	}
	if !(p.scale > 0) || math.IsInf(p.scale, 0) {
		return nil, errors.New("its scale is not a positive number")
	}
	return p, nil
}

// t is the tangent of half the conformal colatitude (15-9).
func (f ellipsoid) t(lat float64) float64 {
	es := f.e * math.Sin(lat*radians)
	return math.Tan((45-lat/2)*radians) / math.Pow((1-es)/(1+es), f.e/2)
}

// latitude is the inverse of t (7-9). Each turn of the loop leaves a 150th of the
// error.
func (f ellipsoid) latitude(t float64) float64 {
	lat := math.Pi/2 - 2*math.Atan(t)
	for range 8 {
		es := f.e * math.Sin(lat)
		lat = math.Pi/2 - 2*math.Atan(t*math.Pow((1-es)/(1+es), f.e/2))
	}
	return lat / radians
}

// Place implements Projection.
func (p polar) Place(y, x float64) (lat, lon float64) {
	x, y = p.side*(x-p.falseEasting), p.side*(y-p.falseNorthing)
	lat = p.side * p.figure.latitude(math.Hypot(x, y)/p.scale)
	if x == 0 && y == 0 {
		return lat, turned(p.meridian) // every meridian meets there
	}
	return lat, turned(p.meridian + p.side*math.Atan2(x, -y)/radians)
}

// Project implements Projection.
func (p polar) Project(lat, lon float64) (y, x float64) {
	rho := p.scale * p.figure.t(p.side*lat)
	sin, cos := math.Sincos(p.side * (lon - p.meridian) * radians)
	return p.falseNorthing - p.side*rho*cos, p.falseEasting + p.side*rho*sin
}
