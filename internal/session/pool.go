// Package session keeps connections to servers that one logs in at: a pool of
// them, and the session of an FTP server, the same for archives that are read and
// for places that products are pushed to.
//
// It knows neither archives nor products, and decides nothing about a failure:
// its callers say what is worth another try.
package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Session is a connection that is logged in. One goroutine uses it at a time;
// Interrupt may come from another.
type Session interface {
	// Alive asks the server for a sign of life: servers hang up on idle
	// connections, and restart.
	Alive(ctx context.Context) error
	// Interrupt ends everything that is under way on the session, for good.
	Interrupt()
	// Quit says goodbye and closes.
	Quit()
}

// Pool keeps a bounded number of sessions, idle ones for a while.
type Pool[S Session] struct {
	dial  func(ctx context.Context) (S, error)
	keep  time.Duration
	slots chan struct{} // one for each session in use
	mu    sync.Mutex    // guards idle
	idle  []*parked[S]
}

// parked is a session that waits for its next use.
type parked[S Session] struct {
	session S
	expiry  *time.Timer
}

// NewPool returns a pool of at most size sessions that dial makes, in which an
// unused one is kept for a time.
func NewPool[S Session](size int, keep time.Duration, dial func(context.Context) (S, error)) *Pool[S] {
	return &Pool[S]{dial: dial, keep: keep, slots: make(chan struct{}, size)}
}

// Get returns a session that works, an idle one if there is one. It waits
// where too many are in use.
func (p *Pool[S]) Get(ctx context.Context) (s S, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return s, ctx.Err()
	}
	for idle, ok := p.take(); ok; idle, ok = p.take() {
		if idle.Alive(ctx) == nil {
			return idle, nil
		}
		idle.Interrupt()
	}
	if s, err = p.dial(ctx); err != nil {
		<-p.slots
	}
	return s, err
}

// Put gives a session back. One that is not whole, because an answer may still
// be under way on it, is closed.
func (p *Pool[S]) Put(s S, whole bool) {
	defer func() { <-p.slots }()
	if !whole {
		s.Interrupt()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := &parked[S]{session: s}
	rest.expiry = time.AfterFunc(p.keep, func() { p.expire(rest) })
	p.idle = append(p.idle, rest)
}

// take returns the session used last, which is the least likely to be stale.
func (p *Pool[S]) take() (s S, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return s, false
	}
	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	last.expiry.Stop()
	return last.session, true
}

// expire closes a session unless it was taken meanwhile.
func (p *Pool[S]) expire(rest *parked[S]) {
	p.mu.Lock()
	i := slices.Index(p.idle, rest)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		rest.session.Quit()
	}
}

// Idle returns the number of sessions that wait for their next use.
func (p *Pool[S]) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// CloseIdle closes the sessions that are not in use. The pool can still be used.
func (p *Pool[S]) CloseIdle() {
	for s, ok := p.take(); ok; s, ok = p.take() {
		s.Quit()
	}
}
