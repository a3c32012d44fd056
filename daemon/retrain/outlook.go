package retrain

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Outlook is what the gate could say of a model that is trained on the days there
// are.
type Outlook struct {
	Days   int
	Wanted int // train.first_days
	Judge  int // days of the calendar that judge
	Judged bool
	Begins samples.Date // first day with enough of all, if no further field is missing; 0: not within years
}

// ready reports whether a training can begin.
func (o Outlook) ready() bool { return o.Days >= o.Wanted && o.Judged }

// words says why a training cannot begin.
func (o Outlook) words() string {
	text := fmt.Sprintf("%d of %d days are there", o.Days, o.Wanted)
	if o.Days >= o.Wanted {
		text = fmt.Sprintf("%d days are there, of which %d would judge, and the gate needs days to learn from, days to choose by and %d days in a row that judge",
			o.Days, o.Judge, skill.LeastDays)
	}
	if o.Begins == 0 {
		return text
	}
	return fmt.Sprintf("%s; if none is missing from now on, a training begins with the field of %v", text, o.Begins)
}

// mostAhead bounds how far an outlook looks ahead, in fields.
const mostAhead = 2000

// outlookOf returns the outlook of a training on days. The calendar is the
// dataset's, empty before its first training, which would make it of the days.
func outlookOf(known samples.Calendar, times []time.Time, wanted int, cfg samples.SplitConfig) Outlook {
	days := daysOf(times)
	o := Outlook{Days: countDates(days), Wanted: wanted}
	o.Judge, o.Judged = judges(known, days, cfg)
	if o.ready() || len(days) < 2 {
		return o
	}
	step := field.Step(times)
	for range mostAhead {
		days = append(days, samples.Day{Time: days[len(days)-1].Time.Add(step)})
		if countDates(days) < wanted {
			continue
		}
		if _, enough := judges(known, days, cfg); enough {
			o.Begins = samples.DateOf(days[len(days)-1].Time)
			return o
		}
	}
	return o
}

// daysOf returns times as days of a series, in order.
func daysOf(times []time.Time) []samples.Day {
	times = slices.Clone(times)
	slices.SortFunc(times, time.Time.Compare)
	days := make([]samples.Day, len(times))
	for i, t := range times {
		days[i].Time = t
	}
	return days
}

// countDates returns the number of different dates of days in order.
func countDates(days []samples.Day) int {
	n := 0
	for i, d := range days {
		if i == 0 || samples.DateOf(d.Time) != samples.DateOf(days[i-1].Time) {
			n++
		}
	}
	return n
}

// judges returns how many of the days judge, and whether a model that is trained on
// the others can be judged by them.
func judges(known samples.Calendar, days []samples.Day, cfg samples.SplitConfig) (judging int, enough bool) {
	calendar := samples.Extend(known, days, cfg)
	var uses samples.Assignment
	for _, d := range days {
		date := samples.DateOf(d.Time)
		switch calendar.Role(date) {
		case samples.Learn:
			uses.Learn = append(uses.Learn, date)
		case samples.Choose:
			uses.Choose = append(uses.Choose, date)
		case samples.Judge:
			uses.Judge = append(uses.Judge, date)
		}
	}
	return len(uses.Judge), canJudge(uses)
}

// canJudge reports whether the gate can judge a version with such days: two to
// learn from, two that choose and are far enough apart for the gaps of the one to
// be laid over the other, and enough that judge to tell a difference from chance.
func canJudge(uses samples.Assignment) bool {
	const least = 2
	apart := samples.Date(samples.DefaultOverlays(1).ApartDays)
	n := len(uses.Choose)
	if len(uses.Learn) < least || n < least || uses.Choose[n-1]-uses.Choose[0] < apart {
		return false
	}
	judge := make([]time.Time, len(uses.Judge))
	for i, d := range uses.Judge {
		judge[i] = d.Time()
	}
	return skill.DefaultBootstrap().Enough(judge)
}

// Unjudged says why the gate will not be able to tell whether the version is
// better; empty: it may.
func (t *Training) Unjudged() (string, error) {
	uses, err := samples.Uses(t.job.Series, t.job.Calendars, t.job.Seen)
	if err != nil {
		return "", err
	}
	judging := 0
	for _, u := range uses {
		if canJudge(u) {
			return "", nil
		}
		judging += len(u.Judge)
	}
	return fmt.Sprintf("%d days judge, and the gate needs %d in a row: the version will be written and not promoted", judging, skill.LeastDays), nil
}

// TooFewDays reports whether a training failed because its days cannot choose or
// judge, which more days mend and another attempt does not.
func TooFewDays(err error) bool {
	return errors.Is(err, samples.ErrNoOverlays) || errors.Is(err, samples.ErrAllSeen)
}

// calendar returns the calendar that a training of the dataset would go by, empty
// where it would make one. Of several places the one with most days is meant:
// the service has one grid for a dataset.
func (s *Scheduler) calendar(champion string) (samples.Calendar, error) {
	store := modelstore.New(s.Config.Store, s.Now)
	stored, err := store.Calendar(s.Dataset.Name)
	if err != nil {
		return samples.Calendar{}, err
	}
	var cards []modelstore.Card
	if champion != "" {
		v, err := store.Peek(champion)
		if err != nil {
			return samples.Calendar{}, err
		}
		cards = append(cards, v.Card)
	}
	all, err := knownCalendars(s.Dataset.Name, stored, cards...)
	if err != nil || len(all.Seas) == 0 {
		return samples.Calendar{}, err
	}
	return slices.MaxFunc(all.Seas, func(a, b seaCalendar) int {
		return len(a.Calendar.Intervals) - len(b.Calendar.Intervals)
	}).Calendar, nil
}
