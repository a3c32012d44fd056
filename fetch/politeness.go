package fetch

import (
	"log/slog"

	"lacuna/internal/faults"
)

// Politeness limits the load that an archive puts on its host, and says who
// calls.
type Politeness struct {
	UserAgent string // names the program and its version, as in lacuna/1.2
	Pacer     *Pacer // shared by all archives; nil: no waiting
}

// PolitenessConfig limits how hard an archive is called: at once, a second, and
// after failures.
type PolitenessConfig struct {
	Concurrent int           `yaml:"concurrent"` // calls and open readers at a time
	Pace       PaceConfig    `yaml:"pace"`
	Retry      RetryConfig   `yaml:"retry"`
	Breaker    BreakerConfig `yaml:"breaker"`
}

// DefaultPolitenessConfig returns the settings that hold where a file is
// silent.
func DefaultPolitenessConfig() PolitenessConfig {
	return PolitenessConfig{
		Concurrent: 4, // fills a line without crowding others out; hosts allow about 30
		Pace:       DefaultPaceConfig(),
		Retry:      DefaultRetryConfig(),
		Breaker:    DefaultBreakerConfig(),
	}
}

// Validate reports everything wrong with c; messages begin with the key.
func (c PolitenessConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Concurrent >= 1, "concurrent is %d, must be at least 1", c.Concurrent)
	for _, section := range []struct {
		key string
		err error
	}{{"pace", c.Pace.Validate()}, {"retry", c.Retry.Validate()}, {"breaker", c.Breaker.Validate()}} {
		errs.Check(section.err == nil, "%s: %w", section.key, section.err)
	}
	return errs.Err()
}

// NewPolite puts archive behind log, limit, repetition and breaker, in this
// order from the inside: each attempt has a line and a slot of its own, no slot
// is held while waiting, and the breaker counts the failures that repetition
// did not cure.
func NewPolite(archive Archive, cfg PolitenessConfig, log *slog.Logger) (*Breaker, error) {
	limited, err := NewLimited(NewLogged(archive, log), cfg.Concurrent)
	if err != nil {
		return nil, err
	}
	retried, err := NewRetried(limited, cfg.Retry)
	if err != nil {
		return nil, err
	}
	return NewBreaker(retried, cfg.Breaker)
}
