package work

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/ingest"
)

const day = 24 * time.Hour

func june(d int) time.Time { return time.Date(2024, 6, d, 12, 0, 0, 0, time.UTC) }

// starts returns the starts of some days of June: a minus is an absence, a
// number above 100 a granule of the backfill. All became known on 1 July.
func starts(days ...int) []ledger.Start {
	var all []ledger.Start
	for _, d := range days {
		s := ledger.Start{Recorded: time.Date(2024, 7, 1, 8, 0, 0, 0, time.UTC), Lane: ledger.Live}
		if d > 100 {
			d, s.Lane = d-100, ledger.Backfill
		}
		if d < 0 {
			d, s.Absent = -d, true
		}
		s.Time, s.Name = june(d), june(d).Format("20060102")+"_chl.nc"
		all = append(all, s)
	}
	return all
}

func TestVacanciesAreTheDaysThatTheArchiveSkipped(t *testing.T) {
	july := func(d, hour int) time.Time { return time.Date(2024, 7, d, hour, 0, 0, 0, time.UTC) }
	// By nine in the morning two days later.
	expected := func(t time.Time) (time.Time, bool) {
		y, m, d := t.Date()
		return time.Date(y, m, d+2, 9, 0, 0, 0, time.UTC), true
	}
	base := func(days ...int) series {
		return series{starts: starts(days...), past: 5*day + 12*time.Hour, future: 2*day + 12*time.Hour, now: july(1, 9), whole: july(1, 8)}
	}
	for _, tt := range []struct {
		name string
		s    series
		edit func(s *series)
		want string
	}{
		{"nothing is known", base(), nil, ""},
		{"one granule tells no rhythm", base(4), nil, ""},
		{"nothing is missing", base(1, 2, 3, 4), nil, ""},
		{"a day", base(1, 2, 4, 5), nil, "3"},
		{"two days, each like the granule next to it", base(1, 2, 5, 6), nil, "3<2 4<5"},
		{"days on record", base(1, 2, -3, 5, 6), nil, "4"},
		{"a download is under way", base(1, 2, 4, 5), func(s *series) { s.whole = july(1, 7) }, ""},
		{"after the last one nobody knows", base(1, 2, 3), func(s *series) { s.now, s.whole = june(6), june(6) }, ""},
		{"overdue after the last one", base(1, 2, 3), func(s *series) { s.due, s.now, s.whole = expected, june(6), june(6) }, "4"},
		{"overdue, and the archive was not asked since", base(1, 2, 3), func(s *series) { s.due, s.now, s.whole = expected, june(6), june(5) }, ""},
		{"a silent archive is filled for as long as a granule is near", base(1, 2, 3), func(s *series) { s.due, s.now, s.whole = expected, june(25), june(25) }, "4 5 6 7 8"},
		{"skipped, but not due yet", base(1, 2, 3, 5), func(s *series) {
			s.due, s.now, s.whole = expected, june(5).Add(20*time.Hour), june(5).Add(20*time.Hour)
			for i := range s.starts {
				s.starts[i].Recorded = june(5)
			}
		}, ""},
		{"an outage leaves the days that no granule is near", base(1, 2, 3, 15, 16), nil, "4 5 6 7 8 13 14"},
		{"days that nobody asked the archive for", base(101, 102, 103, 15, 16), nil, ""},
		{"a hole in days that were asked for", base(101, 102, 103, 107, 108), nil, "4 5 6"},
	} {
		if tt.edit != nil {
			tt.edit(&tt.s)
		}
		var got []string
		for _, v := range tt.s.vacancies().ready {
			one := fmt.Sprint(v.time.Day())
			if v.time.Hour() != 12 {
				t.Errorf("%s: %v is not at noon", tt.name, v.time)
			}
			if strings.Contains(tt.want, "<") {
				one += fmt.Sprintf("<%d", v.like.Time.Day())
			}
			got = append(got, one)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.want)
		}
	}
}

// What waits is looked at again; what was done is not.
func TestALookGoesBackToTheFirstTimeThatWaits(t *testing.T) {
	july := time.Date(2024, 7, 2, 0, 0, 0, 0, time.UTC)
	s := series{starts: starts(1, 2, 3, 5, 6, 7, 9, 10), past: 5 * day, future: 2 * day, now: july, whole: july}
	if got := s.vacancies(); len(got.ready) != 2 || !got.until.Equal(june(10)) || got.step != day {
		t.Errorf("%+v, want two days, and all until the last granule looked through", got)
	}
	s.asked.From, s.asked.To = june(7), june(9)
	if got := s.vacancies(); len(got.ready) != 1 || !got.until.Equal(june(8)) {
		t.Errorf("%+v, want the fourth, and another look at the eighth", got)
	}
	l := looked{until: june(10), step: day}
	l.again(ledger.Granule{First: june(12)}, ingest.Granule{})
	if !l.until.Equal(june(10)) || !l.from(3*day).Equal(june(7)) {
		t.Errorf("after a granule at the end %+v", l)
	}
	l.again(ledger.Granule{First: june(5)}, ingest.Granule{})
	if !l.until.Equal(june(5)) {
		t.Errorf("after a granule of the fifth %+v", l)
	}
	if !(looked{}).from(day).IsZero() {
		t.Error("the first look does not begin at the beginning")
	}
	s = series{starts: starts(9, 11), step: day, past: 5 * day, future: 2 * day, now: july, whole: july}
	if got := s.vacancies(); len(got.ready) != 1 || got.step != day {
		t.Errorf("%+v, want the tenth: the step is that of the whole series", got)
	}
}

// A sensor that sees by daylight has no granule at night, and that is no hole.
func TestVacanciesOfAnHourlySeriesKnowTheNight(t *testing.T) {
	var all []ledger.Start
	for d := 1; d <= 6; d++ {
		for hour := 8; hour < 16; hour++ {
			if d != 4 || hour != 11 {
				all = append(all, ledger.Start{Time: time.Date(2024, 6, d, hour, 0, 0, 0, time.UTC), Lane: ledger.Live})
			}
		}
	}
	s := series{starts: all, past: 2 * day, future: day, now: june(7), whole: june(7)}
	got := s.vacancies().ready
	if len(got) != 1 || !got[0].time.Equal(time.Date(2024, 6, 4, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("vacancies: %+v, want the fourth at eleven", got)
	}
}

func TestNameLikeHasTheDateOfTheOtherDay(t *testing.T) {
	at := func(y, m, d, h int) time.Time { return time.Date(y, time.Month(m), d, h, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		name     string
		from, to time.Time
		want     string
	}{
		{"20240531_d-OC_CNR-L3-CHL-BLK_1KM-v02.nc", at(2024, 5, 31, 12), at(2024, 6, 1, 12), "20240601_d-OC_CNR-L3-CHL-BLK_1KM-v02.nc"},
		{"2024/05/20240531_chl.nc", at(2024, 5, 31, 0), at(2024, 6, 1, 0), "2024/06/20240601_chl.nc"},
		{"2023/365/A2023365.L3m_DAY.nc", at(2023, 12, 31, 12), at(2024, 1, 1, 12), "2024/001/A2024001.L3m_DAY.nc"},
		{"20240531120000-CMC-L4.nc", at(2024, 5, 31, 12), at(2024, 6, 1, 12), "20240601120000-CMC-L4.nc"},
		{"sst_2024-05-31T23.nc", at(2024, 5, 31, 23), at(2024, 6, 1, 23), "sst_2024-06-01T23.nc"},
		{"2024053123.nc", at(2024, 5, 31, 23), at(2024, 6, 1, 0), "2024060100.nc"},
		{"20240601_end_of_day.nc", at(2024, 5, 31, 12), at(2024, 6, 1, 12), "20240602_end_of_day.nc"}, // dated to the end of its day
		{"latest.nc", at(2024, 5, 31, 12), at(2024, 6, 1, 12), ""},
	} {
		if got := nameLike(ledger.Start{Name: tt.name, Time: tt.from}, tt.to); got != tt.want {
			t.Errorf("like %s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
