package version

import (
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// Means are the mean squared errors of the two means of the judged ensembles, in
// normalised units, and the one that serves: it erred less on the days that
// choose.
type Means struct {
	OneStep float64       `json:"one_step"`
	Members float64       `json:"members"`
	Serves  impute.Centre `json:"serves"`
	Cells   int           `json:"cells"`
}

// add adds the scored cells of an overlay to the sums.
func (m *Means) add(o samples.Overlay, oneStep, members []float32) {
	for i, scored := range o.Scored {
		if !scored {
			continue
		}
		a, b := float64(oneStep[i]-o.Values[i]), float64(members[i]-o.Values[i])
		if (a-a)+(b-b) != 0 { // not finite
			continue
		}
		m.OneStep, m.Members, m.Cells = m.OneStep+a*a, m.Members+b*b, m.Cells+1
	}
}

// mean returns the means of the sums; nil where nothing was added.
func (m Means) mean() *Means {
	if m.Cells == 0 {
		return nil
	}
	m.OneStep, m.Members = m.OneStep/float64(m.Cells), m.Members/float64(m.Cells)
	return &m
}

// meanOf returns the mean of members.
func meanOf(members [][]float32) []float32 {
	out := make([]float32, len(members[0]))
	for i := range out {
		out[i], _ = impute.Departure(members, i)
	}
	return out
}

// squares returns the sum of the squared errors of cases, those left out that
// are not finite.
func squares(cases []impute.Case) float64 {
	sum := 0.0
	for _, c := range cases {
		if e := float64(c.Error); e-e == 0 {
			sum += e * e
		}
	}
	return sum
}
