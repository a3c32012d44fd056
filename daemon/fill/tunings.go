package fill

import (
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// Tunings are the constants of optimal interpolation of a dataset, one tuning of
// them after the other: the newest fills what may know of later days, and one of
// earlier days fills in near real time and is scored.
type Tunings struct {
	Grid      string   `json:"grid"` // grid and transform that they hold for
	Transform string   `json:"transform"`
	All       []Tuning `json:"tunings"`         // the newest last
	Again     bool     `json:"again,omitempty"` // an operator wants another
}

// Tuning is one of them.
type Tuning struct {
	infer.Constants
	At    time.Time `json:"at"`
	Known int       `json:"known"` // fields that the dataset had then
}

// keptTunings bounds the list. Each is of twice as many days as the one before.
const keptTunings = 12

// Of returns t for a grid and a transform: without any where they are others.
func (t Tunings) Of(grid field.Grid, tr field.Transform) Tunings {
	if t.Grid != grid.String() || t.Transform != tr.String() {
		return Tunings{Grid: grid.String(), Transform: tr.String()}
	}
	return t
}

// With returns t for covariates by these names: where its latest tuning has judged
// others, another is wanted.
func (t Tunings) With(names []string) Tunings {
	if len(t.All) == 0 {
		return t
	}
	var judged []string
	if r := t.All[len(t.All)-1].Covariates; r != nil {
		for _, v := range r.Judged {
			judged = append(judged, v.Name)
		}
	}
	t.Again = t.Again || !slices.Equal(names, judged)
	return t
}

// Due reports whether a dataset with a number of fields is to be tuned: when there
// are enough of them for the first time, when they have doubled, and when an
// operator wants it.
func (t Tunings) Due(known int) bool {
	if len(t.All) == 0 || t.Again {
		return known >= infer.TuneFields
	}
	return known >= 2*t.All[len(t.All)-1].Known
}

// Add returns t with one more.
func (t Tunings) Add(next Tuning) Tunings {
	t.Again = false
	t.All = append(t.All[max(len(t.All)+1-keptTunings, 0):len(t.All):len(t.All)], next)
	return t
}

// Serving returns the constants of a delayed product, the newest; nil: the
// defaults serve.
func (t Tunings) Serving() *infer.Constants {
	if len(t.All) == 0 {
		return nil
	}
	return &t.All[len(t.All)-1].Constants
}

// Before returns the latest constants that were tuned on days before a time, and on
// no other; nil: there are none.
func (t Tunings) Before(at time.Time) *infer.Constants {
	var latest *infer.Constants
	for i := range t.All {
		if c := &t.All[i].Constants; c.Evidence.To.Before(at) && (latest == nil || !c.Evidence.To.Before(latest.Evidence.To)) {
			latest = c
		}
	}
	return latest
}
