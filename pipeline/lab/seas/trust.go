package seas

import (
	"math"
	"slices"
	"time"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/skill"
)

// A departure is the evidence of one day's overlays for a network, with the sum of
// the squared errors of optimal interpolation.
type departure struct {
	skill.Departure
	ee float64
}

// departures returns those of the days of an exam, in order of time.
func (x *exam) departures(oi, network []evaluate.Answer) []departure {
	byDay := map[time.Time]*departure{}
	for i := range oi {
		o := x.Overlay(i)
		one := skill.DepartureOf(dayOf(o), o.Values, oi[i].Mean, network[i].Mean, o.Scored)
		if byDay[one.Day] == nil {
			byDay[one.Day] = &departure{Departure: skill.Departure{Day: one.Day}}
		}
		s := byDay[one.Day]
		s.DD, s.DE, s.Cells = s.DD+one.DD, s.DE+one.DE, s.Cells+one.Cells
		for k, scored := range o.Scored {
			if scored {
				e := float64(o.Values[k] - oi[i].Mean[k])
				s.ee += e * e
			}
		}
	}
	var out []departure
	for _, s := range byDay {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b departure) int { return a.Day.Compare(b.Day) })
	return out
}

// A point of the trust curve: the squared error of optimal interpolation plus a
// share of the network's departure from it, relative to that of optimal
// interpolation.
type point struct {
	Share    float64 `json:"share"`
	Relative float64 `json:"relative"`
}

// curve returns the error for shares from 0 to 1.
func curve(days []departure) []point {
	var all departure
	for _, d := range days {
		all.DD, all.DE, all.ee = all.DD+d.DD, all.DE+d.DE, all.ee+d.ee
	}
	const steps = 10
	out := make([]point, steps+1)
	for i := range out {
		w := float64(i) / steps
		out[i] = point{w, (w*w*all.DD - 2*w*all.DE) / all.ee}
	}
	return out
}

// best returns the share that would have made the error of all days the least.
func best(days []departure) float64 {
	var all departure
	for _, d := range days {
		all.DD, all.DE = all.DD+d.DD, all.DE+d.DE
	}
	return all.DE / all.DD
}

// evidence returns departures as a service keeps them.
func evidence(days ...[]departure) []skill.Departure {
	var out []skill.Departure
	for _, some := range days {
		for _, d := range some {
			out = append(out, d.Departure)
		}
	}
	return out
}

// followed returns the answers of optimal interpolation with a network followed
// as far as the days before each day would have said, and other seas, and the mean
// share over the days.
func (x *exam) followed(oi, network []evaluate.Answer, known []skill.Departure, elsewhere *skill.Elsewhere) ([]evaluate.Answer, float64) {
	out := make([]evaluate.Answer, len(oi))
	share := map[time.Time]float64{}
	for i := range oi {
		day := dayOf(x.Overlay(i))
		if _, ok := share[day]; !ok {
			share[day] = skill.Trusted(known, day, elsewhere).Weight
		}
		out[i] = blend(oi[i], network[i], share[day])
	}
	mean := 0.0
	for _, w := range share {
		mean += w / float64(len(share))
	}
	return out, mean
}

// blend returns an answer between two: the mean a share of the way, and the
// variance too.
func blend(a, b evaluate.Answer, share float64) evaluate.Answer {
	out := evaluate.Answer{Mean: make([]float32, len(a.Mean)), Sigma: make([]float32, len(a.Mean))}
	for k := range a.Mean {
		out.Mean[k] = a.Mean[k] + float32(share)*(b.Mean[k]-a.Mean[k])
		from, to := float64(a.Sigma[k]), float64(b.Sigma[k])
		out.Sigma[k] = float32(math.Sqrt((1-share)*from*from + share*to*to))
	}
	return out
}
