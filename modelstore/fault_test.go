package modelstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// roleKey names the environment variable that makes the test binary a child of
// these tests. A child plays its role and ends: it runs no tests, so it cannot
// start children of its own.
const roleKey = "LACUNA_MODELSTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, dir := os.Getenv(roleKey), os.Getenv(roleKey+"_DIR")
	switch role {
	case "":
		os.Exit(m.Run())
	case "busy":
		fail(beBusy(New(dir, time.Now)))
	case "rival":
		fail(beRival(New(dir, time.Now), os.Getenv(roleKey+"_NAME")))
	case "crowded":
		fail(fillTheDisk(New(dir, time.Now)))
	case "reader":
		fail(readAndTryToWrite(New(dir, time.Now)))
	default:
		fail(fmt.Errorf("unknown role %q", role))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a process that plays a role on a store.
func child(t *testing.T, role, dir string, env ...string) *exec.Cmd {
	t.Helper()
	if os.Getenv(roleKey) != "" {
		t.Fatal("a child started a child")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a child that hangs is ended
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(append(os.Environ(), roleKey+"="+role, roleKey+"_DIR="+dir), env...)
	return c
}

// beBusy writes, promotes, refuses, rolls back and collects until it is killed,
// and reports each step after it is done.
func beBusy(s *Store) error {
	ctx := context.Background()
	fmt.Println("ready")
	for i := 0; ; i++ {
		note := fmt.Sprint(os.Getpid(), "-", i)
		v, err := s.Write(ctx, testCard(note), testFiles(note))
		if err != nil {
			return err
		}
		fmt.Println("wrote", v.ID)
		e, err := s.Promote(ctx, Change{Version: v.ID, By: "busy", Why: []string{"it is there"}})
		if err != nil {
			return err
		}
		fmt.Println("entry", e.Seq, e.Version)
		if i%3 == 2 {
			if e, _, err = s.Rollback(ctx, "blk-chl", "busy", "seams"); err != nil {
				return err
			}
			fmt.Println("entry", e.Seq, e.Version)
		}
		// A challenger that is refused, for the collector to remove.
		loser, err := s.Write(ctx, testCard("loser "+note), testFiles(note))
		if err != nil {
			return err
		}
		if e, err = s.Refuse(ctx, Change{Version: loser.ID, By: "busy", Why: []string{"worse"}}); err != nil {
			return err
		}
		fmt.Println("entry", e.Seq, e.Version)
		fmt.Println("collecting")
		if _, err := s.GC(ctx, Retention{}, false); err != nil {
			return err
		}
	}
}

func TestKilledAtAnyMomentTheStoreStaysValid(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills a hundred processes")
	}
	s := newStore(t)
	s.now = time.Now
	random := rand.New(rand.NewPCG(7, 7))
	leftovers, torn := 0, 0
	const kills = 100
	for round := range kills {
		// A round of the child's work takes some ten milliseconds, collecting
		// less than one: half of the kills are aimed at that.
		cue, delay := "ready", 25*time.Millisecond
		if round%2 == 1 {
			cue, delay = "collecting", time.Millisecond
		}
		acknowledged := killAfter(t, s.dir, cue, time.Duration(random.Int64N(int64(delay))))
		h, err := s.readHistory()
		if err != nil || h.bad != nil {
			t.Fatalf("kill %d: log: %v, %v", round, err, h.bad)
		}
		if h.tornBytes > 0 {
			torn++
		}
		for _, line := range acknowledged {
			var seq int
			var id string
			if n, _ := fmt.Sscanf(line, "entry %d %s", &seq, &id); n == 2 && (len(h.entries) < seq || h.entries[seq-1].Version != id) {
				t.Fatalf("kill %d: the child said %q, the log does not have it", round, line)
			}
		}
		for _, id := range s.entries("versions") {
			if _, err := s.Load(id); err != nil {
				t.Fatalf("kill %d: %v", round, err)
			}
		}
		if len(h.entries) > 0 {
			champion(t, s)
		}
		leftovers += len(s.entries("incoming")) + len(s.entries("trash"))
		if round%10 == 9 {
			tidy(t, s)
		}
	}
	t.Logf("%d kills, %d sights of unfinished folders, %d of unfinished lines", kills, leftovers, torn)
	if leftovers == 0 {
		t.Error("no kill came in the middle of anything; the test tests nothing")
	}
}

// killAfter lets a child work until it has printed cue and for a while after,
// kills it, and returns its output.
func killAfter(t *testing.T, dir, cue string, delay time.Duration) []string {
	t.Helper()
	c := child(t, "busy", dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	var kill sync.Once
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Errorf("child: %s", lines.Text())
		}
		if said = append(said, lines.Text()); lines.Text() == cue {
			kill.Do(func() { time.AfterFunc(delay, func() { _ = c.Process.Kill() }) })
		}
	}
	_ = c.Wait() // it was killed
	return said
}

// tidy works on a store whose last user was killed.
func tidy(t *testing.T, s *Store) {
	t.Helper()
	v := write(t, s, "after the kill "+s.now().String())
	promote(t, s, v)
	if _, err := s.GC(t.Context(), Retention{}, false); err != nil {
		t.Fatal(err)
	}
	if left := append(s.entries("incoming"), s.entries("trash")...); len(left) != 0 {
		t.Errorf("garbage collection left %v", left)
	}
	if got := champion(t, s); got != v.ID {
		t.Errorf("champion is %s, want %s", got, v.ID)
	}
}

// beRival promotes its own version over the given champion, and reports whether
// it won.
func beRival(s *Store, name string) error {
	ctx := context.Background()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		note := name + " over " + lines.Text()
		v, err := s.Write(ctx, testCard(note), smallFiles(note))
		if err != nil {
			return err
		}
		fmt.Println("ready")
		if !lines.Scan() { // the starting signal
			return io.ErrUnexpectedEOF
		}
		_, err = s.PromoteOver(ctx, lines.Text(), Change{Version: v.ID, By: name})
		switch {
		case errors.Is(err, ErrChampionChanged):
			fmt.Println("lost")
		case err != nil:
			return err
		default:
			fmt.Println("won", v.ID)
		}
	}
	return lines.Err()
}

// smallFiles are the files that testCard speaks of, and no others.
func smallFiles(note string) map[string]io.Reader {
	return map[string]io.Reader{ImputerFile: strings.NewReader(note), CalibrationFile: strings.NewReader(note)}
}

// rival is a running child that promotes when told.
type rival struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startRival(t *testing.T, dir, name string) rival {
	t.Helper()
	c := child(t, "rival", dir, roleKey+"_NAME="+name)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return rival{in, bufio.NewScanner(out)}
}

func (r rival) tell(text string) { fmt.Fprintln(r.in, text) }

func (r rival) hear() string {
	if !r.out.Scan() {
		return "nothing"
	}
	return r.out.Text()
}

func TestOfTwoProcessesPromotingAtOnceOneWins(t *testing.T) {
	if testing.Short() {
		t.Skip("two processes for fifty rounds")
	}
	s := newStore(t)
	rivals := []rival{startRival(t, s.dir, "one"), startRival(t, s.dir, "two")}
	both := func(text string) {
		for _, r := range rivals {
			r.tell(text)
		}
	}
	over := ""
	wins := map[int]int{}
	const rounds = 50
	for round := range rounds {
		both(fmt.Sprint("round ", round))
		for _, r := range rivals {
			if got := r.hear(); got != "ready" {
				t.Fatalf("round %d: %s", round, got)
			}
		}
		both(over)
		var won []string
		for i, r := range rivals {
			if id, ok := strings.CutPrefix(r.hear(), "won "); ok {
				won = append(won, id)
				wins[i]++
			}
		}
		entries, err := s.Log()
		if err != nil || len(won) != 1 || len(entries) != round+1 {
			t.Fatalf("round %d: %v won, %d entries, %v", round, won, len(entries), err)
		}
		last := entries[round]
		if last.Version != won[0] || last.Previous != over || champion(t, s) != won[0] {
			t.Fatalf("round %d: %s won over %s, the log says %+v", round, won[0], over, last)
		}
		over = won[0]
	}
	t.Logf("wins by rival: %v", wins)
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	unlock, err := s.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Promote(ctx, Change{Version: v.ID})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("Promote() = %v, want the deadline and the reason", err)
	}
	unlock()
	promote(t, s, v)
	if !slices.Contains(s.entries("versions"), champion(t, s)) {
		t.Error("no champion")
	}
}
