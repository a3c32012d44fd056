package fetch

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestScheduleFollowsCronInItsTimeZone(t *testing.T) {
	base := time.Date(2024, 3, 30, 23, 50, 0, 0, time.UTC) // the night in which Paris loses an hour
	tests := []struct {
		name string
		edit func(*Config)
		want []string // UTC
	}{
		{"every ten minutes", func(c *Config) { c.Schedule = "*/10 * * * *" }, []string{"31 00:00", "31 00:10", "31 00:20"}},
		{"in the morning of Paris", func(c *Config) { c.Schedule, c.TimeZone = "30 6 * * *", "Europe/Paris" }, []string{"31 04:30", "01 04:30", "02 04:30"}},
		{"with jitter", func(c *Config) { c.Schedule, c.Jitter = "0 * * * *", 10*time.Minute }, []string{"31 00:05", "31 01:05", "31 02:05"}},
		{"at an interval", func(c *Config) { c.PollInterval = 7 * time.Minute }, []string{"30 23:57", "31 00:04", "31 00:11"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.Name = "test"
			tt.edit(&c)
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			s, err := newSchedule(c, func(n int64) int64 { return n / 2 })
			if err != nil {
				t.Fatal(err)
			}
			due := base
			var got []string
			for range 3 {
				due = s.next(due, due)
				got = append(got, due.UTC().Format("02 15:04"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("due %v, want %v", got, tt.want)
			}
		})
	}
}

func TestIntervalKeepsItsBeatAfterALongPoll(t *testing.T) {
	s := schedule{interval: 10 * time.Minute}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	if got, want := s.next(start, start.Add(35*time.Minute)), start.Add(40*time.Minute); !got.Equal(want) {
		t.Errorf("next = %v, want %v: one poll, not those it missed", got, want)
	}
}

func TestGranuleIsDueAtItsHour(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	e := Expect{By: "14:30", LagDays: 1}
	for now, want := range map[string]string{
		"2024-05-18T12:29:59Z": "2024-05-16", // 14:29:59 in Paris
		"2024-05-18T12:30:00Z": "2024-05-17",
		"2024-05-18T23:59:00Z": "2024-05-17",
	} {
		at, _ := time.Parse(time.RFC3339, now)
		day, due, ok := e.lastDue(at, paris)
		if got := day.Format(time.DateOnly); !ok || got != want || due.After(at) {
			t.Errorf("at %s the granule of %s is due since %v, want that of %s", now, got, due, want)
		}
	}
	if _, _, ok := (Expect{}).lastDue(time.Now(), paris); ok {
		t.Error("something is due though nothing is expected")
	}
}

func TestLateGranuleIsToldOnceADay(t *testing.T) {
	now := time.Date(2024, 5, 18, 11, 0, 0, 0, time.UTC)
	var told []string
	b := newBench(t, func(c *Config, p *Parts) {
		c.Expect = Expect{By: "12:00", LagDays: 1}
		p.Now = func() time.Time { return now }
		p.OnLate = func(_ context.Context, l Late) { told = append(told, l.Day.Format("02")) }
	})
	b.archive.put(dated(16), "x", longAgo())
	poll := func(at time.Time, want ...string) {
		t.Helper()
		now = at
		b.pollNames(t)
		b.pollNames(t)
		if !slices.Equal(told, want) {
			t.Errorf("at %v late are %v, want %v", at, told, want)
		}
	}
	poll(now) // the granule of the 16th is there, that of the 17th not yet due
	poll(now.Add(2*time.Hour), "17")
	if got := b.State().Late.Day.Day(); got != 17 {
		t.Errorf("State() has day %d as late, want 17", got)
	}
	b.archive.put(dated(17), "y", longAgo())
	poll(now.Add(3*time.Hour), "17")
	if !b.State().Late.Day.IsZero() {
		t.Errorf("State() = %+v once it came", b.State())
	}
	poll(now.Add(24*time.Hour), "17", "18")
	b.archive.put(dated(18), "z", longAgo())
	poll(now.Add(time.Hour), "17", "18")
}

func TestClockThatJumpsNeitherSkipsNorStormsPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump, lists atomic.Int64
		b := newBench(t, func(c *Config, p *Parts) {
			c.Schedule = "0 * * * *"
			p.Now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		})
		b.archive.onList = func() error { lists.Add(1); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		out, done := make(chan Granule), make(chan error)
		go func() { done <- b.Run(ctx, out) }()
		expect := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := lists.Swap(0); got != want {
				t.Errorf("%s: %d polls, want %d", what, got, want)
			}
		}
		time.Sleep(10*time.Minute + time.Second)
		expect("at the start", 1)
		jump.Store(int64(30 * 24 * time.Hour)) // the clock is set, as after a boot
		time.Sleep(2 * time.Minute)
		expect("a month ahead", 1)
		jump.Store(0)
		time.Sleep(2 * time.Minute)
		expect("back again", 0)
		time.Sleep(2 * time.Hour)
		expect("two hours on", 2)
		cancel()
		<-done
	})
}

// An interval has passed when it has, whatever the clock was set to meanwhile: a poll
// neither comes an interval after the clock was set back, nor at once.
func TestAClockThatIsSetBackDoesNotPutAPollOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jump := atomic.Int64{}
		jump.Store(int64(24 * time.Hour))
		began := time.Now()
		var polls []time.Duration
		b := newBench(t, func(c *Config, p *Parts) {
			c.PollInterval = time.Hour
			p.Now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		})
		b.archive.onList = func() error { polls = append(polls, time.Since(began).Round(time.Minute)); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Run(ctx, make(chan Granule)) }()
		time.Sleep(50 * time.Minute)
		jump.Store(0)
		time.Sleep(100 * time.Minute)
		cancel()
		<-done
		if want := []time.Duration{0, time.Hour, 2 * time.Hour}; !slices.Equal(polls, want) {
			t.Errorf("polls after %v, want %v", polls, want)
		}
	})
}

func TestYoungObjectIsNotHeldForEverByAClockThatWasAhead(t *testing.T) {
	now := time.Date(2034, 1, 1, 0, 0, 0, 0, time.UTC) // wrong by ten years
	b := newBench(t, func(_ *Config, p *Parts) { p.Now = func() time.Time { return now } })
	right := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	b.archive.put("a.nc", "a", now) // just written, by an archive with the same clock
	b.pollNames(t)
	now = right
	b.pollNames(t)
	now = right.Add(b.cfg.Settle)
	if got := b.pollNames(t); len(got) != 1 {
		t.Errorf("Poll() = %v after it has settled by the right clock", got)
	}
}

func TestAGranuleIsDueByTheClockOrSoLongAfterItsTime(t *testing.T) {
	noon := time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		expect Expect
		want   string
	}{
		{Expect{LagDays: 1}, ""},
		{Expect{By: "14:30", LagDays: 1}, "2024-05-18T12:30:00Z"}, // half past two in Paris
		{Expect{By: "00:15", LagDays: 2}, "2024-05-18T22:15:00Z"},
		{Expect{Within: 6 * time.Hour, LagDays: 1}, "2024-05-17T18:00:00Z"},
		{Expect{By: "14:30", LagDays: 0, Within: 6 * time.Hour}, "2024-05-17T12:30:00Z"},
	} {
		due, known := Config{TimeZone: "Europe/Paris", Expect: tt.expect}.Due(noon)
		got := ""
		if known {
			got = due.UTC().Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("%+v: due at %q, want %q", tt.expect, got, tt.want)
		}
	}
}

func TestTheNextPollIsAnIntervalAwayAtMostWhateverTheClockDid(t *testing.T) {
	s := schedule{interval: 4 * time.Second}
	due := time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC)
	for _, by := range []time.Duration{
		0, time.Second, 4 * time.Second, 9 * time.Second, 24*time.Hour + time.Second,
		-time.Second, -4 * time.Second, -9 * time.Second, -24 * time.Hour, -24*time.Hour + time.Second, -24*time.Hour - time.Second,
	} {
		now := due.Add(by)
		next := s.next(due, now)
		if wait := next.Sub(now); wait <= 0 || wait > s.interval {
			t.Errorf("%v after the last one was due the next is %v away", by, wait)
		}
		if beat := next.Sub(due) % s.interval; beat != 0 {
			t.Errorf("%v after the last one was due the next is off the beat by %v", by, beat)
		}
	}
}
