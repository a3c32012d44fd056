package fetch

import (
	"errors"
	"fmt"
	"time"
)

// Config is how one archive is watched.
type Config struct {
	Name         string        `yaml:"name"`          // of the archive, for the log
	PollInterval time.Duration `yaml:"poll_interval"` // from one listing to the next
	Settle       time.Duration `yaml:"settle"`        // an object that changed less than this ago is left alone
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		PollInterval: 2 * time.Minute,  // granules arrive daily; this is prompt, and a listing is cheap
		Settle:       30 * time.Second, // longer than a writer pauses between two blocks
	}
}

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Name != "", "name is empty")
	check(c.PollInterval > 0, "poll_interval is %v, must be positive", c.PollInterval)
	check(c.Settle >= 0, "settle is %v, must not be negative", c.Settle)
	return errors.Join(errs...)
}
