package matchup

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/products"
)

// Window says how far a cell may be from a measurement.
type Window struct {
	RadiusKM float64       // 0: the measurement lies in the cell
	Within   time.Duration // from the middle of the time that a map stands for
}

// Map is one field of a product.
type Map struct {
	Grid         field.Grid
	Time         time.Time // middle of the time that it stands for
	Values       []float32 // physical; NaN: none
	Sigma        []float32 // in the space of the transform; nil: not told
	Lower, Upper []float32 // physical, 5 and 95 %; nil: by Sigma
	Filled       []bool    // nil: not told
}

// match is the cell of a measurement. Numbers are in the space of the product.
type match struct {
	away                time.Duration // from the measurement to the map
	day                 time.Time
	cell                int
	value, sigma        float64
	lower, upper        float64
	filled, told, known bool // told: whether it was filled is known; known: there is a match
}

// Matcher pairs measurements with the maps that are added to it.
type Matcher struct {
	obs       []Observation // in the units of the product
	window    Window
	transform field.Transform
	matches   []match
	inTime    []bool // a map was near enough in time
	inGrid    []bool // and its grid holds the place
}

// NewMatcher returns a matcher of measurements in the units of the product.
func NewMatcher(obs []Observation, window Window, transform field.Transform) *Matcher {
	n := len(obs)
	return &Matcher{obs, window, transform, make([]match, n), make([]bool, n), make([]bool, n)}
}

// Convert returns measurements in other units, and whether their numbers are
// others there. That of units which are spelled in no known way, and not the same,
// is an error.
func Convert(obs []Observation, from, to string) (converted []Observation, changed bool, err error) {
	if from == "" || strings.EqualFold(strings.TrimSpace(from), strings.TrimSpace(to)) {
		return obs, false, nil
	}
	a, b := products.UnitOf(from), products.UnitOf(to)
	switch {
	case a.Name == "" || a.Name != b.Name:
		return nil, false, fmt.Errorf("the measurements are in %q and the product in %q, which cannot be converted; name their units with --units, or convert them before", from, to)
	case a == b:
		return obs, false, nil
	}
	obs = slices.Clone(obs)
	for i := range obs {
		obs[i].Value = (obs[i].Value-a.Zero)/a.Scale*b.Scale + b.Zero
	}
	return obs, true, nil
}

// Add pairs measurements with a map where it is nearer in time than those before.
func (m *Matcher) Add(one Map) {
	for i, o := range m.obs {
		away := o.Time.Sub(one.Time).Abs()
		if away > m.window.Within {
			continue
		}
		m.inTime[i] = true
		if m.matches[i].known && !nearer(one.Time, away, m.matches[i]) {
			continue
		}
		cell, holds := nearest(one, o.Lat, o.Lon, m.window.RadiusKM)
		m.inGrid[i] = m.inGrid[i] || holds
		if cell >= 0 {
			m.matches[i] = m.read(one, cell, away)
		}
	}
}

// nearer reports whether a map is to be preferred to a match. Of two that are as
// far it is the later one: midnight belongs to the day that it begins.
func nearer(t time.Time, away time.Duration, than match) bool {
	return away < than.away || away == than.away && t.After(than.day)
}

// read returns what a map says at a cell.
func (m *Matcher) read(one Map, cell int, away time.Duration) match {
	got := match{away: away, day: one.Time, cell: cell, known: true, sigma: math.NaN(), lower: math.NaN(), upper: math.NaN()}
	got.value = m.forward(float64(one.Values[cell]))
	if one.Sigma != nil {
		got.sigma = float64(one.Sigma[cell])
		got.lower, got.upper = got.value-z90*got.sigma, got.value+z90*got.sigma
	}
	if one.Lower != nil && one.Upper != nil {
		got.lower, got.upper = m.forward(float64(one.Lower[cell])), m.forward(float64(one.Upper[cell]))
	}
	if one.Filled != nil {
		got.told, got.filled = true, one.Filled[cell]
	}
	return got
}

// z90 is the half width of the interval of a normal distribution that holds 90 %.
const z90 = 1.6448536269514722

func (m *Matcher) forward(x float64) float64 {
	if !m.transform.Log10 {
		return x
	}
	return math.Log10(max(x, float64(m.transform.Floor)))
}

// earthRadiusKM is the mean radius.
const earthRadiusKM = 6371.0

// nearest returns the cell with a value that is nearest to a place, within a
// radius, or -1; and whether the grid holds the place at all. Without a radius it
// is the cell in which the place lies.
func nearest(one Map, lat, lon, radius float64) (cell int, holds bool) {
	g := one.Grid
	if g.Plane != nil {
		return nearestPlace(one, lat, lon, radius)
	}
	rows := near(g.Lat, func(x float64) float64 { return x - lat }, radius/kmPerDegree)
	slack := math.Inf(1)
	if c := math.Cos(lat * math.Pi / 180); c > 1e-6 {
		slack = radius / kmPerDegree / c
	}
	cols := near(g.Lon, func(x float64) float64 { return turn(x - lon) }, slack)
	best, cell := math.Inf(1), -1
	for _, r := range rows {
		for _, c := range cols {
			i := r*g.Width() + c
			d := distance(lat, lon, g.Lat[r], g.Lon[c])
			around := r != rows[0] || c != cols[0] // not the cell that the place lies in
			if around && d > radius {
				continue
			}
			if v := one.Values[i]; v == v && d < best {
				best, cell = d, i
			}
		}
	}
	return cell, len(rows) > 0 && len(cols) > 0
}

// nearestPlace is nearest on a grid with a place for every cell: one that lies
// farther than a step from all of them is not on it.
func nearestPlace(one Map, lat, lon, radius float64) (cell int, holds bool) {
	closest, own := math.Inf(1), -1
	best, cell := math.Inf(1), -1
	for i, v := range one.Values {
		d := distance(lat, lon, one.Grid.Plane.Lat[i], one.Grid.Plane.Lon[i])
		if d < closest {
			closest, own = d, i
		}
		if v == v && d <= radius && d < best {
			best, cell = d, i
		}
	}
	holds = closest <= one.Grid.StepKM()
	switch {
	case !holds:
		return -1, false
	case own >= 0 && one.Values[own] == one.Values[own]: // not NaN
		return own, true
	}
	return cell, true
}

const kmPerDegree = earthRadiusKM * math.Pi / 180

// near returns the indices of an axis whose cells are within some degrees of a
// place, that in which it lies first; none where the axis does not reach it. offset
// is the way from the place to a value of the axis.
func near(axis []float64, offset func(float64) float64, slack float64) []int {
	best := 0
	for i, x := range axis {
		if math.Abs(offset(x)) < math.Abs(offset(axis[best])) {
			best = i
		}
	}
	half := 0.0 // of a cell
	if n := len(axis); n > 1 {
		half = math.Abs(axis[n-1]-axis[0]) / float64(n-1) / 2
	}
	const rounding = 1e-6 // a place on the edge of the outermost cell lies in it
	if math.Abs(offset(axis[best])) > half+rounding {
		return nil
	}
	all := []int{best}
	for i, x := range axis {
		if i != best && math.Abs(offset(x)) <= slack {
			all = append(all, i)
		}
	}
	return all
}

// turn returns an angle in degrees from -180 to 180.
func turn(x float64) float64 { return math.Remainder(x, 360) }

// distance is that of two places along the sphere, in kilometres (haversine).
func distance(lat1, lon1, lat2, lon2 float64) float64 {
	const rad = math.Pi / 180
	a := math.Sin((lat2 - lat1) * rad / 2)
	b := math.Sin((lon2 - lon1) * rad / 2)
	h := a*a + math.Cos(lat1*rad)*math.Cos(lat2*rad)*b*b
	return 2 * earthRadiusKM * math.Asin(min(1, math.Sqrt(h)))
}
