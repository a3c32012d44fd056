package fetch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiskFailureStopsThePollAndLeavesNothing(t *testing.T) {
	tests := []struct {
		name string
		file func(tempFile) tempFile
	}{
		{"disk full while writing", func(f tempFile) tempFile {
			return failingFile{tempFile: f, write: syscall.ENOSPC}
		}},
		{"sync refused", func(f tempFile) tempFile { return failingFile{tempFile: f, sync: syscall.EIO} }},
		{"close refused", func(f tempFile) tempFile { return failingFile{tempFile: f, close: syscall.EDQUOT} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, func(c *Config, _ *Parts) { c.Parallel = 1 })
			b.archive.put("a.nc", "a", longAgo())
			b.archive.put("b.nc", "b", longAgo())
			healthy := b.parts.Spool.wrap
			b.parts.Spool.wrap = tt.file
			if got, err := b.Poll(t.Context()); !errors.Is(err, ErrSpool) || len(got) != 0 {
				t.Errorf("Poll() = %v, %v; want ErrSpool", got, err)
			}
			if b.archive.opened != 1 || len(b.problems) != 0 {
				t.Errorf("%d objects tried, problems %v; want one, and none that blames the object", b.archive.opened, b.problems)
			}
			if files := filesIn(t, b.spoolDir); len(files) != 0 {
				t.Errorf("spool holds %v, want nothing", files)
			}
			b.parts.Spool.wrap = healthy
			if diff := cmp.Diff([]string{"a.nc", "b.nc"}, b.pollNames(t)); diff != "" {
				t.Errorf("Poll() once the disk is well (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpoolFolderThatCannotBeMadeIsADiskFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := newMemArchive()
	a.put("a.nc", "a", longAgo())
	_, err := NewSpool(filepath.Join(file, "spool")).Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
	if !errors.Is(err, ErrSpool) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Bring() = %v, want ErrSpool and why", err)
	}
}

func TestSameBytesBroughtAtOnceAreOneFile(t *testing.T) {
	dir := t.TempDir()
	spool, a := NewSpool(dir), newMemArchive()
	content := strings.Repeat("ocean ", 10_000)
	a.put("a.nc", content, longAgo())
	var wg sync.WaitGroup
	for range 8 {
		o := a.objects["a.nc"]
		wg.Go(func() {
			g, err := spool.Bring(t.Context(), Download{Archive: staticArchive(content), Object: o})
			if err != nil {
				t.Errorf("Bring(): %v", err)
				return
			}
			wantWhole(t, g, content)
		})
	}
	wg.Wait()
	if files := filesIn(t, dir); len(files) != 1 {
		t.Errorf("spool holds %v, want one file", files)
	}
}

// Two datasets may have objects of one name: their downloads meet at one part,
// and neither may touch the finished file of the other.
func TestDownloadsOfOneNameDoNotSpoilEachOther(t *testing.T) {
	dir := t.TempDir()
	contents := []string{strings.Repeat("chl", 1000), strings.Repeat("sst", 1000), strings.Repeat("ssh", 1000)}
	var wg sync.WaitGroup
	for i := range 9 {
		content := contents[i%len(contents)]
		wg.Go(func() {
			for range 20 {
				d := Download{Archive: staticArchive(content), Object: Object{Name: "a.nc", Size: 3000, ETag: content[:3]}}
				g, err := NewSpool(dir).Bring(t.Context(), d)
				if err != nil {
					t.Errorf("Bring(): %v", err)
					return
				}
				wantWhole(t, g, content)
			}
		})
	}
	wg.Wait()
	if files := filesIn(t, dir); len(files) != len(contents) {
		t.Errorf("spool holds %v, want %d granules", files, len(contents))
	}
}

func TestFileThatWasMovedAwayIsNotTakenForAPart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.part")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !liesAt(file, path) {
		t.Error("the file has gone before anybody moved it")
	}
	if err := os.Rename(path, filepath.Join(dir, "granule")); err != nil || liesAt(file, path) {
		t.Errorf("moved away (%v), the file is taken for the part", err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil || liesAt(file, path) {
		t.Errorf("with a new part in its place (%v), the file is taken for it", err)
	}
}

func TestSpoolPathStaysInTheSpool(t *testing.T) {
	s, sum := NewSpool("spool"), strings.Repeat("ab", 32)
	for name, want := range map[string]string{
		"2024/x.nc": "x.nc", "X.NC": "X.NC", "noending": "noending", "x.n/../../c": "c", "..": "", "/..": "",
	} {
		if got := s.path(name, sum); got != filepath.Join("spool", "ab", sum, want) {
			t.Errorf("path(%q) = %s, want %s in spool/ab/%s", name, got, want, sum)
		}
	}
}

// failingFile is a temporary file on a disk that fails. Its Close still
// closes, as the kernel does.
type failingFile struct {
	tempFile
	write, sync, close error
}

func (f failingFile) Write(p []byte) (int, error) {
	if f.write != nil {
		return len(p) / 2, f.write
	}
	return f.tempFile.Write(p)
}

func (f failingFile) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.tempFile.Sync()
}

func (f failingFile) Close() error { return errors.Join(f.tempFile.Close(), f.close) }

// staticArchive has one content under every name.
type staticArchive string

func (a staticArchive) List(context.Context, Scope) ([]Object, error) { return nil, nil }

func (a staticArchive) Open(context.Context, Object, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(a))), nil
}
