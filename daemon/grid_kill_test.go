package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/gridpin"
	"lacuna/daemon/work"
	"lacuna/ledger"
)

// gridEnv makes the test binary a daemon in the folder it names.
const gridEnv = "LACUNA_TEST_GRID"

// gridKills is the number of times that a daemon is killed while the first days
// vote; a new day comes with every third.
const gridKills = 24

// benchAt is newBench with its folders below root.
func benchAt(t *testing.T, root string) *bench {
	b := newBench(t)
	b.plain()
	b.cfg.StateDir, b.cfg.ProductsDir = filepath.Join(root, "state"), filepath.Join(root, "products")
	b.cfg.Datasets[0].Archive.Dir = filepath.Join(root, "archive")
	b.cfg.Datasets[0].EmptyDays = work.SkipEmptyDays // else the days of granules on another grid are filled
	if err := os.MkdirAll(b.archive(), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGridProcess is the daemon that is killed, in a process of its own; it tests
// nothing itself.
func TestGridProcess(t *testing.T) {
	root := os.Getenv(gridEnv)
	if root == "" {
		t.Skip("is started by TestADaemonKilledWhileGranulesVoteSettlesTheSameGrid")
	}
	d := benchAt(t, root).daemon(t)
	d.log = slog.New(slog.DiscardHandler)
	t.Fatal(d.Run(context.Background()))
}

func TestADaemonKilledWhileGranulesVoteSettlesTheSameGrid(t *testing.T) {
	skipInShort(t)
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &days{b: benchAt(t, root)}
	random := rand.New(rand.NewPCG(7, 11))
	const word = "ogogoggg"
	for kill := range gridKills {
		if kill%3 == 0 {
			d.deliver(t, word[kill/3:kill/3+1])
		}
		process := exec.Command(self, "-test.run=^TestGridProcess$")
		process.Env = append(os.Environ(), gridEnv+"="+root, "TMPDIR="+root) // it is killed, and tidies nothing
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(50+random.IntN(500)) * time.Millisecond)
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
	}
	d.b.once(t)
	d.b.once(t)
	d.want(t, "apapappp")
	if s := d.grid(t); !s.Settled || s.Agree != gridpin.SettledVotes || len(s.Others) != 1 || s.Others[0].Granules != 3 {
		t.Errorf("the grid is %+v", s)
	}
	book, err := ledger.Open(t.Context(), d.b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(book.Check(t.Context()), book.Close()); err != nil {
		t.Error(err)
	}
}
