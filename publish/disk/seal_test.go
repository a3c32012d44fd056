package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/publish"
)

func TestARevisionThatWasPromisedKeepsItsBytes(t *testing.T) {
	tests := []struct {
		name    string
		promise func(t *testing.T, s Store, first Stored)
		want    string // after other bytes came under the number
	}{
		{"nobody was told of it", func(*testing.T, Store, Stored) {}, "other"},
		{"it was sealed", func(t *testing.T, s Store, first Stored) {
			if err := s.Seal(first.Path); err != nil {
				t.Fatal(err)
			}
		}, "first"},
		{"it is shown, by a version that sealed nothing", func(t *testing.T, s Store, first Stored) { show(t, s, first, 1) }, "first"},
		{"it was superseded", func(t *testing.T, s Store, first Stored) {
			show(t, s, first, 1)
			show(t, s, put(t, s, item(2), "second"), 2)
		}, "first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Store{Root: t.TempDir()}
			first := put(t, s, item(1), "first")
			tt.promise(t, s, first)
			stored, err := s.Put(t.Context(), item(1), func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) })
			var c *publish.Conflict
			if refused := errors.As(err, &c); refused != (tt.want == "first") || refused && (c.There != first.SHA256 || c.Highest < 1) {
				t.Errorf("Put() = %+v, %v", stored, err)
			}
			if got, err := os.ReadFile(first.Path); err != nil || string(got) != tt.want {
				t.Errorf("the file of the revision has %q, %v, want %q", got, err, tt.want)
			}
			if tt.want == "first" {
				put(t, s, item(1), "first") // the same bytes are welcome
			}
		})
	}
}

func TestAPromisedRevisionThatWasDamagedIsMended(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first := put(t, s, item(1), "first")
	show(t, s, first, 1)
	if err := errors.Join(os.Remove(first.Path), os.WriteFile(first.Path, []byte("rotten"), 0o600), s.Seal(first.Path)); err != nil {
		t.Fatal(err)
	}
	put(t, s, item(1), "first")
	if got, err := os.ReadFile(first.Path); err != nil || string(got) != "first" {
		t.Errorf("the file of the revision has %q, %v", got, err)
	}
}

func show(t *testing.T, s Store, stored Stored, revision int) {
	t.Helper()
	it := item(revision)
	err := NewSink(s).Publish(t.Context(), publish.Product{
		Dataset: it.Dataset, Granule: it.Granule, Name: filepath.Base(stored.Visible), Time: it.Time, Revision: revision,
		Path: stored.Path, Size: stored.Bytes, SHA256: stored.SHA256,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneDaemonAtATimeHasTheFolder(t *testing.T) {
	s := Store{Root: filepath.Join(t.TempDir(), "not", "there", "yet")}
	unlock, err := s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock() = %v while another has it, want ErrLocked", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := s.Lock()
	if err != nil {
		t.Fatalf("Lock() = %v after the other let go", err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
}

func TestManifestsThatDidNotChangeAreNotRead(t *testing.T) {
	s := Store{Root: t.TempDir()}
	show(t, s, put(t, s, item(1), "first"), 1)
	count := func(since time.Time) (n int) {
		if err := s.Manifests(t.Context(), since, func(publish.Manifest) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(filepath.Join(s.Root, "d", "2021", "01", publish.ManifestName(someDay)), long, long); err != nil {
		t.Fatal(err)
	}
	if before, after := count(long), count(long.Add(time.Second)); before != 1 || after != 0 {
		t.Errorf("%d manifests since it was written and %d after, want 1 and 0", before, after)
	}
}
