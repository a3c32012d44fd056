package daemon

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/operate"

	"github.com/google/go-cmp/cmp"
)

// filesBelow returns the hashes of all files below a folder, except the auxiliary
// files of SQLite, which even a reader makes.
func filesBelow(t *testing.T, root string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPlanChangesNothingBesideARunningDaemon(t *testing.T) {
	b := newBench(t)
	w := world(t, 24, 32)
	days := firstVersions(w, 3)
	put(t, b.archive(), w.Granule(days[0]))
	b.once(t)
	put(t, b.archive(), w.Granule(days[1]))
	if _, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{}); err != nil {
		t.Fatal(err)
	}
	third := put(t, b.archive(), w.Granule(days[2]))

	running := b.daemon(t)
	book, err := running.open(t.Context()) // holds the lock, as a running daemon does
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	root := filepath.Dir(b.cfg.StateDir)
	before := filesBelow(t, root)
	plan, err := b.daemon(t).Station().Plan(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, filesBelow(t, root)); diff != "" {
		t.Errorf("the plan changed files (-before +after):\n%s", diff)
	}
	if len(plan.Fetch) != 1 || plan.Fetch[0].Name != filepath.Base(third) || plan.Fetch[0].Why == "" {
		t.Errorf("to be fetched: %+v, want the third day", plan.Fetch)
	}
	if len(plan.Fill) != 1 || plan.Fill[0].Granule != w.Granule(days[1]).Name {
		t.Errorf("to be filled: %+v, want the second day", plan.Fill)
	}
	if len(plan.Train) != 1 || plan.Train[0].Due || !strings.Contains(plan.Train[0].Why, "no store") {
		t.Errorf("training: %+v, want it off", plan.Train)
	}
	if len(plan.Publish) != 0 {
		t.Errorf("to be published: %+v, want nothing", plan.Publish)
	}
}

func TestPlanSaysWhatNobodyDelivers(t *testing.T) {
	b := newBench(t)
	deliverDays(t, b, 1)
	b.kafkaOn(freePort(t))
	if _, err := b.daemon(t).Once(t.Context()); err == nil {
		t.Fatal("the absent broker is no error")
	}
	plan, err := b.daemon(t).Station().Plan(t.Context(), "sea")
	if err != nil || len(plan.Publish) != 1 || plan.Publish[0].Waiting != 1 || !strings.Contains(plan.Publish[0].Why, "attempts") {
		t.Errorf("to be published: %+v, %v; want one for Kafka with its problem", plan.Publish, err)
	}
	b.cfg.Publish.Kafka = nil
	plan, err = b.daemon(t).Station().Plan(t.Context(), "")
	if err != nil || len(plan.Publish) != 1 || !strings.Contains(plan.Publish[0].Why, "not configured any more") {
		t.Errorf("to be published: %+v, %v; want what is left of Kafka", plan.Publish, err)
	}
}
