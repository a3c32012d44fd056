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

// followed returns the answers of optimal interpolation with a network followed
// as far as the days before each day would have said, and the mean share.
func (x *exam) followed(oi, network []evaluate.Answer, days []departure) ([]evaluate.Answer, float64) {
	out := make([]evaluate.Answer, len(oi))
	evidence := make([]skill.Departure, len(days))
	for i, d := range days {
		evidence[i] = d.Departure
	}
	share := map[time.Time]float64{}
	mean := 0.0
	for _, d := range days {
		share[d.Day] = skill.Trusted(evidence, d.Day).Weight
		mean += share[d.Day] / float64(len(days))
	}
	for i := range oi {
		w := share[dayOf(x.Overlay(i))]
		out[i] = blend(oi[i], network[i], w)
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
