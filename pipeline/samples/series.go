package samples

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/field"
)

// A Series is the maps of one variable on one grid, a day each, in order of
// time and in the space of the transform.
type Series struct {
	Grid      field.Grid
	Sea       field.Mask
	Transform field.Transform
	Days      []Day
	// Covariates are the other variables whose maps its days have; nil: none.
	Covariates []Covariate
}

// A Day is one map. Land and gaps are NaN.
type Day struct {
	Time   time.Time
	Values []float32
	Drift  []float32 // part that covariates explain, at every cell; nil: none
	// Covariates are the maps of the covariates of the series for this day, in their order
	// and units: NaN where one is missing, nil where all of it is. None is of a later date.
	Covariates [][]float32
}

// ErrNothingMissing marks a series without gaps over sea: an analysis rather
// than observations, from which nothing about gaps can be learned.
var ErrNothingMissing = errors.New("nothing is missing over sea")

// New returns the series of fields in physical units, in any order. Of several
// fields of one UTC day the last given counts; days without a value over sea
// are left out. The fields must share one grid.
func New(fields []field.Field, sea field.Mask, tr field.Transform) (Series, error) {
	if len(fields) == 0 {
		return Series{}, errors.New("no fields: give at least one file with the variable")
	}
	s := Series{Grid: fields[0].Grid, Sea: sea, Transform: tr}
	if len(sea) != s.Grid.Len() {
		return Series{}, fmt.Errorf("sea mask has %d cells and the grid %d", len(sea), s.Grid.Len())
	}
	seaCells := sea.Count()
	if seaCells == 0 {
		return Series{}, errors.New("the sea mask has no sea: give another mask, or learn it from the data")
	}

	byDay := make(map[int64]Day, len(fields))
	missing := false
	for _, f := range fields {
		if !f.Grid.Same(s.Grid) {
			return Series{}, fmt.Errorf("field of %s is on %v, not on %v as the first: use files of one grid",
				f.Time.Format(time.DateOnly), f.Grid, s.Grid)
		}
		values, observed := overSea(f, sea, tr)
		missing = missing || observed < seaCells
		if observed > 0 {
			byDay[dayNumber(f.Time)] = Day{Time: f.Time, Values: values}
		}
	}
	if len(byDay) == 0 {
		return Series{}, fmt.Errorf("none of the %d fields holds a value over sea: check the variable and the mask", len(fields))
	}
	if !missing {
		return Series{}, fmt.Errorf("%w in any of the %d fields: give Level-3 files, not a gap-filled product", ErrNothingMissing, len(fields))
	}
	for _, d := range byDay {
		s.Days = append(s.Days, d)
	}
	slices.SortFunc(s.Days, func(a, b Day) int { return a.Time.Compare(b.Time) })
	return s, nil
}

// overSea returns the transformed values of f with land blanked, and how many
// there are.
func overSea(f field.Field, sea field.Mask, tr field.Transform) ([]float32, int) {
	values := make([]float32, len(f.Values))
	tr.Forward(values, f.Values)
	observed := 0
	for i, isSea := range sea {
		if !isSea {
			values[i] = field.NaN()
		}
		if values[i] == values[i] { // not NaN
			observed++
		}
	}
	return values, observed
}

// dayNumber counts UTC days; two times of one day have the same number.
func dayNumber(t time.Time) int64 {
	const secondsPerDay = 24 * 60 * 60
	n := t.Unix()
	if n < 0 {
		n -= secondsPerDay - 1
	}
	return n / secondsPerDay
}
