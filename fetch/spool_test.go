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
			b := newBench(t, nil)
			b.archive.put("a.nc", "a", longAgo())
			b.archive.put("b.nc", "b", longAgo())
			healthy := b.parts.Spool.createTemp
			b.parts.Spool.createTemp = func(dir string) (tempFile, error) {
				f, err := healthy(dir)
				return tt.file(f), err
			}
			if got, err := b.Poll(t.Context()); !errors.Is(err, ErrSpool) || len(got) != 0 {
				t.Errorf("Poll() = %v, %v; want ErrSpool", got, err)
			}
			if b.archive.opened != 1 || len(b.problems) != 0 {
				t.Errorf("%d objects tried, problems %v; want one, and none that blames the object", b.archive.opened, b.problems)
			}
			if files := filesIn(t, b.spoolDir); len(files) != 0 {
				t.Errorf("spool holds %v, want nothing", files)
			}
			b.parts.Spool.createTemp = healthy
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
	_, err := NewSpool(filepath.Join(file, "spool")).Bring(t.Context(), a, a.objects["a.nc"])
	if !errors.Is(err, ErrSpool) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Bring() = %v, want ErrSpool and why", err)
	}
}

func TestCancelledCopyLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	a := newMemArchive()
	a.put("a.nc", strings.Repeat("a", 1<<20), longAgo())
	ctx, cancel := context.WithCancel(t.Context())
	a.onOpen = func(Object) (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			cancel() // in the middle of the copy
			return 1, nil
		})), nil
	}
	if _, err := NewSpool(dir).Bring(ctx, a, a.objects["a.nc"]); !errors.Is(err, context.Canceled) {
		t.Errorf("Bring() = %v, want the cancellation", err)
	}
	if files := filesIn(t, dir); len(files) != 0 {
		t.Errorf("spool holds %v, want nothing", files)
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
			g, err := spool.Bring(t.Context(), staticArchive(content), o)
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

func TestSweepRemovesOnlyWhatIsHalfWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool [a-")
	spool, a := NewSpool(dir), newMemArchive()
	a.put("a.nc", "a", longAgo())
	g, err := spool.Bring(t.Context(), a, a.objects["a.nc"])
	if err != nil {
		t.Fatal(err)
	}
	left, err := spool.createTemp(dir) // as a killed process leaves it
	if err != nil {
		t.Fatal(err)
	}
	left.Close()
	if err := spool.Sweep(); err != nil {
		t.Errorf("Sweep(): %v", err)
	}
	wantWhole(t, g, "a")
	if files := filesIn(t, dir); len(files) != 1 {
		t.Errorf("spool holds %v, want the granule alone", files)
	}
	if err := NewSpool(filepath.Join(dir, "absent")).Sweep(); err != nil {
		t.Errorf("Sweep() of a spool that is not made yet: %v", err)
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

func (a staticArchive) List(context.Context) ([]Object, error) { return nil, nil }

func (a staticArchive) Open(context.Context, Object) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(a))), nil
}
