package dir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func TestDirConforms(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		root := filepath.Join(t.TempDir(), "archive")
		must(t, os.Mkdir(root, 0o755))
		return archivetest.Fixture{
			Archive: New(root, 1000),
			Put: func(name string, content []byte, modTime time.Time) {
				write(t, filepath.Join(root, name), content, modTime)
			},
			Remove: func(name string) { must(t, os.Remove(filepath.Join(root, name))) },
			Sever:  func() { must(t, os.Rename(root, root+".gone")) },
		}
	})
}

func TestLinksThatLeaveTheRootAreNotFollowed(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	old := time.Now().Add(-time.Hour)
	write(t, filepath.Join(outside, "secret.nc"), []byte("secret"), old)
	write(t, filepath.Join(root, "real.nc"), []byte("real"), old)
	up, err := filepath.Rel(root, outside)
	must(t, err)
	must(t, os.Symlink(filepath.Join(outside, "secret.nc"), filepath.Join(root, "absolute.nc")))
	must(t, os.Symlink(filepath.Join(up, "secret.nc"), filepath.Join(root, "relative.nc")))
	must(t, os.Symlink(outside, filepath.Join(root, "folder")))
	must(t, os.Symlink(".", filepath.Join(root, "ring")))
	must(t, os.Symlink("nowhere.nc", filepath.Join(root, "dangling.nc")))
	must(t, os.Symlink("real.nc", filepath.Join(root, "within.nc")))

	a := New(root, 1000)
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	if len(objects) != 2 || objects[0].Name != "real.nc" || objects[1].Name != "within.nc" || objects[1].Size != 4 {
		t.Errorf("List() = %+v, want real.nc and the link within, with its target's size", objects)
	}
	for _, name := range []string{"absolute.nc", "relative.nc", "folder/secret.nc", filepath.Join(up, "secret.nc")} {
		if r, err := a.Open(t.Context(), fetch.Object{Name: name, Size: 6, ModTime: old}, 0); err == nil {
			got, _ := io.ReadAll(r)
			t.Errorf("Open(%q) gave %q", name, got)
		}
	}
}

func TestFileRewrittenInPlaceDuringTheCopyIsNoticed(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "a.nc")
	write(t, file, bytes.Repeat([]byte("old "), 50_000), time.Now().Add(-time.Hour))
	a := New(root, 1000)
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	r, err := a.Open(t.Context(), objects[0], 0)
	must(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 1000))
	must(t, err)

	// The same inode and the same length: only the time tells.
	must(t, os.WriteFile(file, bytes.Repeat([]byte("new "), 50_000), 0o644))
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, fetch.ErrChanged) {
		t.Errorf("reading on over a rewritten file: %v, want ErrChanged", err)
	}
}

func TestFileReplacedByRenameIsReadWhole(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "a.nc")
	old := strings.Repeat("old ", 50_000)
	write(t, file, []byte(old), time.Now().Add(-time.Hour))
	a := New(root, 1000)
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	r, err := a.Open(t.Context(), objects[0], 0)
	must(t, err)
	defer r.Close()
	write(t, file+".tmp", []byte("new"), time.Now())
	must(t, os.Rename(file+".tmp", file))
	if got, err := io.ReadAll(r); err != nil || string(got) != old {
		t.Errorf("read %d bytes, %v; want the old file, whole", len(got), err)
	}
}

func TestPipeHoldsNobodyUp(t *testing.T) {
	root := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe.nc"), 0o644))
	a := New(root, 1000)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 0 {
		t.Errorf("List() = %v, %v; want no pipes", objects, err)
	}
	if _, err := a.Open(t.Context(), fetch.Object{Name: "pipe.nc"}, 0); !errors.Is(err, fetch.ErrChanged) {
		t.Errorf("Open() of a pipe: %v, want ErrChanged", err)
	}
}

func TestUnreadableFolderDoesNotHideTheOthers(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every folder")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "open/a.nc"), []byte("a"), time.Now())
	write(t, filepath.Join(root, "closed/b.nc"), []byte("b"), time.Now())
	must(t, os.Chmod(filepath.Join(root, "closed"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "closed"), 0o755) })
	objects, err := New(root, 1000).List(t.Context(), fetch.Scope{})
	if err == nil || len(objects) != 1 {
		t.Errorf("List() = %v, %v; want open/a.nc and an error", objects, err)
	}
}

func TestMissingRootSaysWhatToDo(t *testing.T) {
	_, err := New(filepath.Join(t.TempDir(), "absent"), 1000).List(t.Context(), fetch.Scope{})
	if err == nil || !strings.Contains(err.Error(), "create the folder") {
		t.Errorf("List() = %v, want a message with the remedy", err)
	}
}

func write(t *testing.T, file string, content []byte, modTime time.Time) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, content, 0o644))
	must(t, os.Chtimes(file, modTime, modTime))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAZarrStoreIsToldAndItsChunksAreNoGranules(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"chl.zarr/CHL/c/0/0", "chl.zarr/zarr.json", "20240501.nc", "20240502.zarr.zip"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte("x"), 0o644))
	}
	objects, err := New(root, 100).List(t.Context(), fetch.Scope{})
	if len(objects) != 2 || !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "chl.zarr is a Zarr store; name it as an archive of type zarr") {
		t.Errorf("List() = %v, %v; want the two files, and what to do with the store", objects, err)
	}
}
