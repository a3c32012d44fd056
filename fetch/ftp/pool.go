package ftp

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool keeps a bounded number of sessions, idle ones for a while.
type pool struct {
	dial  func(ctx context.Context) (*session, error)
	keep  time.Duration
	slots chan struct{} // one for each session in use
	mu    sync.Mutex    // guards idle
	idle  []*parked
}

// parked is a session that waits for its next use.
type parked struct {
	session *session
	expiry  *time.Timer
}

func newPool(size int, keep time.Duration, dial func(context.Context) (*session, error)) *pool {
	return &pool{dial: dial, keep: keep, slots: make(chan struct{}, size)}
}

// get returns a session that works, an idle one if there is one. It waits
// where too many are in use.
func (p *pool) get(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for s := p.take(); s != nil; s = p.take() {
		unbind := s.bind(ctx)
		err := s.conn.NoOp() // servers hang up on idle connections, and restart
		unbind()
		if err == nil {
			return s, nil
		}
		s.interrupt()
	}
	s, err := p.dial(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return s, nil
}

// put gives a session back. One that is not whole, because an answer may still
// be under way on it, is closed.
func (p *pool) put(s *session, whole bool) {
	defer func() { <-p.slots }()
	if !whole {
		s.interrupt()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := &parked{session: s}
	rest.expiry = time.AfterFunc(p.keep, func() { p.expire(rest) })
	p.idle = append(p.idle, rest)
}

// take returns the session used last, which is the least likely to be stale.
func (p *pool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	last.expiry.Stop()
	return last.session
}

// expire closes a session unless it was taken meanwhile.
func (p *pool) expire(rest *parked) {
	p.mu.Lock()
	i := slices.Index(p.idle, rest)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		rest.session.quit()
	}
}

func (p *pool) closeIdle() {
	for s := p.take(); s != nil; s = p.take() {
		s.quit()
	}
}
