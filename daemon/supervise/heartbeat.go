package supervise

import (
	"sync"
	"time"
)

// Heartbeats are the heartbeats of all stages, for the watchdog of the service
// manager. A stage that waits for work may be silent; one that is at work must
// beat within its limit.
type Heartbeats struct {
	now func() time.Time

	mu  sync.Mutex // guards every heartbeat
	all []*Heartbeat
}

// NewHeartbeats returns heartbeats without a stage.
func NewHeartbeats(now func() time.Time) *Heartbeats { return &Heartbeats{now: now} }

// Heartbeat is the heartbeat of one stage. A nil heartbeat is not watched.
type Heartbeat struct {
	of    *Heartbeats
	stage string
	limit time.Duration // longest silence at work
	last  time.Time     // last beat; zero: the stage waits for work
}

// Add adds a stage, which at first waits for work. Nil heartbeats return nil.
func (v *Heartbeats) Add(stage string, limit time.Duration) *Heartbeat {
	if v == nil {
		return nil
	}
	h := &Heartbeat{of: v, stage: stage, limit: limit}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, h)
	return h
}

// Beat records that the stage is at work and makes progress.
func (h *Heartbeat) Beat() {
	if h != nil {
		h.set(h.of.now())
	}
}

// Rest records that the stage waits for work, or has ended.
func (h *Heartbeat) Rest() {
	if h != nil {
		h.set(time.Time{})
	}
}

// silent reports whether the stage is at work and has been silent for too long.
func (h *Heartbeat) silent() bool {
	if h == nil {
		return false
	}
	now := h.of.now()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return !h.last.IsZero() && now.Sub(h.last) > h.limit
}

// Name returns the name of the stage.
func (h *Heartbeat) Name() string {
	if h == nil {
		return "unwatched stage"
	}
	return h.stage
}

func (h *Heartbeat) set(t time.Time) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.last = t
}

// Hung returns the name of a stage that is at work and has been silent for too
// long; empty: there is none.
func (v *Heartbeats) Hung() string {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range v.all {
		if !h.last.IsZero() && now.Sub(h.last) > h.limit {
			return h.stage
		}
	}
	return ""
}

// Working returns the stages that are at work.
func (v *Heartbeats) Working() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for _, h := range v.all {
		if !h.last.IsZero() {
			all = append(all, h.stage)
		}
	}
	return all
}
