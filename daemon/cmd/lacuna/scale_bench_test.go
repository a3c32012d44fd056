package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/ledger/ledgertest"
)

// BenchmarkMillionGranules measures what an operator waits for with a ledger of a
// million granules: a start of the daemon until it is ready, every page, and the
// commands why and status, each with the start of its process.
func BenchmarkMillionGranules(b *testing.B) {
	granules := 1_000_000
	if text := os.Getenv("LACUNA_BENCH_GRANULES"); text != "" { // fewer, to look at the benchmark itself
		n, err := strconv.Atoi(text)
		check(b, err)
		granules = n
	}
	end := time.Now().UTC().Truncate(24 * time.Hour)
	body := `{"dataset":"set0","variable":"CHL","units":"milligram m^-3","mode":"near-real-time","model":"oi","note":"` + strings.Repeat("x", 600) + `"}`
	past := ledgertest.Past{Granules: granules, Datasets: 100, Step: 24 * time.Hour, End: end, Body: body}
	s := newLargeSite(b, past)
	b.Run("start", s.benchStart)
	stop := s.start(b)
	for page, path := range s.pages() {
		b.Run("page="+page, func(b *testing.B) { s.benchPage(b, path) })
	}
	day := end.Add(-48 * time.Hour).Format(time.DateOnly)
	for name, args := range map[string][]string{
		"status": {"status"}, "why-a-day": {"why", "--dataset", "set1", day},
		"why-a-granule": {"why", "--dataset", "set1", past.Name(3)}, "why-a-name": {"why", past.Name(3)},
	} {
		b.Run("command="+name, func(b *testing.B) { s.benchCommand(b, args) })
	}
	stop()
	b.Run("command=status-while-stopped", func(b *testing.B) { s.benchCommand(b, []string{"status"}) })
}

// largeSite is a service with a ledger of a given past.
type largeSite struct {
	past                  ledgertest.Past
	program, config, page string
}

func newLargeSite(b *testing.B, past ledgertest.Past) largeSite {
	b.Helper()
	root := b.TempDir()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	s := largeSite{past: past, program: filepath.Join(root, "lacuna"), config: filepath.Join(root, "lacuna.yaml"), page: port.Addr().String()}
	check(b, port.Close())
	// Not the test under this name: its start takes longer.
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", s.program, ".").CombinedOutput(); err != nil {
		b.Fatalf("build the program: %v: %s", err, out)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "state_dir: %s/state\nproducts_dir: %s/products\nweb: {listen: %q}\ndatasets:\n", root, root, s.page)
	for i := range past.Datasets {
		archive := fmt.Sprintf("%s/archive/%d", root, i)
		check(b, os.MkdirAll(archive, 0o755))
		fmt.Fprintf(&text, "  - name: set%d\n    archive: {type: dir, dir: %s}\n", i, archive)
	}
	check(b, os.WriteFile(s.config, text.Bytes(), 0o644))
	path := filepath.Join(root, "state", "ledger.db")
	book, err := ledger.Open(b.Context(), path)
	check(b, err)
	check(b, book.Close())
	check(b, past.Add(b.Context(), path))
	cursor := fmt.Sprintf(`{"granule":%d,"publication":%d}`, past.Granules, past.Granules) // the journal of a long life has all of it
	check(b, os.WriteFile(path+".journal.cursor", []byte(cursor), 0o644))
	return s
}

// pages returns the paths of all pages, by name.
func (s largeSite) pages() map[string]string {
	day := s.past.End.Add(-48 * time.Hour).Format(time.DateOnly)
	return map[string]string{
		"overview": "/", "status.json": "/status.json", "metrics": "/metrics", "calendar": "/datasets/set1", "day": "/datasets/set1/" + day,
		"granule": "/granule?" + url.Values{"dataset": {"set1"}, "name": {s.past.Name(3)}}.Encode(), "models": "/models", "listing": "/products/set1/",
	}
}

// start runs the daemon until the returned function is called, and returns when it
// is ready.
func (s largeSite) start(b *testing.B) (stop func()) {
	b.Helper()
	var log bytes.Buffer
	cmd := exec.CommandContext(b.Context(), s.program, "run", "--config", s.config)
	cmd.Stdout, cmd.Stderr = &log, &log
	check(b, cmd.Start())
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if r, err := http.Get("http://" + s.page + "/readyz"); err == nil {
			check(b, r.Body.Close())
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Since(began) > time.Minute {
			_ = cmd.Process.Kill()
			b.Fatalf("not ready: %s", log.String())
		}
	}
	return func() {
		b.Helper()
		check(b, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			b.Errorf("%v: %s", err, log.String())
		}
	}
}

func (s largeSite) benchStart(b *testing.B) {
	for b.Loop() {
		stop := s.start(b)
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}

func (s largeSite) benchPage(b *testing.B, path string) {
	for b.Loop() {
		r, err := http.Get("http://" + s.page + path)
		check(b, err)
		_, err = io.Copy(io.Discard, r.Body)
		check(b, err)
		check(b, r.Body.Close())
		if r.StatusCode != http.StatusOK {
			b.Fatalf("GET %s: %s", path, r.Status)
		}
	}
}

func (s largeSite) benchCommand(b *testing.B, args []string) {
	args = append(args[:len(args):len(args)], "--config", s.config)
	var used time.Duration
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), s.program, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("lacuna %v: %v: %s", args, err, out)
		}
		used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op") // of the command; on a busy machine this is the figure
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
