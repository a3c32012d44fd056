package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRestartKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a folder, 50%?#", "ledger.db") // characters that a URI must escape
	l := open(t, path)
	for _, state := range []State{Fetched, Filled, Stored, Quarantined} {
		g := arriveNow(t, l, arrival(string(state)+".nc", "1"))
		must(t, l.SetTimes(t.Context(), g.ID, []time.Time{at(1), at(2)}))
		bring(t, l, g.ID, state)
	}
	before, err := l.Recent(t.Context(), 10)
	must(t, err)
	must(t, l.Close())
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the ledger is not where it was asked for: %v", err)
	}
	l = open(t, path)
	after, err := l.Recent(t.Context(), 10)
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" || len(after) != 4 {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}

// workerEnv makes the test binary a process that works on the ledger it names.
const workerEnv = "LACUNA_LEDGER_TEST_WORKER"

// work takes granules through all states as fast as it can, and reports each
// step on stdout once the ledger has committed it. It stands in for a daemon
// that somebody kills.
func work(path string) {
	ctx := context.Background()
	l, err := Open(ctx, path)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("open")
	done := func(id int64, state State, err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("kept", id, state)
	}
	now := time.Now()
	for i := 0; ; i++ {
		a := arrival(fmt.Sprintf("%d.nc", i%50), fmt.Sprintf("%d-%d", os.Getpid(), i))
		g, _, err := l.Arrive(ctx, a, now)
		done(g.ID, Fetched, err)
		if i%5 == 4 {
			done(g.ID, Quarantined, l.Quarantine(ctx, g.ID, "every fifth", now))
			continue
		}
		done(g.ID, Fetched, l.SetTimes(ctx, g.ID, []time.Time{at(i), at(i + 24)}))
		done(g.ID, Filled, l.Advance(ctx, g.ID, Filled, now))
		done(g.ID, Stored, l.Store(ctx, g.ID, Product{Path: "p", SHA256: a.SHA256}, now))
	}
}

func startWorker(t *testing.T, path string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+path)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines = bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatalf("worker says %q, want that it has opened the ledger", lines.Text())
	}
	return cmd, lines
}

func TestKilledProcessLosesNothingItReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	random := rand.New(rand.NewPCG(1, 2))
	kept := map[int64]State{}
	for range 20 {
		worker, lines := startWorker(t, path)
		// Killed after a random number of reports, and a random moment later, so
		// that every step of a transaction gets its turn.
		reports, moment := 1+random.IntN(60), time.Duration(random.IntN(3000))*time.Microsecond
		for n := 0; lines.Scan(); n++ {
			var id int64
			var state State
			if _, err := fmt.Sscanf(lines.Text(), "kept %d %s", &id, &state); err != nil {
				t.Fatalf("worker says %q", lines.Text())
			}
			kept[id] = state
			if n == reports {
				time.AfterFunc(moment, func() { worker.Process.Kill() })
			}
		}
		worker.Wait()
		wantSound(t, path, kept)
	}
	if len(kept) < 100 {
		t.Errorf("the workers reported %d granules, too few to mean anything", len(kept))
	}
}

// wantSound opens the ledger, which checks the file, and compares its rows with
// their histories and with the reported steps.
func wantSound(t *testing.T, path string, kept map[int64]State) {
	t.Helper()
	l, err := Open(t.Context(), path)
	must(t, err)
	defer l.Close()
	rows, err := l.Recent(t.Context(), 1_000_000)
	must(t, err)
	states, revisions, highest := map[int64]State{}, map[string]int{}, map[string]int{}
	for _, g := range rows {
		states[g.ID] = g.State
		revisions[g.Name]++
		highest[g.Name] = max(highest[g.Name], g.Revision)
		wantLegal(t, g, history(t, l, g.ID))
	}
	if diff := cmp.Diff(highest, revisions); diff != "" {
		t.Errorf("revisions have holes (-highest +number):\n%s", diff)
	}
	for id, reported := range kept {
		// The last step before the kill may be done without having been reported.
		if state := states[id]; state != reported && !reported.mayBecome(state) {
			t.Errorf("granule %d was reported %s and is %q", id, reported, state)
		}
	}
}

func wantLegal(t *testing.T, g Granule, events []Event) {
	t.Helper()
	if len(events) == 0 || events[0].State != Discovered || events[len(events)-1].State != g.State {
		t.Errorf("granule %d is %s, its history %+v", g.ID, g.State, events)
		return
	}
	for i := range events[1:] {
		if from, to := events[i].State, events[i+1].State; !from.mayBecome(to) {
			t.Errorf("granule %d went from %s to %s", g.ID, from, to)
		}
	}
}

func TestSecondProcessIsToldWhoHasTheLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	worker, lines := startWorker(t, path)
	_, err := Open(t.Context(), path)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d;", worker.Process.Pid)) {
		t.Errorf("Open() = %v, want ErrLocked by process %d", err, worker.Process.Pid)
	}
	worker.Process.Kill()
	for lines.Scan() { // until its end of the pipe closes
	}
	worker.Wait()
	open(t, path) // a dead process holds nothing
}

func TestSameProcessCannotOpenTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	if _, err := Open(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("the second Open() = %v, want ErrLocked", err)
	}
	must(t, l.Close())
	open(t, path)
}

func TestDamagedFileIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	for i := range 200 {
		arriveNow(t, l, arrival(fmt.Sprintf("%d.nc", i), "aa"))
	}
	must(t, l.Close())
	content, err := os.ReadFile(path)
	must(t, err)
	damages := map[string][]byte{
		"not a ledger at all": []byte(strings.Repeat("<html>not found</html>", 100)),
		"cut off":             content[:len(content)/2],
		"a page overwritten":  append(append(content[:8192:8192], make([]byte, 4096)...), content[12288:]...),
	}
	for name, damaged := range damages {
		must(t, os.WriteFile(path, damaged, 0o644))
		_, err := Open(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: Open() = %v, want an error with the remedy", name, err)
		}
	}
	must(t, os.WriteFile(path, content, 0o644))
	open(t, path) // the failures let go of the lock
}

func TestLedgerOfANewerProgramIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	_, err := l.db.ExecContext(t.Context(), "PRAGMA user_version = 999")
	must(t, err)
	must(t, l.Close())
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "newer lacuna") {
		t.Errorf("Open() = %v, want it refused", err)
	}
}

func TestConcurrentCallsTakeTurns(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for content := range 5 {
				a := arrival("same.nc", fmt.Sprintf("%d-%d", i, content))
				if _, fresh, err := l.Arrive(t.Context(), a, at(0)); err != nil || !fresh {
					t.Errorf("Arrive() = %v, %v", fresh, err)
				}
				if _, err := l.Counts(t.Context()); err != nil {
					t.Errorf("Counts(): %v", err)
				}
			}
		})
	}
	wg.Wait()
	gs, err := l.Recent(t.Context(), 100)
	must(t, err)
	revisions := map[int]bool{}
	for _, g := range gs {
		revisions[g.Revision] = true
	}
	if len(gs) != 40 || len(revisions) != 40 {
		t.Errorf("%d rows with %d revisions, want 40 of each", len(gs), len(revisions))
	}
}

// A daemon that is killed while it starts a child leaves a copy of its lock to
// that child for a moment. The next start waits for it, and for nobody who lives.
func TestTheLockOfAProcessThatHasEndedIsWaitedFor(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		pid  int
		want error
	}{"it has ended": {gone.Process.Pid, nil}, "it runs": {os.Getppid(), ErrLocked}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			copied, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer copied.Close()
			if _, err := fmt.Fprintln(copied, tt.pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Flock(int(copied.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				time.AfterFunc(100*time.Millisecond, func() { copied.Close() })
			}
			l, err := Open(t.Context(), path)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open() = %v, want %v", err, tt.want)
			}
			if err == nil {
				l.Close()
			}
		})
	}
}
