package ort

import (
	"errors"
	"slices"
	"sync"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	runtimelib "github.com/yalue/onnxruntime_go"
)

// keeping returns a backend that keeps its sessions.
func keeping(t *testing.T, threads int) *Backend {
	t.Helper()
	openBackend(t) // skips the test where the library is absent
	b, err := New(Config{Threads: threads, KeepSessions: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// sessionOf compiles a graph function under a name of the caller's.
func sessionOf(t *testing.T, b *Backend, name string, f func(x *Node) *Node) *executable {
	t.Helper()
	g := NewGraph(b, name)
	out := f(Parameter(g, "x", randomArray(1, 3).tensor().Shape()))
	g.Compile(out)
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.open {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("graph %s is not open", name)
	return nil
}

func TestAGraphThatIsTheSameIsCompiledOnce(t *testing.T) {
	negated := func(x *Node) *Node { return Neg(MulScalar(x, 3)) }
	b := keeping(t, 1)
	first := sessionOf(t, b, "same", negated)
	b.Finalize() // what it compiled stays
	again := keeping(t, 1)
	if got := sessionOf(t, again, "same", negated); got.session != first.session {
		t.Error("the same graph was compiled again")
	}
	if got := sessionOf(t, again, "other", func(x *Node) *Node { return Neg(MulScalar(x, 4)) }); got.session == first.session {
		t.Error("a graph with another constant has the same session")
	}
	if got := sessionOf(t, keeping(t, 2), "same", negated); got.session == first.session {
		t.Error("a graph for two threads has the session of one for a single thread")
	}
	heavy := func(x *Node) *Node {
		return Add(x, ReduceAllSum(Const(x.Graph(), make([]float32, largestKept/4+1))))
	}
	if got := sessionOf(t, again, "with weights", heavy); got.shared != nil {
		t.Error("a graph with megabytes of weights is kept")
	}
	alone, err := New(Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Finalize()
	if got := sessionOf(t, alone, "same", negated); got.session == first.session || got.shared != nil {
		t.Error("a backend that was not asked to keep sessions shares one")
	}
}

// The graphs of a training are of maps and gradients: were their order by chance, none
// would ever be found again.
func TestATrainingStepIsTheSameEveryTime(t *testing.T) {
	x, w := randomArray(1, 2, 16, 8, 8), randomArray(2, 16, 16, 3, 3)
	want := run(t, openBackend(t), trainingStep, x, w)
	count := func() int {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return len(kept.known)
	}
	step := func() []array {
		b := keeping(t, openBackend(t).cfg.Threads)
		p := NewGraph(b, "a training step")
		in := []*Node{Parameter(p, "x", x.tensor().Shape()), Parameter(p, "w", w.tensor().Shape())}
		p.Compile(trainingStep(in)...)
		var out []array
		for _, r := range p.Run(x.tensor(), w.tensor()) {
			out = append(out, array{r.Shape().Dimensions, readFloats(t, r)})
		}
		b.Finalize()
		return out
	}
	step()
	known := count()
	for range 5 {
		for i, got := range step() {
			wantClose(t, "output", got, want[i], 0)
		}
	}
	if now := count(); now != known {
		t.Errorf("%d sessions after five times the same step, %d before", now, known)
	}
}

// A session that somebody uses is not closed, however many come after it, and the
// longest idle one goes first.
func TestAShelfClosesWhatNobodyUses(t *testing.T) {
	var closed []*runtimelib.DynamicAdvancedSession
	s := shelf{most: 2, close: func(x *runtimelib.DynamicAdvancedSession) { closed = append(closed, x) }}
	compile := func() (*runtimelib.DynamicAdvancedSession, error) { return &runtimelib.DynamicAdvancedSession{}, nil }
	take := func(threads int) *shared {
		x, err := s.take(sessionKey{threads: threads}, compile)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	used, twice := take(0), take(1)
	if take(1) != twice {
		t.Fatal("the same key has two sessions")
	}
	s.give(twice) // one of its two users
	for n := 2; n < 6; n++ {
		s.give(take(n))
	}
	for n, want := range []bool{true, true, false, false, true, true} {
		if _, ok := s.known[sessionKey{threads: n}]; ok != want {
			t.Errorf("session %d is kept: %v", n, ok)
		}
	}
	s.give(take(4)) // not the longest idle one any more
	s.give(used)
	if s.known[sessionKey{threads: 4}] == nil || s.known[sessionKey{threads: 5}] != nil || s.known[sessionKey{threads: 0}] == nil {
		t.Error("another than the longest idle session was closed")
	}
	if len(s.idle) != 2 || len(s.known) != 3 || len(closed) != 3 || slices.Contains(closed, used.session) || slices.Contains(closed, twice.session) {
		t.Errorf("%d are idle, %d known and %d closed, want 2, 3 and 3 that nobody uses", len(s.idle), len(s.known), len(closed))
	}
}

func TestWhoAsksWhileAGraphIsCompiledWaitsForIt(t *testing.T) {
	s := shelf{most: 4}
	failed := errors.New("no memory")
	if _, err := s.take(sessionKey{}, func() (*runtimelib.DynamicAdvancedSession, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Fatalf("error %v", err)
	}
	times := 0 // written by one goroutine only, as the race detector would tell
	compile := func() (*runtimelib.DynamicAdvancedSession, error) {
		times++
		return &runtimelib.DynamicAdvancedSession{}, nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				x, err := s.take(sessionKey{}, compile)
				if err != nil || x.session == nil {
					t.Errorf("taken %v, %v", x, err)
					return
				}
				s.give(x)
			}
		})
	}
	wg.Wait()
	if x := s.known[sessionKey{}]; times != 1 || x == nil || x.users != 0 || len(s.idle) != 1 {
		t.Errorf("compiled %d times, kept as %+v", times, x)
	}
}
