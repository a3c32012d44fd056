package disk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/publish"
)

var someDay = time.Date(2021, 1, 5, 23, 30, 0, 0, time.UTC)

func item(revision int) Item {
	return Item{Dataset: "d", Granule: "n.nc", Name: "n_l4", Time: someDay, Revision: revision}
}

func TestPutKeepsARevisionOutOfSight(t *testing.T) {
	s := Store{Root: t.TempDir()}
	got := put(t, s, item(1), "abc")
	if got.Visible != filepath.Join(s.Root, "d", "2021", "01", "n_l4.nc") || got.Bytes != 3 || !got.New ||
		got.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))) {
		t.Errorf("Put() = %+v", got)
	}
	if names := list(t, s.Root); !slices.Equal(names, []string{got.Path}) || !strings.Contains(got.Path, revisionsFolder) {
		t.Errorf("store holds %v, want the hidden file of the revision only", names)
	}
}

func TestEveryRevisionKeepsItsOwnBytes(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first, second := put(t, s, item(1), "one"), put(t, s, item(2), "two")
	other := item(1)
	other.Granule = "elsewhere/n.nc" // the same name in another folder of the archive
	third := put(t, s, other, "three")
	for path, want := range map[string]string{first.Path: "one", second.Path: "two", third.Path: "three"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestDayIsCountedInUTC(t *testing.T) {
	east := time.FixedZone("east", 3600)
	path, err := Store{Root: "r"}.Visible("d", time.Date(2021, 2, 1, 0, 30, 0, 0, east), "n.nc")
	if want := filepath.Join("r", "d", "2021", "01", "n.nc"); err != nil || path != want {
		t.Errorf("Visible() = %s, %v, want %s", path, err, want)
	}
}

// Sinks need not hash what was stored a moment ago, members neither, under whatever
// name they have it.
func TestWhatWasStoredIsKnownToItsSinks(t *testing.T) {
	s := Store{Root: t.TempDir(), Hashed: new(publish.Hashed)}
	item := Item{Dataset: "d", Granule: "n.nc", Name: "n", Time: someDay, Revision: 1}
	for range 2 { // again, with the same bytes
		stored, err := s.Put(t.Context(), item, func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("product"), 0o600), os.WriteFile(MembersPath(path), []byte("members"), 0o600))
		})
		if err != nil {
			t.Fatal(err)
		}
		p := product(s, stored, 1)
		sink := NewSink(s)
		if err := sink.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for path, sum := range map[string]string{stored.Path: stored.SHA256, stored.Visible: stored.SHA256, p.Members.Path: p.Members.SHA256} {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Hashed.Has(f, sum) || s.Hashed.Has(f, "another") {
				t.Errorf("%s is hashed again by every sink", path)
			}
			f.Close()
		}
	}
}

func TestPuttingTheSameBytesAgainChangesNothing(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first := put(t, s, item(1), "abc")
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(first.Path, long, long); err != nil {
		t.Fatal(err)
	}
	second := put(t, s, item(1), "abc")
	info, err := os.Stat(first.Path)
	if err != nil || !info.ModTime().Equal(long) || second.New {
		t.Errorf("the product was written again: %v, %v, new %v", info.ModTime(), err, second.New)
	}
	if third := put(t, s, item(1), "abcd"); !third.New || third.SHA256 == first.SHA256 {
		t.Errorf("other bytes did not replace the product: %+v", third)
	}
}

func TestFailureLeavesTheOldProductAndNothingElse(t *testing.T) {
	boom := errors.New("boom")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		write func(string) error
		want  error
	}{
		{"writer fails half way", context.Background(), func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("half"), 0o600), boom)
		}, boom},
		{"writer writes nothing", context.Background(), func(string) error { return nil }, fs.ErrNotExist},
		{"cancelled", cancelled, content("new"), context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Store{Root: t.TempDir()}
			old := put(t, s, item(1), "old")
			before := list(t, s.Root)
			if _, err := s.Put(tt.ctx, item(1), tt.write); !errors.Is(err, tt.want) {
				t.Errorf("Put() = %v, want %v", err, tt.want)
			}
			if text, err := os.ReadFile(old.Path); string(text) != "old" || err != nil || !slices.Equal(list(t, s.Root), before) {
				t.Errorf("store holds %v, was %v; %q, %v", list(t, s.Root), before, text, err)
			}
		})
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a\nb", "a\x00b", ".hidden", "\xff", strings.Repeat("x", 300)} {
		s := Store{Root: t.TempDir()}
		name, dataset := item(1), item(1)
		name.Name, dataset.Dataset = bad, bad
		for _, it := range []Item{name, dataset} {
			if _, err := s.Put(context.Background(), it, content("x")); err == nil {
				t.Errorf("%+v was accepted", it)
			}
		}
		if names := list(t, s.Root); len(names) != 0 {
			t.Errorf("a refused name left %v", names)
		}
	}
}

func TestPuttingAtOnceLeavesOneWholeFile(t *testing.T) {
	s := Store{Root: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				if _, err := s.Put(context.Background(), item(1), content(strings.Repeat(fmt.Sprint(i, j), 1+i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if names := list(t, s.Root); len(names) != 1 {
		t.Errorf("store holds %v, want one file", names)
	}
}

func TestAPictureGoesWithItsRevision(t *testing.T) {
	s := Store{Root: t.TempDir()}
	stored, err := s.Put(t.Context(), item(1), func(path string) error {
		return errors.Join(content("abc")(path), content("picture")(path+".png"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(stored.Path + ".png"); string(text) != "picture" || err != nil {
		t.Errorf("picture is %q, %v", text, err)
	}
}

func TestDiskAtItsFloorTakesNoProductAndNamesTheRemedy(t *testing.T) {
	left := int64(100 << 20)
	s := Store{Root: t.TempDir(), FloorBytes: 50 << 20, Free: func(string) (int64, error) { return left, nil }}
	first := put(t, s, item(1), "one")
	if err := NewSink(s).Publish(t.Context(), product(s, first, 1)); err != nil {
		t.Fatal(err)
	}
	second := put(t, s, item(2), "two")
	if err := NewSink(s).Publish(t.Context(), product(s, second, 2)); err != nil {
		t.Fatal(err)
	}
	left = 20 << 20
	before := list(t, s.Root)
	_, err := s.Put(t.Context(), item(3), func(string) error { t.Error("the writer was asked to write"); return nil })
	if !errors.Is(err, ErrFull) {
		t.Fatalf("Put() = %v, want ErrFull", err)
	}
	for _, want := range []string{"21 MB free", "52.4 MB are to stay", "free 31.5 MB", "1 superseded files", "keep_days"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
	// A promised revision is still shown: it takes no more room.
	third := product(s, second, 2)
	if err := NewSink(s).Publish(t.Context(), third); err != nil || !slices.Equal(before, list(t, s.Root)) {
		t.Errorf("Publish() = %v on a full disk, files %v", err, list(t, s.Root))
	}
}

func TestSweepRemovesUnfinishedFilesOfAKilledProcess(t *testing.T) {
	s := Store{Root: t.TempDir()}
	stored := put(t, s, item(1), "abc")
	left := filepath.Join(filepath.Dir(stored.Path), ".put-123", "half")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o755), os.WriteFile(left, nil, 0o600), s.Sweep()); err != nil {
		t.Fatal(err)
	}
	if names := list(t, s.Root); !slices.Equal(names, []string{stored.Path}) {
		t.Errorf("store holds %v after a sweep, want the product", names)
	}
	if err := (Store{Root: filepath.Join(s.Root, "nowhere")}).Sweep(); err != nil {
		t.Errorf("Sweep() = %v of a store that was never used", err)
	}
}

func content(text string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func put(t *testing.T, s Store, it Item, text string) Stored {
	t.Helper()
	stored, err := s.Put(context.Background(), it, content(text))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// list returns the files and links under root.
func list(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
