package work

import (
	"path"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/pipeline/field"
)

// nameLike returns the name of a granule with the date, and where it has one the
// time of day, of another time; empty where its name has no date.
func nameLike(like ledger.Start, t time.Time) string {
	day, ok := fetch.DayInName(like.Name)
	if !ok {
		return ""
	}
	// The day in a name need not be that of the field: a mean of a day may be
	// dated to its end.
	y, m, d := day.Date()
	clock := like.Time.UTC()
	from := time.Date(y, m, d, clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
	to := from.Add(t.Sub(like.Time))
	pairs := []string{} // a longer form first: it holds a shorter one
	for _, layout := range []string{
		"20060102150405", "20060102T150405", "2006010215", "20060102T15", "20060102", "2006-01-02", "2006_01_02", "2006.01.02", "2006/01/02", "2006002", "2006-002", "2006/002",
	} {
		pairs = append(pairs, from.Format(layout), to.Format(layout))
	}
	folder, base := path.Split(like.Name)
	name := strings.NewReplacer(pairs...).Replace(base)
	folder = strings.NewReplacer(append(pairs, from.Format("2006/01/"), to.Format("2006/01/"), from.Format("2006/"), to.Format("2006/"))...).Replace(folder)
	if got, ok := fetch.DayInName(folder + name); !ok || !got.Equal(to.Truncate(24*time.Hour)) {
		return ""
	}
	return folder + name
}

// A series is the times of a dataset, and what tells which of them are missing.
type series struct {
	starts       []ledger.Start                    // in the order of times
	step         time.Duration                     // where there are few starts; 0: not known
	past, future time.Duration                     // window of an analysis
	due          func(time.Time) (time.Time, bool) // when the granule of a time is due; false: not known
	asked        fetch.Days                        // older days that are still being fetched; open: none
	whole        time.Time                         // when the archive was last seen whole
	now          time.Time
}

// A vacancy is a time of a series of which there is no granule.
type vacancy struct {
	time time.Time
	like ledger.Start // the nearest granule
	lane ledger.Lane
}

// vacancies are the vacancies of a series.
type vacancies struct {
	ready []vacancy     // that a product can be made for now
	until time.Time     // times before it need no other look, unless a granule comes there
	step  time.Duration // of the series; 0: not known
}

// vacancies returns the times of which the archive has no granule.
//
// A time is missing where two granules that follow one another are further apart
// than a step and a half; after the last granule, where it is overdue, which is
// known only of an archive with expect. The archive must have been seen whole
// since, so that a download under way is waited for. Only times with a granule in
// their window are filled, and of a gap in days that were fetched on request only
// one that is no longer than a window: the archive may never have been asked for
// the others.
func (s series) vacancies() vacancies {
	var granules []ledger.Start
	for _, x := range s.starts {
		if !x.Absent {
			granules = append(granules, x)
		}
	}
	const few = 8 // distances between fewer do not tell a step from a hole
	all := vacancies{step: s.step}
	if s.step == 0 || len(granules) >= few {
		all.step = field.Step(times(granules))
	}
	if all.step == 0 || len(granules) == 0 {
		return all
	}
	all.until = granules[len(granules)-1].Time
	for i, a := range granules {
		var b *ledger.Start // nil: a is the last granule
		n, apart := int(min(s.now.Sub(a.Time), s.past)/all.step), all.step
		if i+1 < len(granules) {
			b = &granules[i+1]
			n, apart = s.between(a, *b, all.step)
		}
		for k := 1; k <= n; k++ {
			v := vacancy{time: a.Time.Add(time.Duration(k) * apart).Round(time.Second), like: a, lane: a.Lane}
			if b != nil && 2*k > n+1 {
				v.like, v.lane = *b, b.Lane
			}
			switch {
			case !s.fillable(v.time, a, b) || s.taken(v.time, all.step) || !usual(granules, v.time, all.step):
			case s.overdue(v.time, b):
				all.ready = append(all.ready, v)
			case v.time.Before(all.until):
				all.until = v.time
			}
		}
	}
	return all
}

// between returns how many times are missing between two granules, and how far
// they are apart.
func (s series) between(a, b ledger.Start, step time.Duration) (n int, apart time.Duration) {
	gap := b.Time.Sub(a.Time)
	onRequest := a.Lane == ledger.Backfill || b.Lane == ledger.Backfill
	n = int((gap+step/2)/step) - 1
	if n < 1 || onRequest && gap > s.past+s.future {
		return 0, 0
	}
	return n, gap / time.Duration(n+1)
}

// fillable reports whether a granule lies in the window of a time: the one before
// it or the one after.
func (s series) fillable(t time.Time, before ledger.Start, after *ledger.Start) bool {
	return t.Sub(before.Time) <= s.past || after != nil && after.Time.Sub(t) <= s.future
}

// overdue reports whether the archive was seen whole after the granule of a time
// was due. A later granule shows that, where it is not known when one is due.
func (s series) overdue(t time.Time, later *ledger.Start) bool {
	if !s.asked.IsZero() && s.asked.Holds(t) || later != nil && s.whole.Before(later.Recorded) {
		return false // it may be on its way
	}
	if s.due != nil {
		if due, known := s.due(t); known {
			return !s.now.Before(due) && !s.whole.Before(due)
		}
	}
	return later != nil
}

// taken reports whether the absence of a time is on record.
func (s series) taken(t time.Time, step time.Duration) bool {
	i, _ := slices.BinarySearchFunc(s.starts, t.Add(-step/2), func(x ledger.Start, t time.Time) int { return x.Time.Compare(t) })
	return i < len(s.starts) && s.starts[i].Time.Sub(t) < step/2
}

// week is how far to each side the habit of a series is looked at.
const week = 7 * 24 * time.Hour

// usual reports whether a series has a granule at this time of day on most days:
// a sensor that sees by daylight has no granule at night.
func usual(granules []ledger.Start, t time.Time, step time.Duration) bool {
	const day, longestOfDay = 24 * time.Hour, 23 * time.Hour // with more than one a day
	if step > longestOfDay {
		return true
	}
	days, there := 0, 0
	for k := -int(week / day); k <= int(week/day); k++ {
		at := t.Add(time.Duration(k) * day)
		if k == 0 || at.Before(granules[0].Time.Add(-step/2)) || at.After(granules[len(granules)-1].Time.Add(step/2)) {
			continue
		}
		days++
		i, _ := slices.BinarySearchFunc(granules, at.Add(-step/2), func(x ledger.Start, t time.Time) int { return x.Time.Compare(t) })
		if i < len(granules) && granules[i].Time.Sub(at) < step/2 {
			there++
		}
	}
	return days > 0 && 2*there >= days
}

func times(starts []ledger.Start) []time.Time {
	all := make([]time.Time, len(starts))
	for i, s := range starts {
		all[i] = s.Time
	}
	return all
}
