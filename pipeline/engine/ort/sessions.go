package ort

import (
	"crypto/sha256"
	"slices"
	"sync"

	runtimelib "github.com/yalue/onnxruntime_go"
)

// keptSessions is how many compiled graphs that nobody uses are kept. A training with
// its judgement has about twenty.
const keptSessions = 40

// largestKept is the size in bytes of the largest model whose session is kept: one
// with weights in it, of which the next training has others, would take memory in vain.
const largestKept = 4 << 20

// kept are the compiled graphs of this process that backends with KeepSessions share.
var kept = shelf{most: keptSessions, close: func(s *runtimelib.DynamicAdvancedSession) { destroy(s) }}

// A shelf keeps compiled graphs for whoever asks for the same again: to compile a
// graph takes as long as to run it a dozen times. A compiled graph has no state of its
// own, so that it serves several at once.
type shelf struct {
	most  int // of those that nobody uses
	close func(*runtimelib.DynamicAdvancedSession)

	mu    sync.Mutex
	known map[sessionKey]*shared
	idle  []*shared // used by nobody, the longest idle first
}

// sessionKey is all that a session depends on.
type sessionKey struct {
	model    [sha256.Size]byte
	provider string
	threads  int
}

// shared is a session and the number of those who use it.
type shared struct {
	key     sessionKey
	open    func() error // compiles it, once
	session *runtimelib.DynamicAdvancedSession
	users   int // guarded by the shelf
}

// take returns the session of a key, which is compiled if there is none. One who asks
// while it is being compiled waits for it. The caller gives it back.
func (s *shelf) take(key sessionKey, compile func() (*runtimelib.DynamicAdvancedSession, error)) (*shared, error) {
	s.mu.Lock()
	x := s.known[key]
	if x == nil {
		x = &shared{key: key}
		x.open = sync.OnceValue(func() (err error) {
			x.session, err = compile()
			return err
		})
		if s.known == nil {
			s.known = map[sessionKey]*shared{}
		}
		s.known[key] = x
	}
	if x.users == 0 {
		s.idle = slices.DeleteFunc(s.idle, func(other *shared) bool { return other == x })
	}
	x.users++
	s.mu.Unlock()
	if err := x.open(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.known[key] == x { // the next one tries again
			delete(s.known, key)
		}
		return nil, err
	}
	return x, nil
}

// give says that one user is done with a session. Beyond the most that are kept the
// longest idle one is closed.
func (s *shelf) give(x *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.users--; x.users > 0 {
		return
	}
	s.idle = append(s.idle, x)
	for len(s.idle) > s.most {
		oldest := s.idle[0]
		s.idle = s.idle[1:]
		delete(s.known, oldest.key)
		s.close(oldest.session)
	}
}
