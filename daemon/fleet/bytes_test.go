package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/simulate"
	"lacuna/publish/kafka/brokertest"
	"lacuna/publish/s3"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// byWorkers makes the granules of a daemon be filled by workers.
func byWorkers(cfg *daemon.Config, prefix string, brokers []string) {
	cfg.Workers.Type, cfg.Workers.Prefix, cfg.Workers.Brokers = workers.Kafka, prefix, brokers
	cfg.Workers.Partitions, cfg.Workers.InFlight = 8, 16
}

// soonMissed has a worker, or the coordinator, count as gone after three seconds of
// silence: for tests that strike them. Where nobody is struck it would be a machine that
// is busy which ends a turn.
func soonMissed(cfg *daemon.Config) { cfg.Workers.Session = 3 * time.Second }

// sea is a daemon with one dataset whose clock is set by hand.
type sea struct {
	cfg   daemon.Config
	world *simulate.World
	days  []simulate.Delivery
	now   time.Time
	log   bytes.Buffer
}

func newSea(t *testing.T, w *simulate.World, days int) *sea {
	t.Helper()
	root := t.TempDir()
	cfg := daemon.DefaultConfig()
	cfg.StateDir, cfg.ProductsDir = filepath.Join(root, "state"), filepath.Join(root, "products")
	cfg.Web.Listen = "127.0.0.1:0"
	cfg.Publish.QuickLook = false // to draw takes as long as to fill: so only where pictures are compared
	set := daemon.DefaultDataset()
	set.Name = "sea"
	set.Archive.Dir, set.Archive.PollInterval, set.Archive.Settle = filepath.Join(root, "archive"), 50*time.Millisecond, 0
	set.Fill.PastDays, set.Fill.FutureDays = 3, 2
	set.DailySkill, set.EmptyDays, set.Fill.Method = false, work.SkipEmptyDays, "climatology"
	cfg.Datasets = []daemon.Dataset{set}
	// Granules that are fetched at a time are recorded in any order, and products that
	// one day reopens are made again in any order, which decides which scalings of the
	// dataset are kept: so they come one by one here, and none comes late.
	cfg.Manners.Concurrent = 1
	if err := os.MkdirAll(set.Archive.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &sea{cfg: cfg, world: w, days: firstVersions(w, days), now: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
}

// world is a small ocean.
func world(t *testing.T) *simulate.World {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 16, Width: 24, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// startWorkers runs workers until stop is called.
func (s *sea) startWorkers(t *testing.T, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		d, err := newDaemon(s.cfg, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := d.Work(ctx, fmt.Sprint("worker-", i), false); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// pass puts granules into the archive, moves the clock and makes a pass. Products carry
// the times of files, so all have the same.
func (s *sea) pass(t *testing.T, later time.Duration, days ...int) {
	t.Helper()
	at := time.Date(2024, 4, 30, 0, 0, 0, 0, time.UTC)
	for _, i := range days {
		put(t, s.cfg.Datasets[0].Archive.Dir, s.world.Granule(s.days[i]))
		if err := os.Chtimes(filepath.Join(s.cfg.Datasets[0].Archive.Dir, s.days[i].Name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.now = s.now.Add(later)
	d, err := newDaemon(s.cfg, slog.New(slog.NewTextHandler(&s.log, nil)), func() time.Time { return s.now })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Once(t.Context()); err != nil {
		t.Fatalf("Once() = %v\n%s", err, s.log.String())
	}
}

// told returns the descriptions of all products.
func (s *sea) told(t *testing.T) (all string) {
	t.Helper()
	book, err := ledger.Join(t.Context(), stateOf(s.cfg).Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	made, err := book.Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range made {
		all += p.Body + "\n"
	}
	return all
}

// sums returns the sha256 of every product and picture, by its name.
func (s *sea) sums(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]string{}
	root := s.cfg.ProductsDir
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		if !strings.HasSuffix(path, ".nc") && !strings.Contains(path, ".revisions") && !strings.HasSuffix(path, ".png") {
			return nil
		}
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		rel, _ := filepath.Rel(root, path)
		sums[rel] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Products of workers are byte for byte those of a daemon that fills by itself.
// LACUNA_LONG adds one worker to eight.
func TestWorkersMakeTheBytesOfTheDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("makes the same products again and again")
	}
	brokers, w := brokertest.Start(t, brokertest.Options{}).Addrs(), world(t)
	t.Run("of every kind of day", func(t *testing.T) { everyKindOfDay(t, w, brokers) })
	t.Run("of a deadline", func(t *testing.T) { ofADeadline(t, w, brokers) })
	t.Run("over a bucket", func(t *testing.T) { overABucket(t, w, brokers) })
}

// Days with gaps and one that the archive lacks, by interpolation and, when there are
// days enough to scale it by, by a starter model; with scores, members and re-analyses.
func everyKindOfDay(t *testing.T, w *simulate.World, brokers []string) {
	edit := func(s *sea) {
		set := &s.cfg.Datasets[0]
		set.DailySkill, set.Fill.Network.Tier = true, infer.Standard
		s.cfg.Publish.QuickLook = true
	}
	const days, more = 11, 1 // ten are needed for a starter
	local, told := makeBytes(t, w, edit, days, more, 0, nil)
	pictures := 0
	for name := range local {
		if strings.HasSuffix(name, ".png") {
			pictures++
		}
	}
	if len(local) < 2*days || pictures < days || !strings.Contains(told, `"tier":"standard"`) || !strings.Contains(told, `"model":"oi`) || !strings.Contains(told, `"revision":2`) {
		t.Fatalf("%d files are not of every kind:\n%s", len(local), told)
	}
	counts := []int{3}
	if os.Getenv("LACUNA_LONG") != "" {
		counts = []int{1, 8}
	}
	for _, count := range counts {
		remote, _ := makeBytes(t, w, edit, days, more, count, brokers)
		wantSameBytes(t, local, remote, count)
	}
}

// Workers choose by a deadline as the daemon does. Here nothing but the tier fast is
// prompt, and the tier full is done by the deadline, however fast the machine is: so
// each live product is published first by the one and superseded by the other, which
// is a re-analysis on a worker.
func ofADeadline(t *testing.T, w *simulate.World, brokers []string) {
	edit := func(s *sea) {
		n := &s.cfg.Datasets[0].Fill.Network
		n.Deadline, n.Prompt, n.Members = 100*time.Hour, 1, 2
	}
	local, told := makeBytes(t, w, edit, 12, 1, 0, nil)
	remote, remoteTold := makeBytes(t, w, edit, 12, 1, 2, brokers)
	wantSameBytes(t, local, remote, 2)
	followed := strings.Count(told, `"follows":"full"`)
	if full := strings.Count(told, `"tier":"full"`); followed == 0 || full == 0 {
		t.Errorf("%d products are to be superseded, %d are of the tier full", followed, full)
	}
	if again := strings.Count(remoteTold, `"follows":"full"`); again != followed {
		t.Errorf("%d products of the workers are to be superseded, %d of the daemon", again, followed)
	}
}

// A bucket is as good as a folder: workers that share nothing else with the daemon make
// its bytes.
func overABucket(t *testing.T, w *simulate.World, brokers []string) {
	run := func(edit func(*sea)) map[string]string {
		s := newSea(t, w, 8)
		s.cfg.Publish.QuickLook = true
		if edit != nil {
			edit(s)
			defer s.startWorkers(t, 2)()
		}
		s.pass(t, 0, 0, 1, 2, 3, 4)
		s.pass(t, 24*time.Hour, 5)
		return s.sums(t)
	}
	local := run(nil)
	b := newBucketOf(t, "shared")
	remote := run(func(s *sea) {
		byWorkers(&s.cfg, "bucket", brokers)
		s.cfg.Workers.S3 = &workers.S3{Config: b}
	})
	wantSameBytes(t, local, remote, 2)
	if found, err := (workers.Config{S3: &workers.S3{Config: b}}).TryBucket(); err != nil || !strings.Contains(found, "sea/shared") {
		t.Errorf("the bucket is tried: %q, %v", found, err)
	}
	if len(local) < 12 {
		t.Errorf("%d files", len(local))
	}
}

// newBucketOf is a bucket in memory.
func newBucketOf(t *testing.T, prefix string) s3.Config {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("sea"); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(host.Close)
	return s3.Config{Endpoint: host.URL, Region: "us-east-1", Bucket: "sea", Prefix: prefix}
}

// makeBytes makes products of some days at once, the archive lacks one of them, and of
// more day by day, by workers or, where there are none, by the daemon. It returns the
// sha256 of every file, and the descriptions of all products.
func makeBytes(t *testing.T, w *simulate.World, edit func(*sea), days, more, count int, brokers []string) (sums map[string]string, told string) {
	t.Helper()
	s := newSea(t, w, days+more)
	set := &s.cfg.Datasets[0]
	set.Fill.Method, set.EmptyDays, set.Fill.Members = "auto", work.FillEmptyDays, 2
	edit(s)
	if count > 0 {
		byWorkers(&s.cfg, fmt.Sprintf("same%d.%d", count, days), brokers)
		defer s.startWorkers(t, count)()
	}
	var first []int
	for i := range days {
		if i != days-3 {
			first = append(first, i)
		}
	}
	s.pass(t, 0, first...)
	for i := days; i < days+more; i++ {
		s.pass(t, 24*time.Hour, i)
	}
	if done, _ := filepath.Glob(filepath.Join(s.cfg.StateDir, "shared", "done", "*", "*.json")); count > 0 && len(done) < days {
		t.Errorf("%d workers have done %d jobs", count, len(done))
	}
	return s.sums(t), s.told(t)
}

func wantSameBytes(t *testing.T, local, remote map[string]string, count int) {
	t.Helper()
	for name, sum := range local {
		if remote[name] != sum {
			t.Errorf("%d workers: %s has %.8s, the daemon makes %.8s", count, name, remote[name], sum)
		}
	}
	if len(remote) != len(local) {
		t.Errorf("%d workers leave %d files, the daemon %d", count, len(remote), len(local))
	}
}
