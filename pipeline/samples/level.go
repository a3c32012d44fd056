package samples

import (
	"math"
	"slices"
	"time"

	"lacuna/pipeline/field"
)

// A Level is a change of the level of a series: from a day on all values are higher,
// or lower, by one amount, as after a change of sensor or of processing. Weather and
// season come and go; a level stays, and the mean map of the days before is none of
// the days since.
type Level struct {
	After Date    `json:"after"` // last day at the level of before
	Since Date    `json:"since"` // first day at the new one; what lies between is of either
	By    float64 `json:"by"`    // in the space of the transform
}

// Same reports whether o is the same change, found on other days.
func (l Level) Same(o Level) bool { return apart(l.Since, o.Since) < levelDays }

// LevelBefore returns what has to be added to values of a time to bring them to the
// level of the present.
func LevelBefore(levels []Level, at time.Time) float64 {
	sum := 0.0
	for _, l := range levels {
		if DateOf(at) < l.Since {
			sum += l.By
		}
	}
	return sum
}

// AtPresent returns s with all days at the level of the present: those before a
// change are moved by it, and those of which the level is not known are left out.
// Without a change it is s itself.
func (s Series) AtPresent(levels []Level) Series {
	if len(levels) == 0 {
		return s
	}
	days := s.Days
	s.Days = nil
	for _, d := range days {
		date := DateOf(d.Time)
		if slices.ContainsFunc(levels, func(l Level) bool { return l.After < date && date < l.Since }) {
			continue
		}
		if by := float32(LevelBefore(levels, d.Time)); by != 0 {
			d.Values = slices.Clone(d.Values)
			for i := range d.Values {
				d.Values[i] += by
			}
		}
		s.Days = append(s.Days, d)
	}
	return s
}

const (
	// levelDays is how many days on either side of a day say whether the level changed
	// there: a month averages the weather, and a season is nearly straight in it.
	levelDays = 30
	// levelReach is how far these may lie from it, in days.
	levelReach = 60
	// leastLevelDays is the least number of them: a week of weather must not pass for a
	// level.
	leastLevelDays = 12
	// sizeDays is how many days on either side say by how much: of more the season
	// takes part, and a line through them, taken out, brings more noise than it takes.
	sizeDays = 10
	// levelSigmas is how far a change must stand out of what the same measure says
	// elsewhere in the series, in standard deviations of that. It is asked of every day,
	// and weather has more large jumps than a Gaussian: up to 4.6 in 48 simulated series
	// of 580 days, 4.9 in four of five recordings of chlorophyll, and 5.9 in the fifth,
	// by a bloom; all of those beyond 4 are smaller than leastLevel. The change of the
	// year in fast motion has 5 to 11.
	levelSigmas = 4.5
	// leastLevel is the least change, in standard deviations of the values before. A
	// network departs from an analysis of what it sees, so that a smaller one costs it
	// little: one of 2.4 makes 14 % more error. Blooms can be as sudden, and are lower.
	leastLevel = 1.5
	// leastUsual is on how many days the measure has to be known to be called usual.
	leastUsual = 60
	// mostLevels is how many changes of one series are looked for.
	mostLevels = 4
)

// Levels returns the changes of the level of s: those that are known, in order of
// time, and further ones that its days show beyond chance. Days that judge are not
// looked at.
func (s Series) Levels(c Calendar, known []Level) []Level {
	all := slices.Clone(known)
	for range mostLevels {
		l, ok := s.AtPresent(all).level(c, all)
		if !ok {
			break
		}
		all = append(all, l)
		slices.SortFunc(all, func(a, b Level) int { return int(a.Since - b.Since) })
	}
	return all
}

// level returns the clearest change of the days that do not judge, and whether it
// counts. It is not looked for near those that are known.
func (s Series) level(c Calendar, known []Level) (Level, bool) {
	s.Days = slices.DeleteFunc(slices.Clone(s.Days), func(d Day) bool { return c.Role(DateOf(d.Time)) == Judge })
	means := s.dailyMeans()
	strengths := map[int]float64{}
	best, last := 0, 0
	for k := range means {
		strength, ok := strengthOf(means, k)
		if !ok || slices.ContainsFunc(known, Level{Since: means[k].day}.Same) {
			continue
		}
		strengths[k], last = strength, k
		if strength > strengths[best] {
			best = k
		}
	}
	if best == 0 || best == last { // it may have changed later, where there are too few days yet
		return Level{}, false
	}
	var elsewhere []float64
	for k, strength := range strengths {
		if apart(means[k].day, means[best].day) >= levelDays {
			elsewhere = append(elsewhere, strength)
		}
	}
	if len(elsewhere) < leastUsual {
		return Level{}, false
	}
	slices.Sort(elsewhere)
	const gaussian = 0.6745 // median of the absolute value, in standard deviations
	usual := elsewhere[len(elsewhere)/2] / gaussian
	l := Level{After: means[best-1].day, Since: means[best].day}
	l.By = meanOf(means[best:min(best+sizeDays, len(means))]) - meanOf(means[max(best-sizeDays, 0):best])
	return l, strengths[best] > levelSigmas*usual && math.Abs(l.By) > leastLevel*s.spreadBefore(l.Since) && stays(means, best, l.By)
}

// stays reports whether a change before day k is one from what was for weeks to what
// is for weeks: neither the beginning nor the end of a spell of weather.
func stays(means []dailyMean, k int, by float64) bool {
	before, after := means[max(k-levelDays, 0):k], means[k:min(k+levelDays, len(means))]
	long := meanOf(after[len(after)/2:]) - meanOf(before[max(len(before)-sizeDays, 0):])
	since := meanOf(after[:min(sizeDays, len(after))]) - meanOf(before[:len(before)/2])
	const most = 0.6 // the season moves on meanwhile
	return long/by > most && since/by > most
}

func apart(a, b Date) Date { return max(a-b, b-a) }

// spreadBefore returns the standard deviation of the values before a day; infinite
// where there are none.
func (s Series) spreadBefore(day Date) float64 {
	var values [][]float32
	for _, d := range s.Days {
		if DateOf(d.Time) < day {
			values = append(values, d.Values)
		}
	}
	norm, err := field.NormalisationOf(field.Summarise(values...))
	if err != nil {
		return math.Inf(1)
	}
	return norm.Std
}

// dailyMean is the mean anomaly of the observed cells of a day.
type dailyMean struct {
	day   Date
	value float64
}

func meanOf(some []dailyMean) float64 {
	sum := 0.0
	for _, m := range some {
		sum += m.value
	}
	return sum / float64(len(some))
}

// dailyMeans returns the mean anomalies of the days of s about its mean map, so that
// it does not count which part of the sea was seen. A day with few observations has
// none.
func (s Series) dailyMeans() []dailyMean {
	scaling, err := scalingOf(s, s.Days)
	if err != nil {
		return nil // without values there is no level
	}
	counts := make([]int, len(s.Days))
	means := make([]dailyMean, len(s.Days))
	for k, d := range s.Days {
		sum := 0.0
		for i, v := range d.Values {
			if v == v { // not NaN
				sum, counts[k] = sum+float64(v)-float64(scaling.Mean[i]), counts[k]+1
			}
		}
		means[k] = dailyMean{DateOf(d.Time), sum / float64(max(counts[k], 1))}
	}
	const few = 4 // less than a quarter of the usual number
	usual := slices.Sorted(slices.Values(counts))[len(counts)/2]
	out := means[:0]
	for k, m := range means {
		if few*counts[k] >= usual {
			out = append(out, m)
		}
	}
	return out
}

// strengthOf returns how clearly the level changes before day k: the size of a step,
// fitted together with a straight line to the days around it, over its standard
// error, but for the noise of a day. It reports false where there are too few days.
func strengthOf(means []dailyMean, k int) (float64, bool) {
	from, end := k, k
	for from > 0 && k-from < levelDays && means[k].day-means[from-1].day <= levelReach {
		from--
	}
	for end < len(means) && end-k < levelDays && means[end].day-means[k].day <= levelReach {
		end++
	}
	if k-from < leastLevelDays || end-k < leastLevelDays {
		return 0, false
	}
	some := means[from:end]
	n, share, level, middle := float64(len(some)), float64(end-k)/float64(len(some)), meanOf(some), 0.0
	for _, m := range some {
		middle += float64(m.day) / n
	}
	var tt, ts, ty, ss, sy float64 // sums of the products of time, step and value
	for i, m := range some {
		t, s, y := float64(m.day)-middle, -share, m.value-level
		if from+i >= k {
			s++
		}
		tt, ts, ty, ss, sy = tt+t*t, ts+t*s, ty+t*y, ss+s*s, sy+s*y
	}
	own := ss - ts*ts/tt // of the step, less what a line explains of it
	return math.Abs(sy-ts*ty/tt) / math.Sqrt(own), true
}
