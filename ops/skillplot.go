package ops

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"lacuna/internal/figure"
)

// skillsShown is the number of scores in the plot: more than a year of days, so
// that seasons can be told from drift.
const skillsShown = 500

// The plot, in units of its drawing: a browser scales it.
const (
	plotWidth, plotHeight  = 720, 180
	plotLeft, plotRight    = 44, 8
	plotTop, plotBottom    = 8, 24
	medianDays             = 7
	leastDecadesOfAnError  = 0.5
	mostTicksOfAPlot       = 6
	dotRadius              = 1.8
	dateWidth              = 64 // width of a printed date
	plotInner, plotInnerUp = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
)

// plotSkill draws the errors of the days on a logarithmic axis, for errors of
// twice and of half the size are equally far from the usual one. Colours come
// from the style sheet; the names of methods are escaped.
func plotSkill(dataset string, points []Skill) template.HTML {
	points = slices.DeleteFunc(slices.Clone(points), func(p Skill) bool { return !(p.MSE > 0) || math.IsInf(p.MSE, 0) })
	slices.SortStableFunc(points, func(a, b Skill) int { return a.Day.Compare(b.Day) })
	if len(points) == 0 {
		return ""
	}
	a := newSkillAxes(points)
	var b strings.Builder
	last := points[len(points)-1]
	label := fmt.Sprintf("%s: mean square error of %d days from %s to %s, the last %s", dataset, len(points),
		points[0].Day.Format(time.DateOnly), last.Day.Format(time.DateOnly), figure.Number(last.MSE))
	fmt.Fprintf(&b, `<svg class="skill" viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(label))
	a.drawGrid(&b)
	for _, p := range points {
		fmt.Fprintf(&b, `<circle class="k-%s" cx="%.1f" cy="%.1f" r="%v"><title>%s</title></circle>`, kindClass(p.Kind), a.x(p.Day), a.y(p.MSE), dotRadius,
			template.HTMLEscapeString(fmt.Sprintf("%s, %s, %s: %s; %s within the 90 %% interval; %d pixels",
				p.Day.Format(time.DateOnly), p.Kind, p.Method, figure.Number(p.MSE), figure.Percent(p.Within90), p.Pixels)))
	}
	b.WriteString(`<polyline class="median" points="`)
	for i, p := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", a.x(p.Day), a.y(medianError(points, i)))
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()) // every word from outside was escaped above
}

// kindClass keeps the kinds that have a look of their own.
func kindClass(kind string) string {
	if kind == "revealed" {
		return "revealed"
	}
	return "overlay"
}

// medianError is the median of the errors of the days that end with point i.
func medianError(points []Skill, i int) float64 {
	since := points[i].Day.Add(-medianDays * day)
	var errs []float64
	for j := i; j >= 0 && points[j].Day.After(since); j-- {
		errs = append(errs, points[j].MSE)
	}
	slices.Sort(errs)
	return errs[len(errs)/2]
}

// skillAxes take days and errors to places.
type skillAxes struct {
	from, to  time.Time
	low, high float64 // decimal logarithms
}

func newSkillAxes(points []Skill) skillAxes {
	a := skillAxes{from: points[0].Day, to: points[len(points)-1].Day, low: math.Inf(1), high: math.Inf(-1)}
	if a.to.Sub(a.from) < medianDays*day {
		a.from = a.to.Add(-medianDays * day)
	}
	for _, p := range points {
		a.low, a.high = min(a.low, math.Log10(p.MSE)), max(a.high, math.Log10(p.MSE))
	}
	if lack := leastDecadesOfAnError - (a.high - a.low); lack > 0 {
		a.low, a.high = a.low-lack/2, a.high+lack/2
	}
	margin := 0.05 * (a.high - a.low)
	a.low, a.high = a.low-margin, a.high+margin
	return a
}

func (a skillAxes) x(t time.Time) float64 {
	return plotLeft + plotInner*float64(t.Sub(a.from))/float64(a.to.Sub(a.from))
}

func (a skillAxes) y(mse float64) float64 {
	return plotTop + plotInnerUp*(a.high-math.Log10(mse))/(a.high-a.low)
}

// drawGrid draws the lines of 1, 2 and 5 times a power of ten, and of months,
// with the first and the last day at the ends.
func (a skillAxes) drawGrid(b *strings.Builder) {
	for _, v := range errorTicks(a.low, a.high) {
		y := a.y(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, y, y, plotLeft-6, y+4, figure.Number(v))
	}
	months := int(a.to.Sub(a.from)/(30*day)) + 1
	step := max(1, (months+mostTicksOfAPlot-1)/mostTicksOfAPlot)
	month := time.Date(a.from.Year(), a.from.Month(), 1, 0, 0, 0, 0, time.UTC)
	for ; !month.After(a.to); month = month.AddDate(0, step, 0) {
		x := a.x(month)
		if x < plotLeft {
			continue
		}
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, plotTop, plotHeight-plotBottom)
		if x > plotLeft+dateWidth && x < plotWidth-plotRight-2*dateWidth {
			fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, x+2, plotHeight-8, month.Format("Jan 2006"))
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`,
		plotLeft, plotHeight-8, a.from.Format("2 Jan 2006"), plotWidth-plotRight, plotHeight-8, a.to.Format("2 Jan 2006"))
}

// errorTicks returns the numbers to be written beside the axis, few of them.
func errorTicks(low, high float64) []float64 {
	var all []float64
	for _, mantissas := range [][]float64{{1, 2, 5}, {1}} {
		all = nil
		for power := math.Floor(low); power <= high; power++ {
			for _, m := range mantissas {
				if v := m * math.Pow(10, power); math.Log10(v) >= low && math.Log10(v) <= high {
					all = append(all, v)
				}
			}
		}
		if len(all) <= mostTicksOfAPlot {
			break
		}
	}
	return all
}
