package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/internal/checkout"
)

const (
	prefix = "lacuna" // of topics
	poll   = 4 * time.Second
	// session is longer, beside poll, than the default, for a busy machine is silent for a second.
	session = 2 * time.Second
)

var datasets = []string{"chl", "sst"}

// modelled is the dataset that a model fills, where there is one.
const modelled = "sst"

// site is where the service lives.
type site struct {
	t        testing.TB
	top      string
	program  string
	archives *archives
	broker   *broker
	disks    map[string]*disk // state, products, models
	daemon   *process
	workers  []*process
	listen   string // of the status page
	config   string
	clock    string // file with what the clock is wrong by
}

// newSite starts a service.
func newSite(t testing.TB, real bool, program string) *site {
	t.Helper()
	top, err := os.MkdirTemp(checkout.Memory(), "lacuna-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, top: top, program: program, disks: map[string]*disk{}}
	t.Cleanup(s.close)
	for _, name := range []string{"state", "products", "models"} {
		d, err := newDisk(s.path(name), s.path("behind-"+name))
		if err != nil {
			t.Skipf("a disk cannot be mounted here, which needs /dev/fuse and root or fusermount3: %v", err)
		}
		s.disks[name] = d
	}
	if s.archives, err = newArchives(top); err != nil {
		t.Fatal(err)
	}
	s.broker = newBroker(t, real)
	s.listen, s.config, s.clock = freePort(t), s.path("lacuna.yaml"), s.path("clock")
	if err := s.configure(s.config, s.listen, "state"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.daemon = s.newProcess("daemon", "run", s.config)
	for i := range 2 {
		s.workers = append(s.workers, s.newProcess(fmt.Sprintf("worker-%d", i), "worker", s.config))
	}
	for _, p := range s.processes() {
		p.keep()
	}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.top, name) }

func (s *site) processes() []*process { return append([]*process{s.daemon}, s.workers...) }

func (s *site) newProcess(name, command, config string) *process {
	return &process{
		name: name, args: []string{s.program, command, "--config", config}, said: s.path(name + ".log"), rest: restartPause,
		env: []string{clockEnv + "=" + s.clock, "TMPDIR=" + s.path("tmp"), "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret"},
	}
}

// command runs an operator's command.
func (s *site) command(args ...string) error {
	c := exec.Command(s.program, append(args, "--config", s.config)...)
	c.Env = append(os.Environ(), programEnv+"=1", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret")
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("lacuna %s: %w\n%s", strings.Join(args, " "), err, said)
	}
	return nil
}

// configure writes the configuration. Its times are in the proportions of the
// defaults, thirty times as short.
func (s *site) configure(file, listen, state string) error {
	var sets strings.Builder
	for _, name := range datasets {
		future, method := 1, "oi"
		archive := fmt.Sprintf("type: s3, s3: {endpoint: %q, bucket: granules}", s.archives.s3)
		if name == "sst" {
			archive = fmt.Sprintf("type: ftp, ftp: {address: %q, timeout: 2s}", s.archives.ftp)
			method = "model"
			future = 0 // no product is made anew when the next day comes: half of the work
		}
		fmt.Fprintf(&sets, `  - name: %s
    archive: {%s, poll_interval: %v, settle: 0s, least_kib_per_second: 1, disk_floor: 0}
    fill: {method: %s, past_days: 2, future_days: %d, oi: {length_km: 60, days: 3, nugget: 0.1, neighbours: 12}}
    reanalysis: {settle: 200ms, least_change: 0.02}
`, name, archive, poll, method, future)
	}
	text := fmt.Sprintf(`state_dir: %[1]s/%[2]s/dir
products_dir: %[1]s/products/tree
drain: 2s
web: {listen: %[3]q}
publish:
  quick_look: false
  retry_min: 30ms
  retry_max: %[4]v
  timeout: 20s
  poll: 200ms
  disk: {floor_mib: 0}
  s3: {endpoint: %[5]q, bucket: products, prefix: tree}
  zarr: {dir: %[1]s/products/zarr}
  kafka: {brokers: [%[6]q], part_bytes: 16384}
train: {store: %[1]s/models/store, schedule: "", new_granules: 0, first_days: 100000}
manners:
  pace: {requests_per_second: 1000, burst: 1000}
  retry: {attempts: 5, base: 30ms, max: 2s}
  breaker: {failures: 3, hold: %[4]v, max_hold: %[4]v}
workers: {type: kafka, session: %[7]v, partitions: 4, in_flight: 16, tries: 50}
datasets:
%[8]s`, s.top, state, listen, poll/2, s.archives.bucket, s.broker.address, session, sets.String())
	return os.WriteFile(file, []byte(text), 0o644)
}

// close ends everything.
func (s *site) close() {
	if s.daemon != nil {
		for _, p := range s.processes() {
			p.kill()
			if s.t.Failed() {
				s.t.Log(p.tail(12))
			}
		}
	}
	for _, d := range s.disks {
		d.remove()
	}
	if s.archives != nil {
		s.archives.close()
	}
	if keep := os.Getenv(keepEnv); keep != "" && s.t.Failed() {
		s.t.Logf("what is left is in %s", s.top)
		return
	}
	checkout.RemoveTree(s.top)
}

// keepEnv keeps the folder of a run that failed.
const keepEnv = "LACUNA_CHAOS_KEEP"

// freePort returns an address that nobody listens on now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
