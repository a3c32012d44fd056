package samples

import (
	"time"

	"lacuna/pipeline/field"
)

// A Place is the sea of one series: its grid, its sea mask and its scaling.
type Place struct {
	Grid    field.Grid
	Sea     field.Mask // must not be changed
	Scaling Scaling

	number     int
	first, end int // range of its days in the archive
	covariates []Covariate
}

// Days returns the days of the place: those from first to before end.
func (p *Place) Days() (first, end int) { return p.first, p.end }

// CutMap returns the cells of a window from a map of the whole grid, NaN
// outside of it.
func (p *Place) CutMap(m []float32, w Window) []float32 {
	out := make([]float32, w.Len())
	for i := range out {
		out[i] = field.NaN()
	}
	p.rows(w, func(dst, src, n int) { copy(out[dst:dst+n], m[src:src+n]) })
	return out
}

func (p *Place) cutSea(w Window) []bool {
	out := make([]bool, w.Len())
	p.rows(w, func(dst, src, n int) { copy(out[dst:dst+n], p.Sea[src:src+n]) })
	return out
}

// rows calls f for each run of a row of w that lies on the grid: n cells
// from dst in the window and from src in the grid. A window that is narrower than a
// grid that goes round the globe goes on at its other side, with a run on either.
func (p *Place) rows(w Window, f func(dst, src, n int)) {
	height, width := p.Grid.Height(), p.Grid.Width()
	shifts := []int{0}
	if w.Width <= width && p.Grid.Periodic() {
		shifts = []int{-width, 0, width}
	}
	for row := max(w.Row, 0); row < min(w.Row+w.Height, height); row++ {
		for _, shift := range shifts {
			left, right := max(w.Col+shift, 0), min(w.Col+shift+w.Width, width)
			if left < right {
				f((row-w.Row)*w.Width+left-w.Col-shift, row*width+left, right-left)
			}
		}
	}
}

// cutGrid returns the axes of a window. Beyond the grid they go on with the
// step of its edge.
func (p *Place) cutGrid(w Window) field.Grid {
	return p.Grid.Cut(w.Row, w.Col, w.Height, w.Width)
}

// archive is the common part of both sides of a split: days in normalised
// anomalies, series after series. Only days of one place are neighbours.
type archive struct {
	transform field.Transform
	places    []*Place
	placeOf   []*Place // place of each day
	days      []Day    // anomalies
	numbers   []int64
}

// add appends days of s as a place of their own.
func (a *archive) add(s Series, days []Day, scaling Scaling) {
	p := &Place{Grid: s.Grid, Sea: s.Sea, Scaling: scaling, number: len(a.places), first: len(a.days), end: len(a.days) + len(days), covariates: s.Covariates}
	a.transform, a.places = s.Transform, append(a.places, p)
	for _, d := range days {
		values := make([]float32, len(d.Values))
		for cell, v := range d.Values {
			values[cell] = scaling.Forward(v, cell)
		}
		a.days, a.numbers = append(a.days, Day{Time: d.Time, Values: values, Drift: scaling.normalisedDrift(d.Drift), Covariates: d.Covariates}), append(a.numbers, dayNumber(d.Time))
		a.placeOf = append(a.placeOf, p)
	}
}

// Days returns the number of days of all places.
func (a *archive) Days() int { return len(a.days) }

// Time returns the time of a day.
func (a *archive) Time(day int) time.Time { return a.days[day].Time }

// Places returns the places, one for each series.
func (a *archive) Places() []*Place { return a.places }

// Place returns the place of a day.
func (a *archive) Place(day int) *Place { return a.placeOf[day] }

// Transform returns the space in which anomalies are taken.
func (a *archive) Transform() field.Transform { return a.transform }

// The following methods return data of the first place, for callers with a
// single series.

// Grid returns the grid of the first place.
func (a *archive) Grid() field.Grid { return a.places[0].Grid }

// Sea returns the sea mask of the first place. It must not be changed.
func (a *archive) Sea() field.Mask { return a.places[0].Sea }

// Scaling returns the scaling of the first place.
func (a *archive) Scaling() Scaling { return a.places[0].Scaling }

// CutMap cuts a map of the first place.
func (a *archive) CutMap(m []float32, w Window) []float32 { return a.places[0].CutMap(m, w) }
