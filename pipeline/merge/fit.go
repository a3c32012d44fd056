package merge

import (
	"math"
	"slices"
	"strings"
	"time"
)

// A Record is the summaries of the days so far, in the order of dates.
type Record struct {
	Days []Day `json:"days"`
}

const (
	// keptDays bounds a record: three years show a season three times, and sensors
	// age.
	keptDays = 3 * 366
	// seasonDays is half of a season.
	seasonDays = 45
	// fullDay is the number of common cells from which a day has its full weight:
	// they are correlated, and more of them tell little more about the day.
	fullDay = 100
	// leastDays is the number of days from which a season or a region is told apart
	// from what is above it, and shrinkDays that which counts as much as what is
	// above.
	leastDays, shrinkDays = 10, 3
)

// Put adds a day, in place of the one of the same date.
func (r *Record) Put(d Day) {
	at, known := slices.BinarySearchFunc(r.Days, d.Date, func(d Day, date string) int { return strings.Compare(d.Date, date) })
	switch {
	case known && len(d.Pairs) == 0:
		r.Days = slices.Delete(r.Days, at, at+1)
	case known:
		r.Days[at] = d
	case len(d.Pairs) > 0:
		r.Days = slices.Insert(r.Days, at, d)
	}
	r.Days = r.Days[max(0, len(r.Days)-keptDays):]
}

// A Fit is the bias and the error of each source, by region.
type Fit struct {
	shape   Shape
	sources []Source
	regions [][]Quality // by region and source
}

// A Quality is what was fitted of a source.
type Quality struct {
	Bias  float64 // against the reference
	Sigma float64 // standard error; NaN: not known
	Days  float64 // days, by their weight, that tell of it; 0: none does
}

// Fit returns the fit for a date, from that day and the days before it.
func (r *Record) Fit(date time.Time, shape Shape, sources []Source) Fit {
	rows, cols := shape.regions()
	f := Fit{shape: shape, sources: sources, regions: make([][]Quality, rows*cols)}
	var days []Day
	first := date.UTC().AddDate(0, 0, -keptDays).Format(time.DateOnly)
	last := date.UTC().Format(time.DateOnly)
	for _, d := range r.Days {
		if d.Date >= first && d.Date <= last {
			days = append(days, d)
		}
	}
	season := slices.DeleteFunc(slices.Clone(days), func(d Day) bool { return !inSeason(d.Date, date) })
	for region := range f.regions {
		found := map[[2]int]contrast{}
		for a := range sources {
			for b := a + 1; b < len(sources); b++ {
				pair := [2]string{sources[a].Name, sources[b].Name}
				c := contrastOf(days, pair, wholeGrid).orNone()
				c = c.towards(contrastOf(season, pair, wholeGrid))
				found[[2]int{a, b}] = c.towards(contrastOf(season, pair, region))
			}
		}
		f.regions[region] = solve(sources, found)
	}
	return f
}

// inSeason reports whether a day lies within half a season of a date, in any year.
func inSeason(day string, date time.Time) bool {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return false
	}
	apart := t.YearDay() - date.UTC().YearDay()
	if apart < 0 {
		apart = -apart
	}
	return min(apart, 366-apart) <= seasonDays
}

// A contrast is what days tell about two sources a and b.
type contrast struct {
	bias  float64 // a - b
	sum   float64 // σa² + σb²
	diff  float64 // σa² - σb²
	days  float64 // that tell bias and sum, by their weight
	based float64 // that tell diff
}

// contrastOf returns what days tell about a pair in a region.
func contrastOf(days []Day, names [2]string, region int) contrast {
	var bias, spread, diff []weighed
	var c contrast
	for _, d := range days {
		for _, p := range d.Pairs {
			if p.Region != region {
				continue
			}
			sign := 1.0
			switch [2]string{p.A, p.B} {
			case names:
			case [2]string{names[1], names[0]}: // the order of the sources has changed since
				sign = -1
			default:
				continue
			}
			w := min(float64(p.Cells)/fullDay, 1)
			bias = append(bias, weighed{sign * p.Bias, w})
			spread = append(spread, weighed{p.Spread * p.Spread, w})
			c.days += w
			if p.Backed >= leastCells {
				w := min(float64(p.Backed)/fullDay, 1)
				diff = append(diff, weighed{sign * (p.SpreadA*p.SpreadA - p.SpreadB*p.SpreadB), w})
				c.based += w
			}
		}
	}
	if c.days == 0 {
		return c
	}
	c.bias = weightedMedian(bias)
	off := make([]weighed, len(bias))
	for i, b := range bias {
		off[i] = weighed{math.Abs(b.x - c.bias), b.w}
	}
	between := madToSigma * weightedMedian(off) // an error that all cells of a day share
	c.sum = weightedMedian(spread) + between*between
	if c.based > 0 {
		c.diff = weightedMedian(diff)
	}
	return c
}

// orNone returns c drawn towards sources that do not differ, by as much as one day.
func (c contrast) orNone() contrast {
	c.bias *= c.days / (c.days + 1)
	c.diff *= c.based / (c.based + shrinkDays)
	return c
}

// towards returns c, of all days or regions, drawn towards what some of them tell,
// as far as they suffice.
func (c contrast) towards(part contrast) contrast {
	share := func(days float64) float64 {
		enough := max(days-leastDays, 0)
		return enough / (enough + shrinkDays)
	}
	w := share(part.days)
	c.bias += w * (part.bias - c.bias)
	c.sum += w * (part.sum - c.sum)
	c.diff += share(part.based) * (part.diff - c.diff)
	return c
}

// solve returns the quality of each source from the contrasts of all pairs.
func solve(sources []Source, found map[[2]int]contrast) []Quality {
	out := make([]Quality, len(sources))
	variance, weight := make([]float64, len(sources)), make([]float64, len(sources))
	add := func(a, b int, c contrast) {
		out[a].Days, out[b].Days = out[a].Days+c.days, out[b].Days+c.days
		if c.days == 0 || sources[a].sensor() == sources[b].sensor() {
			return
		}
		diff := c.diff
		if ea, eb := sources[a].Error, sources[b].Error; c.based == 0 && ea > 0 && eb > 0 {
			diff = c.sum * (ea*ea - eb*eb) / (ea*ea + eb*eb)
		}
		// A tenth of the sum is left to each: no sensor is without error.
		diff = min(max(diff, -0.8*c.sum), 0.8*c.sum)
		variance[a], weight[a] = variance[a]+c.days*(c.sum+diff)/2, weight[a]+c.days
		variance[b], weight[b] = variance[b]+c.days*(c.sum-diff)/2, weight[b]+c.days
	}
	for a := range sources { // in order: sums of the same numbers must be the same to the bit
		for b := a + 1; b < len(sources); b++ {
			add(a, b, found[[2]int{a, b}])
		}
	}
	for i, s := range sources {
		switch {
		case weight[i] > 0:
			out[i].Sigma = math.Sqrt(variance[i] / weight[i])
		case s.Error > 0:
			out[i].Sigma = s.Error
		default:
			out[i].Sigma = math.NaN()
		}
	}
	solveBias(out, found)
	return out
}

// solveBias finds the biases that agree best with those of all pairs, by days, where
// that of the reference is 0: a source that never meets the reference is compared by
// way of others.
func solveBias(out []Quality, found map[[2]int]contrast) {
	const rounds = 100 // far more than a handful of sources needs
	for range rounds {
		for i := 1; i < len(out); i++ {
			var sum, days float64
			for j := range out {
				c, sign := found[[2]int{i, j}], 1.0
				if j < i {
					c, sign = found[[2]int{j, i}], -1
				}
				if i != j && c.days > 0 {
					sum += c.days * (out[j].Bias + sign*c.bias)
					days += c.days
				}
			}
			if days > 0 {
				out[i].Bias = sum / days
			}
		}
	}
}

// Quality returns what was fitted of a source at a cell: between the centres of
// regions it changes linearly.
func (f Fit) Quality(source, cell int) Quality {
	rows, cols := f.shape.regions()
	y0, y1, wy := between(cell/f.shape.Width, f.shape.Height, rows)
	x0, x1, wx := between(cell%f.shape.Width, f.shape.Width, cols)
	at := func(y, x int) Quality { return f.regions[y*cols+x][source] }
	mix := func(of func(Quality) float64) float64 {
		north := (1-wx)*of(at(y0, x0)) + wx*of(at(y0, x1))
		south := (1-wx)*of(at(y1, x0)) + wx*of(at(y1, x1))
		return (1-wy)*north + wy*south
	}
	return Quality{
		Bias:  mix(func(q Quality) float64 { return q.Bias }),
		Sigma: mix(func(q Quality) float64 { return q.Sigma }),
		Days:  at(y0, x0).Days,
	}
}

// between returns the two of n equal parts of an axis whose centres lie around an
// index, and how far it is on the way to the second.
func between(i, length, n int) (lower, upper int, weight float64) {
	at := (float64(i)+0.5)*float64(n)/float64(length) - 0.5
	at = min(max(at, 0), float64(n-1))
	lower = int(at)
	return lower, min(lower+1, n-1), at - float64(lower)
}

// Overall returns the mean quality of a source over the grid.
func (f Fit) Overall(source int) Quality {
	var q Quality
	n := float64(len(f.regions))
	for _, r := range f.regions {
		q.Bias += r[source].Bias / n
		q.Sigma += r[source].Sigma / n
		q.Days += r[source].Days / n
	}
	return q
}
