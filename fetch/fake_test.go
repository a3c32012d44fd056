package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// memArchive is an archive in memory. The zero functions behave well.
type memArchive struct {
	mu      sync.Mutex // of objects, content and opened
	objects map[string]Object
	content map[string][]byte
	opened  int
	onList  func() error
	onOpen  func(Object) (io.ReadCloser, error)
}

func newMemArchive() *memArchive {
	return &memArchive{objects: map[string]Object{}, content: map[string][]byte{}}
}

func (a *memArchive) put(name, content string, modTime time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[name] = Object{Name: name, Size: int64(len(content)), ModTime: modTime}
	a.content[name] = []byte(content)
}

func (a *memArchive) List(context.Context) ([]Object, error) {
	var err error
	if a.onList != nil {
		err = a.onList()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.objects)), err
}

func (a *memArchive) Open(_ context.Context, o Object) (io.ReadCloser, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	if a.onOpen != nil {
		return a.onOpen(o)
	}
	content, ok := a.content[o.Name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// memDeliveries does in memory what the ledger does on disk.
type memDeliveries struct {
	newest map[string]Granule
	fail   error // of the next Arrived
}

func newMemDeliveries() *memDeliveries { return &memDeliveries{newest: map[string]Granule{}} }

func (d *memDeliveries) Seen(_ context.Context, o Object) (bool, error) {
	g, ok := d.newest[o.Name]
	return ok && g.Size == o.Size && g.ModTime.Equal(o.ModTime), nil
}

func (d *memDeliveries) Arrived(_ context.Context, g Granule) (bool, error) {
	if err := d.fail; err != nil {
		d.fail = nil
		return false, err
	}
	fresh := d.newest[g.Name].SHA256 != g.SHA256
	d.newest[g.Name] = g
	return fresh, nil
}

// bench is a watcher with everything around it.
type bench struct {
	*Watcher
	archive    *memArchive
	deliveries *memDeliveries
	spoolDir   string
	problems   []Problem
}

func newBench(t *testing.T, edit func(*Config, *Parts)) *bench {
	t.Helper()
	b := &bench{archive: newMemArchive(), deliveries: newMemDeliveries(), spoolDir: filepath.Join(t.TempDir(), "spool")}
	cfg := DefaultConfig()
	cfg.Name = "test"
	parts := Parts{
		Archive: b.archive, Spool: NewSpool(b.spoolDir), Deliveries: b.deliveries, Log: slog.New(slog.DiscardHandler),
		OnProblem: func(_ context.Context, p Problem) { b.problems = append(b.problems, p) },
	}
	if edit != nil {
		edit(&cfg, &parts)
	}
	w, err := NewWatcher(cfg, parts)
	if err != nil {
		t.Fatal(err)
	}
	b.Watcher = w
	return b
}

// pollNames polls and returns the names that came, failing the test on an error.
func (b *bench) pollNames(t *testing.T) []string {
	t.Helper()
	granules, err := b.Poll(t.Context())
	if err != nil {
		t.Fatalf("Poll(): %v", err)
	}
	return names(granules)
}

func names(granules []Granule) []string {
	list := []string{}
	for _, g := range granules {
		list = append(list, g.Name)
	}
	return list
}

// wantWhole fails the test unless g lies in the spool with this content, and
// is described as what it is.
func wantWhole(t *testing.T, g Granule, content string) {
	t.Helper()
	got, err := os.ReadFile(g.Path)
	if err != nil || string(got) != content {
		t.Errorf("%s in the spool: %d bytes, %v; want %d", g.Name, len(got), err, len(content))
	}
	sum := sha256.Sum256([]byte(content))
	if g.SHA256 != hex.EncodeToString(sum[:]) || g.Size != int64(len(content)) {
		t.Errorf("%s is described as %+v, its bytes say otherwise", g.Name, g)
	}
}

// filesIn returns the files below dir, relative to it.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files := []string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, rel)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// cutReader delivers content and then fails.
func cutReader(content string, err error) io.ReadCloser {
	failing := readerFunc(func([]byte) (int, error) { return 0, err })
	return io.NopCloser(io.MultiReader(bytes.NewReader([]byte(content)), failing))
}

func longAgo() time.Time { return time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) }

func dated(day int) string { return fmt.Sprintf("2024/202405%02d_chl.nc", day) }
