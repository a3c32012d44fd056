package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lacuna/ops"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) says(what string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), what)
}

// made counts the products of a dataset; 0 before the folder exists.
func (b *bench) made(dataset string) int {
	found, _ := filepath.Glob(filepath.Join(b.cfg.ProductsDir, dataset, "*", "*", "*.nc"))
	return len(found)
}

// rings reports whether the status of the service that runs has an alarm of this
// name whose summary has a text.
func (b *bench) rings(t *testing.T, name, text string) bool {
	t.Helper()
	d, err := New(b.cfg, Parts{Log: slog.New(slog.DiscardHandler), Child: []string{"none"}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.Overview(t.Context())
	return err == nil && o.Page != "" && slices.ContainsFunc(o.Status.Alarms, func(a ops.Alarm) bool { return a.Name == name && strings.Contains(a.Summary, text) })
}

func TestReloadTakesUpAGoodConfigurationOnly(t *testing.T) {
	b := newBench(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Web.Listen = free.Addr().String() // for the status
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	w := world(t, 24, 32)
	days := firstVersions(w, 3)
	put(t, b.archive(), w.Granule(days[0]))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	var mu sync.Mutex // guards cfg and bad
	cfg, bad := b.cfg, error(nil)
	edit := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
	}
	load := func() (Config, error) {
		mu.Lock()
		defer mu.Unlock()
		return cfg, bad
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := &journal{}
	reload := make(chan os.Signal)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, load, Parts{Log: slog.New(slog.NewTextHandler(log, nil)), Child: []string{self, "decode"}}, reload)
	}()
	until(t, "a first product", func() bool { return b.made("sea") == 1 })

	for _, step := range []struct {
		name    string
		edit    func()
		want    string // in the log
		refused string // in the alarm
	}{
		{"nothing new", func() {}, "nothing has changed", ""},
		{"a bad file", func() { bad = errors.New("lacuna.yaml:3: drain is -1s") }, "drain is -1s", "drain is -1s"},
		{"another state", func() { bad = nil; cfg.StateDir = filepath.Join(t.TempDir(), "other") }, "needs a restart", "needs a restart"},
		{"a port that is taken", func() { cfg = b.cfg; cfg.Web.Listen = taken.Addr().String() }, "the old one is taken up again", "address already in use"},
	} {
		edit(step.edit)
		reload <- syscall.SIGHUP
		until(t, step.name, func() bool { return log.says(step.want) })
		if step.refused != "" {
			until(t, "the alarm of "+step.name, func() bool { return b.rings(t, "config", step.refused) })
		}
	}
	put(t, b.archive(), w.Granule(days[1]))
	until(t, "a product by the old configuration", func() bool { return b.made("sea") == 2 })

	second := b.cfg.Datasets[0]
	second.Name, second.Archive.Dir = "bay", filepath.Join(t.TempDir(), "bay")
	if err := os.MkdirAll(second.Archive.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, second.Archive.Dir, w.Granule(days[2]))
	edit(func() { cfg = b.cfg; cfg.Datasets = append([]Dataset{second}, b.cfg.Datasets...) })
	reload <- syscall.SIGHUP
	until(t, "a product of the new dataset", func() bool { return b.made("bay") == 1 })
	if b.rings(t, "config", "") {
		t.Error("the alarm of a bad configuration outlasts it")
	}
	if !log.says("changed=datasets") {
		t.Error("the log does not say what has changed")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve() = %v after a stop", err)
	}
}

func TestServeNeedsAGoodConfigurationToBeginWith(t *testing.T) {
	bad := func() (Config, error) { return Config{}, ErrConfig }
	if err := Serve(t.Context(), bad, Parts{Log: slog.New(slog.DiscardHandler)}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("Serve() = %v", err)
	}
}
