package covariate

import (
	"fmt"
	"strings"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/skill"
)

// A Regression is what covariates say of a variable, with its evidence. The zero value
// uses none.
type Regression struct {
	Terms  []Coefficient `json:"terms,omitempty"` // those that are used
	Ridge  float64       `json:"ridge,omitempty"` // penalty, in units of the mean square of the terms
	Gain   *Gain         `json:"gain,omitempty"`  // of all of them, on days that choose, or that judge; nil: none is used
	Judged []Verdict     `json:"judged,omitempty"`
	Note   string        `json:"note,omitempty"` // why nothing was judged; empty: it was
	Learn  int           `json:"learn_days"`
	Choose int           `json:"choose_days"`
	// OnJudge says that gains are those on days that judge, which had no part in the choice.
	OnJudge bool `json:"on_judge,omitempty"`
}

// A Coefficient is the part of a term in the regression.
type Coefficient struct {
	Name  string  `json:"name"`
	Units string  `json:"units,omitempty"` // of the covariate when it was fitted
	Scale float64 `json:"scale"`           // spread of the part that optimal interpolation does not know
	Slope float64 `json:"slope"`           // of the variable, in the space of its transform, for one spread
}

// A Gain is the share of the mean squared error that is saved,
// with its 95 % interval by bootstrap over days.
type Gain struct {
	Share    float64        `json:"share"`
	Interval skill.Interval `json:"interval"`
	Days     int            `json:"days"`
}

// A Verdict says of a term whether it is used, and what it brings beside the others.
type Verdict struct {
	Name string `json:"name"`
	Used bool   `json:"used"`
	Gain *Gain  `json:"gain,omitempty"` // over all terms but this one; nil: not measured
	Why  string `json:"why,omitempty"`  // it is not used
}

func gainOf(d skill.Difference) *Gain {
	g := &Gain{Share: -d.Relative, Days: d.Days}
	if d.Base > 0 {
		g.Interval = skill.Interval{Low: -d.Interval.High / d.Base, High: -d.Interval.Low / d.Base}
	}
	return g
}

// String returns a gain in per cent.
func (g Gain) String() string {
	return fmt.Sprintf("%+.1f %% (95 %%: %+.1f to %+.1f %%, %d days)", 100*g.Share, 100*g.Interval.Low, 100*g.Interval.High, g.Days)
}

// String returns a verdict as a sentence without its stop.
func (v Verdict) String() string {
	text := v.Name + " is " + v.Said()
	if v.Gain != nil {
		text += " of the squared error"
	}
	return text
}

// Said returns a verdict without the name, and of what the gain is.
func (v Verdict) Said() string {
	text := "used"
	if !v.Used {
		text = "not used: " + v.Why
	}
	if v.Gain != nil {
		text += fmt.Sprintf("; it saves %v", *v.Gain)
	}
	return text
}

// Any reports whether a covariate is used.
func (r *Regression) Any() bool { return r != nil && len(r.Terms) > 0 }

// Names returns the names of the terms that are used, separated by commas.
func (r *Regression) Names() string {
	if !r.Any() {
		return ""
	}
	var names []string
	for _, t := range r.Terms {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// Units returns the units in which a term was fitted; empty: any.
func (r *Regression) Units(name string) string {
	if r != nil {
		for _, t := range r.Terms {
			if t.Name == name {
				return t.Units
			}
		}
	}
	return ""
}

// Drift returns what the regression explains of the frames of a series, by maps of the
// terms for its frames; nil where none is used. Of the frames only the times count. A
// term without a map of a frame explains nothing of it.
func (r *Regression) Drift(s classical.Series, terms []Term) [][]float32 {
	if !r.Any() {
		return nil
	}
	var slopes []float64
	var anomalies [][][]float32
	for _, c := range r.Terms {
		if t := termOf(terms, c.Name); t != nil && t.known() {
			slopes, anomalies = append(slopes, ratio(c.Slope, c.Scale)), append(anomalies, t.anomalies(s))
		}
	}
	drift := make([][]float32, len(s.Frames))
	for f := range drift {
		var maps [][]float32
		for _, a := range anomalies {
			maps = append(maps, a[f])
		}
		drift[f] = sum(maps, slopes)
	}
	return drift
}

// Lacking returns the terms in use that have no map of a frame.
func (r *Regression) Lacking(terms []Term, frame int) []string {
	var names []string
	if r != nil {
		for _, c := range r.Terms {
			if t := termOf(terms, c.Name); t == nil || t.Maps[frame] == nil {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func termOf(terms []Term, name string) *Term {
	for i := range terms {
		if terms[i].Name == name {
			return &terms[i]
		}
	}
	return nil
}

// sum returns the weighted sum of maps; nil for none.
func sum(maps [][]float32, weights []float64) []float32 {
	if len(maps) == 0 {
		return nil
	}
	out := make([]float32, len(maps[0]))
	for k, m := range maps {
		w := float32(weights[k])
		for i, v := range m {
			out[i] += w * v
		}
	}
	return out
}
