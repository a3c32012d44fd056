package fetch_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/dir"
	"lacuna/ledger"
)

// killRoot names the environment variable that makes the test binary the child
// of the kill test. It holds the folder to work in.
const killRoot = "LACUNA_FETCH_KILL_ROOT"

const (
	killGranules = 200
	kills        = 60
)

// TestKilledChild is the process that is killed. It does nothing by itself.
func TestKilledChild(t *testing.T) {
	root := os.Getenv(killRoot)
	if root == "" {
		t.Skip("the child of TestKilledSyncLeavesEveryGranuleOnceAndWhole")
	}
	l, err := ledger.Open(t.Context(), filepath.Join(root, "ledger.db"))
	must(t, err)
	defer l.Close()
	spool := fetch.NewSpool(filepath.Join(root, "spool"))
	must(t, spool.Sweep(time.Now()))
	cfg := fetch.DefaultConfig()
	cfg.Name, cfg.Settle, cfg.Parallel = "folder", 0, 3
	w, err := fetch.NewWatcher(cfg, fetch.Parts{
		Archive: slow{dir.New(filepath.Join(root, "archive"), 1000)}, Spool: spool, Deliveries: deliveries{l},
		Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	fmt.Println("child at work")
	_, err = w.Sync(t.Context(), fetch.Days{}, nil)
	must(t, err)
	fmt.Println("child done")
}

// slow gives the parent time to kill in the middle of a file.
type slow struct{ fetch.Archive }

func (s slow) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	r, err := s.Archive.Open(ctx, o, offset)
	return slowReader{r}, err
}

type slowReader struct{ io.ReadCloser }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(500 * time.Microsecond)
	return r.ReadCloser.Read(p[:min(len(p), 16<<10)])
}

func TestKilledSyncLeavesEveryGranuleOnceAndWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a process many times")
	}
	if os.Getenv(killRoot) != "" {
		t.Skip("a child has no children")
	}
	root := t.TempDir()
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	archive := putGranules(t, filepath.Join(root, "archive"), random)
	done := false
	for range kills {
		if done { // on a fast disk: check it and begin anew
			wantAll(t, root, archive)
			for _, state := range []string{"spool", "ledger.db", "ledger.db-wal", "ledger.db-shm"} {
				must(t, os.RemoveAll(filepath.Join(root, state)))
			}
		}
		done = runChild(t, root, time.Duration(random.IntN(100))*time.Millisecond)
	}
	for tries := 0; !done; tries++ {
		if done = runChild(t, root, time.Minute); tries > 2 {
			t.Fatal("a child that is left alone does not finish")
		}
	}
	wantAll(t, root, archive)
}

// wantAll fails the test unless every granule of the archive is in the ledger
// and in the spool, once and whole, and nothing else is.
func wantAll(t *testing.T, root string, archive map[string][]byte) {
	t.Helper()
	l, err := ledger.Open(t.Context(), filepath.Join(root, "ledger.db"))
	must(t, err)
	defer l.Close()
	granules, err := l.Pending(t.Context(), "chl")
	must(t, err)
	if len(granules) != killGranules {
		t.Errorf("the ledger has %d granules, want %d", len(granules), killGranules)
	}
	for _, g := range granules {
		events, err := l.History(t.Context(), g.ID)
		must(t, err)
		if g.Revision != 1 || len(events) != 2 { // discovered, fetched
			t.Errorf("%s has revision %d and the history %v, want it once", g.Name, g.Revision, events)
		}
		got, err := os.ReadFile(g.SpoolPath)
		if err != nil || !bytes.Equal(got, archive[g.Name]) {
			t.Errorf("%s in the spool: %d bytes, %v; want the %d of the archive", g.Name, len(got), err, len(archive[g.Name]))
		}
	}
	if files := spoolFiles(t, filepath.Join(root, "spool")); files != killGranules {
		t.Errorf("the spool has %d files, want %d", files, killGranules)
	}
}

// putGranules fills the archive; a few are large enough to be resumed.
func putGranules(t *testing.T, folder string, random *rand.Rand) map[string][]byte {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o755))
	content := map[string][]byte{}
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range killGranules {
		name := day.AddDate(0, 0, i).Format("20060102") + "_chl.nc"
		size := 20_000 + random.IntN(40_000)
		if i%60 == 5 {
			size = 10 << 20
		}
		bytes := make([]byte, size)
		for j := range bytes {
			bytes[j] = byte(random.Uint32())
		}
		content[name] = bytes
		must(t, os.WriteFile(filepath.Join(folder, name), bytes, 0o644))
	}
	return content
}

// runChild starts the child and kills it a while after it has begun to work.
// It reports whether the child finished before.
func runChild(t *testing.T, root string, delay time.Duration) (done bool) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestKilledChild$", "-test.count=1")
	child.Env = append(os.Environ(), killRoot+"="+root)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	lines := bufio.NewScanner(out)
	var said []string
	var timer *time.Timer
	for lines.Scan() {
		said = append(said, lines.Text())
		switch lines.Text() {
		case "child at work":
			timer = time.AfterFunc(delay, func() { _ = child.Process.Kill() })
		case "child done":
			done = true
		}
	}
	err = child.Wait()
	if timer != nil {
		timer.Stop()
	}
	var exit *exec.ExitError
	if !done && (!errors.As(err, &exit) || exit.String() != "signal: killed") {
		t.Fatalf("the child ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return done
}

func spoolFiles(t *testing.T, folder string) int {
	t.Helper()
	files := 0
	must(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}))
	return files
}
