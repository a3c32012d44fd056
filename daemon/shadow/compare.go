package shadow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lacuna/daemon/state"
	"lacuna/internal/figure"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// Report compares a new version of a dataset with the one in use.
type Report struct {
	Dataset string    `json:"dataset"`
	Version string    `json:"version"` // or the address of its archive
	InUse   string    `json:"in_use,omitempty"`
	At      time.Time `json:"at"`
	Wanted  int       `json:"wanted"` // days to be compared
	Days    []Day     `json:"days"`   // in order
	Aside   int       `json:"aside"`  // granules of the new version that cannot be used
	// Changed are changes of grid, units, variable and the like, a sentence each.
	Changed []string `json:"changed,omitempty"`
	// Folder holds the products of the new version, which nobody was told of.
	Folder string `json:"folder"`
}

// Day compares the granules of one time. Bias and RMSE are of the new version less
// the old on cells that both observed, in the space of the transform.
type Day struct {
	Time        time.Time `json:"time"`
	Common      int       `json:"common"`       // cells that both observed
	Bias        float64   `json:"bias"`         // 0 where there are none
	RMSE        float64   `json:"rmse"`         // likewise
	ObservedOld float64   `json:"observed_old"` // share of all cells
	ObservedNew float64   `json:"observed_new"`
}

// Compare adds the comparison of two granules of one time.
func (r *Report) Compare(old, renewed ingest.Granule) {
	r.note(old, renewed)
	for _, f := range renewed.Fields {
		at := slices.IndexFunc(old.Fields, func(o field.Field) bool { return o.Time.Equal(f.Time) })
		if at < 0 || !old.Fields[at].Grid.Same(f.Grid) {
			continue
		}
		r.Days = append(r.Days, compare(old.Fields[at], f, old.Transform))
	}
	slices.SortFunc(r.Days, func(a, b Day) int { return a.Time.Compare(b.Time) })
}

func compare(old, renewed field.Field, tr field.Transform) Day {
	a, b := make([]float32, len(old.Values)), make([]float32, len(old.Values))
	tr.Forward(a, old.Values)
	tr.Forward(b, renewed.Values)
	d := Day{Time: renewed.Time}
	var before, after int
	var sum, squares float64
	for i := range a {
		if old.Observed(i) {
			before++
		}
		if renewed.Observed(i) {
			after++
		}
		if off := float64(b[i]) - float64(a[i]); !math.IsNaN(off) {
			d.Common++
			sum, squares = sum+off, squares+off*off
		}
	}
	n := float64(max(len(a), 1))
	d.ObservedOld, d.ObservedNew = float64(before)/n, float64(after)/n
	if d.Common > 0 {
		d.Bias, d.RMSE = sum/float64(d.Common), math.Sqrt(squares/float64(d.Common))
	}
	return d
}

// note adds what is another in the new version, each once.
func (r *Report) note(old, renewed ingest.Granule) {
	add := func(what, was, is string) {
		text := fmt.Sprintf("%s is %q, and was %q", what, is, was)
		if was != is && !slices.Contains(r.Changed, text) {
			r.Changed = append(r.Changed, text)
		}
	}
	if was, is := old.Fields[0].Grid, renewed.Fields[0].Grid; !was.Same(is) {
		add("the grid", was.String(), is.String())
	}
	add("the variable", old.Source.Variable, renewed.Source.Variable)
	add("the unit", text(old.Source, "units"), text(renewed.Source, "units"))
	add("the standard name", text(old.Source, "standard_name"), text(renewed.Source, "standard_name"))
	add("the transform", old.Transform.String(), renewed.Transform.String())
}

// text returns a text attribute of the variable of a granule.
func text(s ingest.Source, name string) string {
	v, _ := s.Var(s.Variable)
	for _, a := range v.Attrs {
		if t, ok := a.Value.(string); ok && a.Name == name {
			return t
		}
	}
	return ""
}

// Total returns the comparison of all days.
func (r Report) Total() Day {
	var t Day
	var squares float64
	for _, d := range r.Days {
		t.Common += d.Common
		t.Bias += d.Bias * float64(d.Common)
		squares += d.RMSE * d.RMSE * float64(d.Common)
		t.ObservedOld += d.ObservedOld / float64(len(r.Days))
		t.ObservedNew += d.ObservedNew / float64(len(r.Days))
	}
	if t.Common > 0 {
		t.Bias, t.RMSE = t.Bias/float64(t.Common), math.Sqrt(squares/float64(t.Common))
	}
	return t
}

// String returns the report in a sentence without its end.
func (r Report) String() string {
	if len(r.Days) == 0 && len(r.Changed) == 0 {
		return "no day of it could be compared yet"
	}
	t := r.Total()
	out := fmt.Sprintf("on %d days of %d it differs by %+.3g in the mean and %.3g in the root mean square, and observes %s of the cells, where the old one observes %s",
		len(r.Days), r.Wanted, t.Bias, t.RMSE, figure.Percent(t.ObservedNew), figure.Percent(t.ObservedOld))
	for _, c := range r.Changed {
		out += "; " + c
	}
	return out
}

// Last returns the latest report on a dataset, and false where there is none.
func Last(dir state.Dir, dataset string) (r Report, ok bool, err error) {
	ok, err = state.Load(dir.ShadowReport(dataset), &r)
	return r, ok, err
}
