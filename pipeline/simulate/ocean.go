package simulate

import "math"

// Seeds of the independent parts of a world.
const (
	seedFlow = iota + 1
	seedPatches
	seedFine
	seedClouds
	seedPasses
	seedNoise
	seedSchedule
	seedInterference
	seedDayBias
	seedCompanion
)

// A sea describes the tracer of a region, in the space where it is additive:
// log10 for concentrations.
type sea struct {
	mean   float64
	state  func(lat, lon float64) float64 // departure of the long-term state; nil: zero
	season []harmonic

	coastRise, coastKM float64 // rise towards the coast, and its width
	rivers             []river

	patchStd                        float64 // standard deviation of the source; stirring makes filaments of it
	patchLongestKM, patchShortestKM float64
	fineStd                         float64 // standard deviation of small structures that drift along
	fineLongestKM                   float64
	bloomShiftDays                  float64 // how much earlier or later patches have their season
	low, high                       float64 // limits that the tracer approaches and does not reach
	turnoverDays                    float64 // age of the source's imprint at its strongest
}

// A harmonic is one term of the seasonal cycle.
type harmonic struct {
	amplitude   float64
	perYear     float64
	peakYearDay float64
}

// A river feeds the tracer within reach of its mouth.
type river struct {
	name          string
	lat, lon      float64
	rise, reachKM float64
}

// water is a sea on a grid.
type water struct {
	sea
	static []float32 // constant part of the source, per cell
	plume  []float32 // rise by rivers at mean discharge, per cell
}

func newWater(c *chart, s sea) *water {
	w := &water{sea: s, static: make([]float32, c.h*c.w), plume: make([]float32, c.h*c.w)}
	c.eachRow(func(i int) {
		for j := range c.w {
			at := i*c.w + j
			v := s.mean
			if s.coastRise != 0 {
				v += s.coastRise * math.Exp(-float64(c.coastKM[at])/s.coastKM)
			}
			if s.state != nil {
				v += s.state(c.grid.Lat[i], c.grid.Lon[j])
			}
			w.static[at] = float32(v)
			w.plume[at] = float32(s.rise(c.grid.Lat[i], c.grid.Lon[j]))
		}
	})
	return w
}

// rise returns the contribution of the rivers at a place.
func (s sea) rise(lat, lon float64) float64 {
	sum := 0.0
	for _, r := range s.rivers {
		dy := (lat - r.lat) * kmPerDegree
		dx := math.Remainder(lon-r.lon, 360) * kmPerDegree * math.Cos(r.lat*math.Pi/180)
		sum += r.rise * math.Exp(-math.Hypot(dx, dy)/r.reachKM)
	}
	return sum
}

// patches is the random part of the source.
func (s sea) patches() turbulence {
	return turbulence{
		longestKM: s.patchLongestKM, shortestKM: s.patchShortestKM, slope: 0.8, memoryDays: patchMemoryDays,
	}
}

// fine returns structures down to a few cells, which the stirring of patches
// does not make.
func (s sea) fine(c *chart) turbulence {
	return turbulence{
		longestKM: s.fineLongestKM, shortestKM: 3 * c.grid.StepKM(), slope: 0.7, memoryDays: fineMemoryDays,
	}
}

const (
	patchMemoryDays = 14 // a bloom or a warm pool lasts weeks
	fineMemoryDays  = 5
	floodShare      = 0.3 // rivers carry 30 % more in flood and 30 % less in drought
)

// source returns the value to which the tracer at a cell relaxes.
func (w *water) source(at int, day, patch float64) float64 {
	return w.climate(at, day+w.bloomShiftDays*patch) + w.patchStd*patch
}

// climate returns the expected tracer at a cell.
func (w *water) climate(at int, day float64) float64 {
	yearDay := yearDay(day)
	v := float64(w.static[at])
	for _, h := range w.season {
		v += h.at(yearDay)
	}
	if w.plume[at] != 0 {
		flood := harmonic{amplitude: floodShare, perYear: 1, peakYearDay: floodYearDay}
		v += float64(w.plume[at]) * (1 + flood.at(yearDay))
	}
	return v
}

// floodYearDay is the end of April: snow melt in the catchments of the north.
const floodYearDay = 118

func (h harmonic) at(yearDay float64) float64 {
	return h.amplitude * math.Cos(2*math.Pi*h.perYear*(yearDay-h.peakYearDay)/daysPerYear)
}

const daysPerYear = 365.2425

// yearDay returns the day of the year, within a day, of a day counted from
// calendarOrigin.
func yearDay(day float64) float64 {
	return day - daysPerYear*math.Floor(day/daysPerYear)
}

// An imprint is the share of the source of one earlier day in the tracer.
type imprint struct {
	share  float64
	source []float32
}

const (
	stepsPerDay = 2 // steps of the back-trajectories; the water moves less than an eddy radius in one
	fineAgeDays = 2 // age of small structures
	// historyTurnovers is where the imprint of the past has faded to a few
	// per cent of its strongest.
	historyTurnovers = 4
)

// truth stores the tracer at noon of a day in dst, NaN on land.
//
// It solves the tracer's equation exactly along trajectories: the water at a
// place carries a mean of the source along its path,
//
//	c(x, t) = sum over ages a of w(a) s(X(t-a), t-a),  w(a) ~ a exp(-a/turnover)
//
// where X is the path of the water that is at x at time t. Chaotic stirring
// turns the smooth source into filaments and fronts.
func (b *basin) truth(dst []float32, day int) {
	ages := int(math.Ceil(historyTurnovers * b.water.turnoverDays))
	first := floorDiv(day-ages, epochDays)
	epochs := b.epochs(first, floorDiv(day, epochDays))
	at := func(time float64) *epoch { return epochs[int(math.Floor(time/epochDays))-first] }

	noon := float64(day) + 0.5
	steps := make([]*epoch, ages*stepsPerDay)
	for k := range steps {
		steps[k] = at(noon - (float64(k)+0.5)/stepsPerDay)
	}
	imprints := make([]imprint, ages)
	total := 0.0
	for k := range imprints {
		age := float64(k + 1)
		share := age * math.Exp(-age/b.water.turnoverDays)
		imprints[k] = imprint{share, at(noon - age).source}
		total += share
	}
	for k := range imprints {
		imprints[k].share /= total
	}
	fine := b.fine.at(noon - fineAgeDays)
	b.eachRow(func(i int) {
		for j := range b.w {
			cell := i*b.w + j
			if !b.sea[cell] {
				dst[cell] = float32(math.NaN())
				continue
			}
			dst[cell] = b.tracer(i, j, history{steps, imprints, fine})
		}
	})
}

// A history holds the epochs that the water of one day has passed, latest first.
type history struct {
	steps    []*epoch
	imprints []imprint
	fine     fractal
}

func (b *basin) tracer(i, j int, p history) float32 {
	row, col := b.rowInside(float64(i)), b.colInside(float64(j))
	sum := 0.0
	for k, e := range p.steps {
		row, col = b.back(e, 1.0/stepsPerDay, row, col)
		if (k+1)%stepsPerDay != 0 {
			continue
		}
		age := (k + 1) / stepsPerDay
		m := &p.imprints[age-1]
		sum += m.share * b.sourceAt(m.source, row, col)
		if age == fineAgeDays {
			sum += b.water.fineStd * p.fine.value(b.point(row, col))
		}
	}
	return float32(b.water.limited(sum))
}

// limited bends v so that it stays between the limits: near the middle it
// hardly changes.
func (s sea) limited(v float64) float64 {
	middle, half := (s.low+s.high)/2, (s.high-s.low)/2
	return middle + half*math.Tanh((v-middle)/half)
}

func floorDiv(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }
