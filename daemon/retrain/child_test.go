package retrain

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell returns the argv of a child that runs a script.
func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "child"}, args...)
}

func TestChildReportsEventsAndEnds(t *testing.T) {
	var heard []string
	c := &Process{nice: 5}
	last, err := c.Run(t.Context(), shell(`
echo '{"event":"progress","phase":"imputer","step":3,"steps":9}'
echo 'a library says hello'
echo "{\"event\":\"done\",\"version\":\"v1\",\"state\":\"promoted\",\"reasons\":[\"$(nice)\"]}"`), io.Discard, func(e Event) { heard = append(heard, e.Event) })
	if err != nil || last.Version != "v1" || strings.Join(heard, " ") != "progress done" {
		t.Errorf("last event %+v after %v, error %v", last, heard, err)
	}
	if len(last.Reasons) != 1 || last.Reasons[0] != "5" {
		t.Errorf("the child was at nice %v, want 5", last.Reasons)
	}
	if _, err := c.Run(t.Context(), shell("exit 0"), io.Discard, nil); !errors.Is(err, errNotTrained) {
		t.Errorf("a child that says nothing: error %v", err)
	}
	if _, err := c.Run(t.Context(), shell("exit 3"), io.Discard, nil); err == nil || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("a child that fails: error %v", err)
	}
}

// ticking is a child that counts up in a file until it is told to stop, and
// then reports that.
const ticking = `
trap 'echo stopped > "$1.end"; exit 1' TERM
echo '{"event":"start"}'
n=0
while :; do n=$((n+1)); echo $n > "$1.new"; mv "$1.new" "$1"; sleep 0.01; done`

func count(path string) int {
	data, _ := os.ReadFile(path)
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}

// until waits for something that is about to happen.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if happened() {
			return
		}
	}
	t.Fatalf("%s did not happen", what)
}

func TestTrainingPausesWhileHeldAndStopsEvenThen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	c := &Process{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, shell(ticking, file), io.Discard, nil)
		ended <- err
	}()
	until(t, "a first count", func() bool { return count(file) > 2 })

	first, second := c.Hold(), c.Hold()
	first()
	first() // a second call must not take away the other's hold
	c.mu.Lock()
	group := c.group
	c.mu.Unlock()
	until(t, "the pause", func() bool { return paused(group) })
	time.Sleep(50 * time.Millisecond) // until the signal is delivered
	before := count(file)
	time.Sleep(100 * time.Millisecond)
	if now := count(file); now != before {
		t.Errorf("it counted from %d to %d while it was held", before, now)
	}
	second()
	until(t, "going on", func() bool { return count(file) > before+2 })

	release := c.Hold()
	defer release()
	until(t, "the second pause", func() bool { return paused(group) })
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("a held child did not stop")
	}
	if _, err := os.Stat(file + ".end"); err != nil {
		t.Error("the child was not asked to stop, but killed")
	}
	if err := syscall.Kill(group, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
}

// Work that can wait is told when it is the turn of a training, and pauses it else.
func TestWorkThatCanWaitIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	c := &Process{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, shell(ticking, file), io.Discard, nil)
		ended <- err
	}()
	defer func() { stop(); <-ended }()
	until(t, "a first count", func() bool { return count(file) > 2 })
	past := func(d time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.turns.last = c.turns.last.Add(-d)
	}
	if owed := c.Owed(); owed != 0 {
		t.Fatalf("%v owed at the start", owed)
	}
	urgent := c.Hold()
	past(time.Hour)
	urgent()
	if owed := c.Owed(); owed != 0 {
		t.Fatalf("%v owed for what was urgent", owed)
	}
	patient := c.HoldInTurn()
	c.mu.Lock()
	group := c.group
	c.mu.Unlock()
	until(t, "the pause", func() bool { return paused(group) })
	past(turn)
	patient()
	before := count(file)
	until(t, "going on", func() bool { return count(file) > before+2 })
	if owed := c.Owed(); owed <= 0 || owed > 2*turn {
		t.Fatalf("%v owed after a turn of other work", owed)
	}
	past(3 * turn)
	if owed := c.Owed(); owed != 0 {
		t.Fatalf("%v owed after its own turn", owed)
	}
}

// paused reports whether the kernel has stopped a process: T, or D for one that
// waits for a stopped child to begin.
func paused(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:1] == "T" || rest[:1] == "D"
}
