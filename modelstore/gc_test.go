package modelstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// family writes a chain of versions, each the parent of the next.
func family(t testing.TB, s *Store, n int, dataset string) []*Version {
	t.Helper()
	var list []*Version
	for i := range n {
		card := testCard(fmt.Sprint(dataset, i))
		card.Dataset = dataset
		if i > 0 {
			card.Parent = list[i-1].ID
		}
		list = append(list, writeCard(t, s, card))
	}
	return list
}

func TestGCKeepsNeededVersionsAndRemovesTheRest(t *testing.T) {
	s := newStore(t)
	line := family(t, s, 3, "blk-chl") // 2 is champion, 0 and 1 are its ancestors
	former, rolledBack := write(t, s, "former"), write(t, s, "rolled back")
	pinned, old := write(t, s, "pinned"), write(t, s, "old")
	other := family(t, s, 3, "med-sst")
	newest := write(t, s, "newest")
	for _, v := range []*Version{former, line[2], rolledBack} {
		promote(t, s, v)
	}
	rollback(t, s)
	if err := s.Pin(t.Context(), pinned.ID, "test", "for the paper"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		line[0].ID: "ancestor", line[1].ID: "ancestor", line[2].ID: "champion of blk-chl", former.ID: "former champion",
		pinned.ID: "pinned", other[2].ID: "newest", newest.ID: "newest",
	}
	gone := []string{rolledBack.ID, old.ID, other[0].ID, other[1].ID}

	for _, dry := range []bool{true, false} {
		before := s.entries("versions")
		sweep, err := s.GC(t.Context(), Retention{Newest: 1}, dry)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range sweep.Kept {
			if w, ok := want[k.Version]; !ok || !strings.Contains(k.Why, w) {
				t.Errorf("dry %v: kept %s because %q, want %q", dry, k.Version, k.Why, w)
			}
		}
		slices.Sort(gone)
		slices.Sort(sweep.Removed)
		if len(sweep.Kept) != len(want) || !slices.Equal(sweep.Removed, gone) || sweep.Bytes == 0 {
			t.Errorf("dry %v: kept %d, removed %v (%d bytes), want %v", dry, len(sweep.Kept), sweep.Removed, sweep.Bytes, gone)
		}
		if after := s.entries("versions"); dry && !slices.Equal(before, after) {
			t.Errorf("a dry run changed %v to %v", before, after)
		}
	}
	if left := s.entries("versions"); len(left) != len(want) {
		t.Errorf("%d versions are left, want %d", len(left), len(want))
	}
	if err := s.Unpin(t.Context(), pinned.ID); err != nil {
		t.Fatal(err)
	}
	if sweep, err := s.GC(t.Context(), Retention{Newest: 1}, false); err != nil || !slices.Equal(sweep.Removed, []string{pinned.ID}) {
		t.Errorf("after unpinning: removed %v, %v", sweep.Removed, err)
	}
}

func TestGCSparesYoungVersions(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "store"), time.Now)
	t.Cleanup(func() { unlockFolders(s.dir) })
	write(t, s, "being judged")
	if sweep, err := s.GC(t.Context(), Retention{Young: time.Hour}, false); err != nil || len(sweep.Removed) != 0 {
		t.Errorf("removed %v, %v", sweep.Removed, err)
	}
	if sweep, err := s.GC(t.Context(), Retention{}, false); err != nil || len(sweep.Removed) != 1 {
		t.Errorf("removed %v, %v; without a time of grace it has no protector", sweep.Removed, err)
	}
}

func TestGCRemovesLeftoversButNotLivingWriters(t *testing.T) {
	s := newStore(t)
	dead, err := s.stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dead.handle.Close() // as the kernel does when a process dies
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := s.Write(t.Context(), Card{Dataset: "slow"}, map[string]io.Reader{PriorFile: r})
		done <- err
	}()
	if _, err := w.Write([]byte("half")); err != nil { // the writer is at work now
		t.Fatal(err)
	}
	sweep, err := s.GC(t.Context(), Retention{Newest: 9}, false)
	if err != nil || sweep.Leftovers != 1 {
		t.Errorf("GC() = %+v, %v, want one leftover removed", sweep, err)
	}
	w.Close()
	if err := <-done; err != nil {
		t.Errorf("the living writer: %v", err)
	}
}

func TestReaderNeverSeesHalfAVersion(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			reader := New(s.dir, time.Now)
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, id := range reader.entries("versions") {
					if _, err := reader.Load(id); err != nil && !errors.Is(err, ErrNotFound) {
						t.Errorf("Load() = %v, want the whole version or none", err)
						return
					}
				}
			}
		})
	}
	for i := range 30 {
		write(t, s, fmt.Sprint(i))
		if _, err := s.GC(t.Context(), Retention{}, false); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestGCDoesNotTouchDamagedVersions(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "a")
	unlockFolders(s.dir)
	path := filepath.Join(v.dir, CardFile)
	if err := errors.Join(os.Chmod(path, fileMode), os.Truncate(path, 3)); err != nil {
		t.Fatal(err)
	}
	sweep, err := s.GC(t.Context(), Retention{}, false)
	if err != nil || len(sweep.Removed) != 0 || len(sweep.Kept) != 1 || !strings.Contains(sweep.Kept[0].Why, "damaged") {
		t.Errorf("GC() = %+v, %v", sweep, err)
	}
}
