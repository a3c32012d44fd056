package seas

import (
	"math"
	"slices"
	"time"

	"lacuna/pipeline/evaluate"
)

// A departure sums up one day's overlays: with d the network less optimal
// interpolation and e the truth less optimal interpolation, the sums over the
// scored cells of d·d, d·e and e·e.
type departure struct {
	day        time.Time
	dd, de, ee float64
	cells      float64
}

// departures returns those of the days of an exam, in order of time.
func (x *exam) departures(oi, network []evaluate.Answer) []departure {
	byDay := map[time.Time]*departure{}
	for i := range oi {
		o := x.Overlay(i)
		day := dayOf(o)
		if byDay[day] == nil {
			byDay[day] = &departure{day: day}
		}
		s := byDay[day]
		for k, scored := range o.Scored {
			if scored {
				d, e := float64(network[i].Mean[k]-oi[i].Mean[k]), float64(o.Values[k]-oi[i].Mean[k])
				s.dd, s.de, s.ee, s.cells = s.dd+d*d, s.de+d*e, s.ee+e*e, s.cells+1
			}
		}
	}
	var out []departure
	for _, s := range byDay {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b departure) int { return a.day.Compare(b.day) })
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
		all.dd, all.de, all.ee = all.dd+d.dd, all.de+d.de, all.ee+d.ee
	}
	const steps = 10
	out := make([]point, steps+1)
	for i := range out {
		w := float64(i) / steps
		out[i] = point{w, (w*w*all.dd - 2*w*all.de) / all.ee}
	}
	return out
}

// The rule of trust. It stands in for that of package skill, by which a service
// follows a network, until that is there: then swap trusted for it.
const (
	trustDays  = 10  // scored days before a network is followed
	trustBlock = 3   // successive days that count as one piece of evidence
	trustBound = 1.7 // standard errors that the share is taken below its estimate
)

// trusted returns how far the days before a time say that a network should be
// followed. The error falls by 2w·Σde - w²·Σdd, which is most at Σde/Σdd; the
// share is that ratio less a multiple of its standard error, in 0..1.
func trusted(days []departure, before time.Time) float64 {
	var blocks []departure
	n := 0
	for _, d := range days {
		if !d.day.Before(before) {
			continue
		}
		if n%trustBlock == 0 {
			blocks = append(blocks, departure{})
		}
		b := &blocks[len(blocks)-1]
		b.dd, b.de = b.dd+d.dd, b.de+d.de
		n++
	}
	if n < trustDays {
		return 0
	}
	dd, de := 0.0, 0.0
	for _, b := range blocks {
		dd, de = dd+b.dd, de+b.de
	}
	ratio, squares := de/dd, 0.0
	for _, b := range blocks {
		off := b.de - ratio*b.dd
		squares += off * off
	}
	k := float64(len(blocks))
	bound := ratio - trustBound*math.Sqrt(squares*k/(k-1))/dd
	if !(bound > 0) { // NaN too: a network that does not depart shows nothing
		return 0
	}
	return min(bound, 1)
}

// followed returns the answers of optimal interpolation with a network followed
// as far as the days before each day would have said, and the mean share.
func (x *exam) followed(oi, network []evaluate.Answer, days []departure) ([]evaluate.Answer, float64) {
	out := make([]evaluate.Answer, len(oi))
	share := map[time.Time]float64{}
	mean := 0.0
	for _, d := range days {
		share[d.day] = trusted(days, d.day)
		mean += share[d.day] / float64(len(days))
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
