package archivetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"lacuna/fetch"
)

// alteredResumption brings objects in over a connection that breaks half-way,
// and resumes them, as after a restart, from a host that serves other bytes
// under the name, time and tag of the listed ones. Only the checksum shows it.
func alteredResumption(t *testing.T, f Fixture) {
	if !f.Summed {
		t.Skip("this archive gives no checksums")
	}
	for _, size := range []int{64_000, 64_001} { // manifests may have a form for each
		content := bytes.Repeat([]byte("s"), size)
		f.Put("a.nc", content, base())
		listed := list(t, f)["a.nc"]
		if listed.MD5 == "" && listed.Digest == "" {
			t.Fatalf("the listing gives no checksum: %+v", listed)
		}
		dir := t.TempDir()
		bring := func(archive fetch.Archive) (fetch.Granule, error) {
			return fetch.NewSpool(dir).Bring(t.Context(), fetch.Download{Archive: archive, Object: listed})
		}
		if _, err := bring(broken{Archive: f.Archive, after: int64(size) / 2}); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("Bring() over a broken connection: %v", err)
		}
		if g, err := bring(altered{f.Archive}); !errors.Is(err, fetch.ErrCorrupt) {
			t.Errorf("Bring() of altered bytes = %+v, %v; want ErrCorrupt", g, err)
		}
		if left := filesBelow(t, dir); len(left) != 0 {
			t.Errorf("altered bytes leave %v behind, want nothing to resume", left)
		}
		if g, err := bring(f.Archive); err != nil || g.Size != int64(size) {
			t.Errorf("Bring() once the bytes are right = %+v, %v", g, err)
		}
		f.Remove("a.nc")
	}
}

// broken is an archive whose connections break.
type broken struct {
	fetch.Archive
	after int64
}

func (b broken) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	src, err := b.Archive.Open(ctx, o, offset)
	if err != nil {
		return nil, err
	}
	failing := readFunc(func([]byte) (int, error) { return 0, syscall.ECONNRESET })
	return readCloser{Reader: io.MultiReader(io.LimitReader(src, b.after), failing), Closer: src}, nil
}

// altered is an archive that serves altered bytes.
type altered struct{ fetch.Archive }

func (a altered) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	src, err := a.Archive.Open(ctx, o, offset)
	if err != nil {
		return nil, err
	}
	flip := readFunc(func(p []byte) (int, error) {
		n, err := src.Read(p)
		for i := range p[:n] {
			p[i] ^= 1
		}
		return n, err
	})
	return readCloser{Reader: flip, Closer: src}, nil
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

type readCloser struct {
	io.Reader
	io.Closer
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
