package simulate

import "math"

// A sensor is an instrument on a sun-synchronous orbit, on one side of which
// (day or night) it is used.
type sensor struct {
	name        string
	bit         int32   // bit in SENSORMASK
	hour        float64 // local solar time of the crossing of the equator
	ascending   bool
	revsPerDay  float64
	phaseRevs   float64 // place along the orbit, in revolutions
	swathKM     float64 // full width
	glint       bool    // loses the strip where the sun is mirrored
	needsTheSun bool
}

// inclinationDegrees is that of all sun-synchronous orbits at the usual
// height of about 800 km, to 0.2 degrees.
const inclinationDegrees = 98.5

// A pass is half a revolution: the sensor crosses every latitude once.
type pass struct {
	sensor
	rev     int     // counts the revolutions of the sensor
	day     float64 // time of the crossing of the equator, in days
	nodeLon float64 // longitude of that crossing
}

// passes returns the passes whose equator crossing falls on a day, in the
// order of time.
//
// On a sun-synchronous orbit the longitude follows from the time: where the
// satellite crosses the equator it is always the same local hour.
func (s sensor) passes(day int) []pass {
	var out []pass
	first := int(math.Ceil(float64(day)*s.revsPerDay - s.phaseRevs))
	for rev := first; ; rev++ {
		t := (float64(rev) + s.phaseRevs) / s.revsPerDay
		if t >= float64(day+1) {
			return out
		}
		out = append(out, pass{s, rev, t, 15*s.hour - 360*(t-math.Floor(t))})
	}
}

// A track is the part of a pass at one latitude.
type track struct {
	lon     float64 // longitude of the point below the satellite
	kmPerLo float64 // distance across the track for a degree of longitude
	day     float64 // time of the satellite there
}

func (p pass) track(lat float64) track {
	lon, turn := p.below(lat)
	const h = 0.1
	north, _ := p.below(lat + h)
	south, _ := p.below(lat - h)
	cosLat := math.Cos(lat * math.Pi / 180)
	slant := math.Remainder(north-south, 360) * cosLat / (2 * h) // tangent of the heading
	return track{
		lon:     p.nodeLon + lon,
		kmPerLo: kmPerDegree * cosLat / math.Hypot(1, slant),
		day:     p.day + turn/p.revsPerDay,
	}
}

// below returns the longitude below the satellite at a latitude, relative to
// the node, and the revolutions since the node. Poleward of the highest
// latitude of the orbit it is that of the turning point.
func (p pass) below(lat float64) (lon, turn float64) {
	sinInc, cosInc := math.Sincos(inclinationDegrees * math.Pi / 180)
	u := math.Asin(min(max(math.Sin(lat*math.Pi/180)/sinInc, -1), 1))
	along := u
	if !p.ascending {
		along = -u // runs south: it is south of the node after it
	}
	lon = math.Atan2(cosInc*math.Sin(along), math.Cos(along)) * 180 / math.Pi
	return lon - 360*along/(2*math.Pi)/p.revsPerDay, along / (2 * math.Pi)
}

// across returns the place of a longitude across the swath: 0 below the
// satellite, -1 and 1 at the edges; beyond, the sensor sees nothing.
func (t track) across(lon, swathKM float64) float64 {
	return math.Remainder(lon-t.lon, 360) * t.kmPerLo / (swathKM / 2)
}

// mirrored reports whether the sun glitters at a place across the swath. The
// strip lies on the side of the sun, a fifth of the swath from its middle,
// and narrows with the height of the sun at noon.
func (s sensor) mirrored(across, lat, declination float64) bool {
	const (
		centre       = 0.2
		halfWidth    = 0.3
		reachDegrees = 32 // from the subsolar latitude; Cox and Munk put the edge of strong glint near 30
	)
	height := 1 - math.Abs(lat-declination)/reachDegrees
	return s.glint && math.Abs(across-centre) < halfWidth*height
}

// declination returns the latitude of the sun.
func declination(yearDay float64) float64 {
	const obliquity, solstice = 23.44, 172
	return obliquity * math.Cos(2*math.Pi*(yearDay-solstice)/daysPerYear)
}

// dark reports whether the sun stays too low, even at noon, for the colour of
// the water to be seen: ocean colour is not retrieved beyond a solar zenith
// of 70 degrees.
func (s sensor) dark(lat, declination float64) bool {
	return s.needsTheSun && math.Abs(lat-declination) > 70
}
