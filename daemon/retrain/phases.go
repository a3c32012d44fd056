package retrain

import (
	"sync"
	"time"
)

// phaseClock notes when phases begin. Progress comes from several goroutines.
type phaseClock struct {
	mu    sync.Mutex
	spent []phaseStart
}

type phaseStart struct {
	phase string
	began time.Time
}

// note records that a phase is at work.
func (c *phaseClock) note(phase string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.spent); n == 0 || c.spent[n-1].phase != phase {
		c.spent = append(c.spent, phaseStart{phase, now})
	}
}

// seconds returns the time of each phase up to now.
func (c *phaseClock) seconds(now time.Time) map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]float64{}
	for i, s := range c.spent {
		end := now
		if i+1 < len(c.spent) {
			end = c.spent[i+1].began
		}
		out[s.phase] += end.Sub(s.began).Seconds()
	}
	return out
}
