package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"lacuna/internal/faults"
)

// Config holds the settings of a Watcher.
type Config struct {
	Name         string        `yaml:"-"`             // name of the archive, for the log
	PollInterval time.Duration `yaml:"poll_interval"` // from one listing to the next, where there is no schedule
	Schedule     string        `yaml:"schedule"`      // cron expression: when to list
	TimeZone     string        `yaml:"time_zone"`     // time zone of schedule and expect
	Jitter       time.Duration `yaml:"jitter"`        // a scheduled listing is late by up to this, so that not everybody asks at once
	Settle       time.Duration `yaml:"settle"`        // an object that changed less than this ago is left alone
	Prefixes     []string      `yaml:"prefixes"`      // beginnings of names to list; {year}, {month}, {day}, {yearday} are filled in
	Lookback     time.Duration `yaml:"lookback"`      // how old the day of a granule may be; 0: any
	Backfill     Days          `yaml:"backfill"`      // older days, fetched while nothing newer waits
	Expect       Expect        `yaml:"expect"`
	Parallel     int           `yaml:"parallel"`             // downloads at a time
	LeastRate    int           `yaml:"least_kib_per_second"` // a download slower than this over five minutes is left, and resumed later
	Deadline     time.Duration `yaml:"deadline"`             // time limit of an object, and of a listing: from the request to the last byte
	Patience     time.Duration `yaml:"patience"`             // a download that takes longer holds up those behind it no more
	Stall        time.Duration `yaml:"stall"`                // a poll without progress for this long is an alarm, and the service not ready
	DiskFloor    Floor         `yaml:"disk_floor"`           // free space that intake leaves alone: 10GiB, or 5%
}

// Expect is the time at which the granule of a day, or the next field of a series
// of any step, is due.
type Expect struct {
	By      string `yaml:"by"`       // time of day, such as 14:30; empty: no granule is ever late
	LagDays int    `yaml:"lag_days"` // how many days after its own day
	// Within is for a series of any step, such as 6h: the next field is late so
	// long after its own time, which is a step of the series after the newest one.
	Within time.Duration `yaml:"within"`
	// Usual has a field be late by the rhythm of the archive too, where neither of the
	// others is set: half a step, and at least six hours, after the latest that one of the last
	// fifteen has come.
	Usual bool `yaml:"usual"`
	// Nothing is for an archive that is finished: no field is late, and none is too old.
	Nothing bool `yaml:"nothing"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		PollInterval: 2 * time.Minute, // granules arrive daily; this is prompt, and a listing is cheap
		TimeZone:     "UTC",
		Settle:       30 * time.Second,                // longer than a writer pauses between two blocks
		Expect:       Expect{LagDays: 1, Usual: true}, // a day is complete when it is over
		Parallel:     2,                               // hides the pause between two objects; more is for fat pipes
		LeastRate:    8,                               // 64 kbit/s, or 700 MB a day: three granules of 200 MB
		Deadline:     8 * time.Hour,                   // 200 MB at 8 KiB/s take 24,414 s, or 6 h 47 min
		Patience:     10 * time.Minute,                // 200 MB at 2.7 Mbit/s still come in their order
		Stall:        30 * time.Minute,                // six times as long as a download may take to show its rate
		DiskFloor:    Floor{Bytes: 1 << 30},           // room for the ledger and the products under way
	}
}

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.Name != "", "name is empty")
	errs.Check(c.PollInterval > 0, "poll_interval is %v, must be positive", c.PollInterval)
	errs.Check(c.Settle >= 0, "settle is %v, must not be negative", c.Settle)
	errs.Check(c.Jitter >= 0, "jitter is %v, must not be negative", c.Jitter)
	errs.Check(c.Lookback >= 0, "lookback is %v, must not be negative", c.Lookback)
	errs.Check(c.Lookback == 0 || c.Lookback >= c.PollInterval, "lookback is %v, shorter than poll_interval %v", c.Lookback, c.PollInterval)
	errs.Check(c.Backfill.IsZero() || !c.Backfill.To.Before(c.Backfill.From) && !c.Backfill.From.IsZero(),
		"backfill is %v, must be two days in their order, like 2020-01-01..2020-12-31", c.Backfill)
	errs.Check(c.Parallel >= 1 && c.Parallel <= 64, "parallel is %d, must be 1..64", c.Parallel)
	errs.Check(c.LeastRate >= 1, "least_kib_per_second is %d, must be at least 1", c.LeastRate)
	errs.Check(c.Deadline > 0, "deadline is %v, must be positive", c.Deadline)
	errs.Check(c.Patience > 0, "patience is %v, must be positive", c.Patience)
	errs.Check(c.Stall > rateWindow, "stall is %v, must be longer than the %v after which a download shows its rate", c.Stall, rateWindow)
	for _, prefix := range c.Prefixes {
		errs.Check(knownPlaceholders(prefix), "prefixes has %q: the placeholders are {year}, {month}, {day} and {yearday}", prefix)
	}
	errs.Add(c.timing(), c.DiskFloor.fault())
	return errs.Err()
}

// timing returns the faults of the settings about time zone and time of day.
func (c Config) timing() error {
	var errs []error
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return fmt.Errorf("time_zone is %q, must be a name like UTC or Europe/Paris", c.TimeZone)
	}
	if c.Schedule != "" {
		spec, err := cron.ParseStandard(c.Schedule)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("schedule is %q, must be a cron expression like \"*/10 * * * *\": %w", c.Schedule, err))
		case spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, zone)).IsZero():
			errs = append(errs, fmt.Errorf("schedule is %q, a time that never comes", c.Schedule))
		}
	}
	if _, err := time.Parse("15:04", c.Expect.By); c.Expect.By != "" && err != nil {
		errs = append(errs, fmt.Errorf("expect.by is %q, must be a time of day like 14:30", c.Expect.By))
	}
	if c.Expect.LagDays < 0 || c.Expect.LagDays > 366 {
		errs = append(errs, fmt.Errorf("expect.lag_days is %d, must be 0..366", c.Expect.LagDays))
	}
	if c.Expect.Nothing && (c.Expect.By != "" || c.Expect.Within > 0) {
		errs = append(errs, errors.New("expect.nothing excludes expect.by and expect.within: a finished archive has no next granule"))
	}
	if c.Expect.Within < 0 {
		errs = append(errs, fmt.Errorf("expect.within is %v, must not be negative", c.Expect.Within))
	}
	return errors.Join(errs...)
}

// knownPlaceholders reports whether every brace in prefix belongs to a
// placeholder that expand fills in.
func knownPlaceholders(prefix string) bool {
	for rest := prefix; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return !strings.Contains(rest, "}")
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed || !slices.Contains([]string{"year", "month", "day", "yearday"}, name) {
			return false
		}
		rest = behind
	}
}
