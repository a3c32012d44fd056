package simulate

import "math"

// A weather describes the clouds of a region.
type weather struct {
	cover        float64 // mean share of the sky; 0: the sensor sees through clouds
	winterExtra  float64 // addition in January, subtraction in July
	longestKM    float64 // longest wavelength of cloud systems
	memoryDays   float64
	eastKMPerDay float64
}

// A scene describes the view of the sensors on one day's sea.
type scene struct {
	sensors []int32   // bits of the sensors with a clear view, per cell
	clear   []float32 // how far the sky was from cloudy, in standard deviations of the cloud field; negative: cloudy; the best of all passes
	across  []float32 // place across the swath of that pass
}

// A sky holds the clouds and the satellites over a chart.
type sky struct {
	*chart
	seed    uint64
	weather weather
	sensors []sensor
	clouds  *medium // nil: the sensors see through them
}

func newSky(c *chart, seed uint64, w weather, sensors []sensor) *sky {
	s := &sky{chart: c, seed: seed, weather: w, sensors: sensors}
	if w.cover > 0 {
		s.clouds = w.clouds(c).seeded(mix(seed, seedClouds))
	}
	return s
}

// scene returns the scene of a day, counted from calendarOrigin. An incomplete
// one lacks the passes that arrive late: those of all sensors but the first,
// or, of a single sensor, every third.
func (s *sky) scene(day int, complete bool) scene {
	n := s.h * s.w
	sc := scene{make([]int32, n), make([]float32, n), make([]float32, n)}
	for i := range sc.clear {
		sc.clear[i] = float32(math.Inf(-1))
	}
	for k, sensor := range s.sensors {
		for m, p := range sensor.passes(day) {
			late := k > 0 || len(s.sensors) == 1 && m%3 == 2
			if (complete || !late) && !s.lost(p) && s.reaches(p) {
				s.addPass(sc, p)
			}
		}
	}
	return sc
}

// lostShare of all passes never makes it into the archive: antennas, gaps in
// the downlink, manoeuvres. Where two sensors cover a sea every day, only lost
// passes make swath edges visible.
const lostShare = 0.1

func (s *sky) lost(p pass) bool {
	return unit(mix(s.seed, seedPasses, uint64(p.bit), uint64(int64(p.rev)))) < lostShare
}

// reaches reports whether the swath of a pass may touch the grid.
func (s *sky) reaches(p pass) bool {
	_, _, west, east := s.grid.Bounds()
	for _, i := range [...]int{0, s.h / 4, s.h / 2, 3 * s.h / 4, s.h - 1} {
		t := p.track(s.grid.Lat[i])
		a, b := t.across(west, p.swathKM), t.across(east, p.swathKM)
		between := a*b < 0 && math.Abs(a-b)*p.swathKM/2 < antipodeKM
		if math.Abs(a) <= 1 || math.Abs(b) <= 1 || between {
			return true
		}
	}
	return s.periodic
}

// antipodeKM tells a track between two meridians from one on the far side of
// the Earth, which also has one of them on either hand.
const antipodeKM = 10000

// addPass adds a pass to a scene.
func (s *sky) addPass(sc scene, p pass) {
	middle := p.track(s.grid.Lat[s.h/2])
	sun := declination(yearDay(p.day))
	var clouds fractal
	if s.clouds != nil {
		clouds = s.clouds.at(middle.day)
	}
	threshold := s.weather.threshold(middle.day)
	s.eachRow(func(i int) {
		lat := s.grid.Lat[i]
		if p.dark(lat, sun) {
			return
		}
		t := p.track(lat)
		for j := range s.w {
			at := i*s.w + j
			if !s.sea[at] {
				continue
			}
			across := t.across(s.grid.Lon[j], p.swathKM)
			if math.Abs(across) > 1 || p.mirrored(across, lat, sun) {
				continue
			}
			clear := float32(threshold)
			if clouds != nil {
				clear -= float32(clouds.value(s.point(float64(i), float64(j))))
			}
			if clear > 0 {
				sc.sensors[at] |= p.bit
			}
			if clear > sc.clear[at] {
				sc.clear[at], sc.across[at] = clear, float32(across)
			}
		}
	})
}

func (w weather) clouds(c *chart) turbulence {
	return turbulence{
		longestKM: w.longestKM, shortestKM: 3 * c.grid.StepKM(),
		slope:      0.45, // clouds have spectra near k^-1.9
		memoryDays: w.memoryDays, eastKMPerDay: w.eastKMPerDay,
		latDegrees: c.grid.Lat[c.h/2],
	}
}

// threshold returns the value of the cloud field above which it is cloudy, so
// that the mean cover holds.
func (w weather) threshold(day float64) float64 {
	if w.cover == 0 {
		return 1
	}
	cover := w.cover + harmonic{amplitude: w.winterExtra, perYear: 1, peakYearDay: 15}.at(yearDay(day))
	return math.Sqrt2 * math.Erfinv(1-2*min(max(cover, 0.01), 0.99))
}
