package partition

import "time"

// PoolUse is the cost of a pool so far.
type PoolUse struct {
	Strategy string  `json:"strategy"`
	Items    int     `json:"items"`     // handed out
	Drawn    int     `json:"drawn"`     // partitions
	MeanUses float64 `json:"mean_uses"` // mean number of uses of a partition
	// PerWindow is how many partitions were drawn of each window so far, the mean:
	// as many contexts its network has met, but for those that were replaced
	// before they were used.
	PerWindow float64 `json:"per_window"`

	PrimeSeconds float64 `json:"prime_seconds"` // time to draw the first partitions
	DrawSeconds  float64 `json:"draw_seconds"`  // time to draw fresh ones after that
	WaitSeconds  float64 `json:"wait_seconds"`  // time that the receiver waited after that
	// ShareOfTime is DrawSeconds, WaitShare WaitSeconds over the time since the
	// pool was primed. The shares of the time since it began, with PrimeSeconds,
	// are the whole cost of guidance to a training.
	ShareOfTime float64 `json:"share_of_time"`
	WaitShare   float64 `json:"wait_share"`
	WholeShare  float64 `json:"whole_share"` // share of priming, drawing and waiting, where all of it stops the training
}

// poolCost adds up the work of a pool.
type poolCost struct {
	began, primed           time.Time // primed is zero before it is
	items, drawn            int
	priming, drawing, waits time.Duration
}

// account adds a block that took so long.
func (p *Pool) account(took time.Duration, primed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.cost
	c.drawn += p.cfg.Batch
	if !primed {
		c.priming += took
		c.primed = time.Now()
		return
	}
	c.drawing += took
}

// Use returns the cost of the pool so far. It may be called from any goroutine.
func (p *Pool) Use() PoolUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cost
	u := PoolUse{
		Strategy: p.from.By.Name(), Items: c.items, Drawn: c.drawn, PerWindow: float64(c.drawn) / float64(len(p.from.Refs)),
		PrimeSeconds: c.priming.Seconds(), DrawSeconds: c.drawing.Seconds(), WaitSeconds: c.waits.Seconds(),
	}
	if c.drawn > 0 {
		u.MeanUses = float64(c.items) / float64(c.drawn)
	}
	if since := time.Since(c.primed).Seconds(); !c.primed.IsZero() && since > 0 {
		u.ShareOfTime, u.WaitShare = u.DrawSeconds/since, u.WaitSeconds/since
	}
	if whole := time.Since(c.began).Seconds(); whole > 0 {
		u.WholeShare = (u.PrimeSeconds + max(u.DrawSeconds, u.WaitSeconds)) / whole
	}
	return u
}
