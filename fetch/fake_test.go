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
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// memArchive is an archive in memory. The zero functions behave well.
type memArchive struct {
	mu      sync.Mutex // guards objects, content and opened
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

// onOpening makes open answer from now on; nil: as usual.
func (a *memArchive) onOpening(open func(Object) (io.ReadCloser, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onOpen = open
}

// reads returns how often an object was opened.
func (a *memArchive) reads() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened
}

func (a *memArchive) List(context.Context, Scope) ([]Object, error) {
	var err error
	if a.onList != nil {
		err = a.onList()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.objects)), err
}

func (a *memArchive) Open(_ context.Context, o Object, offset int64) (io.ReadCloser, error) {
	a.mu.Lock()
	a.opened++
	open, content := a.onOpen, a.content[o.Name]
	_, ok := a.content[o.Name]
	a.mu.Unlock()
	if open != nil {
		return open(o)
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content[offset:])), nil
}

// memDeliveries is a ledger in memory.
type memDeliveries struct {
	objects  map[string]Known
	newest   map[string]Granule
	changes  []Change // every recorded change
	fail     error    // result of the next Record
	lastPoll time.Time
}

func newMemDeliveries() *memDeliveries {
	return &memDeliveries{objects: map[string]Known{}, newest: map[string]Granule{}}
}

func (d *memDeliveries) Known(context.Context) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(d.objects)) {
			if !yield(d.objects[name], nil) {
				return
			}
		}
	}
}

func (d *memDeliveries) Holding(_ context.Context, sum string) ([]Known, error) {
	var holders []Known
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		if k := d.objects[name]; k.SHA256 == sum {
			holders = append(holders, k)
		}
	}
	return holders, nil
}

func (d *memDeliveries) Record(_ context.Context, changes ...Change) error {
	if err := d.fail; err != nil {
		d.fail = nil
		return err
	}
	for _, c := range changes {
		k := d.objects[c.Object.Name]
		k.Object, k.Vanished = c.Object, time.Time{}
		switch c.Kind {
		case Arrived, SetAside:
			k.SHA256, k.Aside = c.Granule.SHA256, c.Kind == SetAside
			d.newest[c.Object.Name] = c.Granule
		case Refused:
			k.SHA256, k.Aside = "", true
		case Moved:
			k.SHA256, k.Aside = d.objects[c.From].SHA256, d.objects[c.From].Aside
		case Vanished:
			k.Vanished = c.At
		}
		d.objects[c.Object.Name] = k
	}
	d.changes = append(d.changes, changes...)
	return nil
}

func (d *memDeliveries) LastPoll(context.Context) (time.Time, error) { return d.lastPoll, nil }

func (d *memDeliveries) Polled(_ context.Context, at time.Time) error {
	d.lastPoll = at
	return nil
}

// kinds returns the kinds of the recorded changes, in order.
func (d *memDeliveries) kinds() []string {
	list := []string{}
	for _, c := range d.changes {
		list = append(list, string(c.Kind)+" "+c.Object.Name)
	}
	return list
}

// bench is a watcher with its collaborators.
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
		Archive: b.archive, Spool: NewSpool(b.spoolDir), Deliveries: b.deliveries, Polls: b.deliveries, Log: slog.New(slog.DiscardHandler),
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
// its fields describe it.
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

// granulesIn returns the finished files below dir.
func granulesIn(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(filesIn(t, dir), func(f string) bool { return strings.HasPrefix(f, tempPrefix) })
}

// cutReader delivers content and then fails.
func cutReader(content string, err error) io.ReadCloser {
	failing := readerFunc(func([]byte) (int, error) { return 0, err })
	return io.NopCloser(io.MultiReader(bytes.NewReader([]byte(content)), failing))
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func longAgo() time.Time { return time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) }

func dated(day int) string { return fmt.Sprintf("2024/202405%02d_chl.nc", day) }
