package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/pipeline/infer"
	"lacuna/publish/kafka/brokertest"
	"lacuna/publish/s3"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// byWorkers makes the granules of a bench be filled by workers.
func (b *bench) byWorkers(prefix string, brokers []string) {
	b.cfg.Workers.Type, b.cfg.Workers.Prefix, b.cfg.Workers.Brokers = workers.Kafka, prefix, brokers
	b.cfg.Workers.Session, b.cfg.Workers.Partitions, b.cfg.Workers.InFlight = 3*time.Second, 8, 16
}

// startWorkers runs n workers until the test ends or stop is called.
func (b *bench) startWorkers(t *testing.T, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		d := b.quietDaemon(t)
		all.Go(func() {
			if err := d.Work(ctx, "worker-"+string(rune('a'+i))); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// quietDaemon is a daemon with a log of its own: workers write at the same time.
func (b *bench) quietDaemon(t *testing.T) *Daemon {
	t.Helper()
	own := *b
	own.log = &bytes.Buffer{}
	return own.daemon(t)
}

// productsIn returns the sha256 of every product below a folder, by its name.
func productsIn(t *testing.T, root string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if strings.HasSuffix(path, ".nc") || strings.Contains(path, ".revisions") || strings.HasSuffix(path, ".png") {
			sum := sha256.Sum256(content)
			sums[rel] = hex.EncodeToString(sum[:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// sameTimes sets the times of all files of the archive, which products carry.
func (r *rolling) sameTimes(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.archive(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2024, 4, 30, 0, 0, 0, 0, time.UTC)
	for _, file := range files {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// The daemon that fills by itself, one worker and eight make the same bytes: of days
// with gaps, of a clouded-out day and of one that the archive lacks, with scores,
// constants, members and re-analyses.
func TestWorkersMakeTheBytesOfTheDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("makes three times the same products")
	}
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	tier := func(set *Dataset) {
		set.DailySkill, set.Fill.Network.Tier = true, infer.Standard
	}
	local, _ := makeBytes(t, tier, 20, 3, 0, nil)
	if len(local) < 40 {
		t.Fatalf("%d files", len(local))
	}
	for _, count := range []int{1, 8} {
		remote, _ := makeBytes(t, tier, 20, 3, count, brokers)
		wantSameBytes(t, local, remote, count)
	}
}

// Workers choose by a deadline as the daemon does. Here nothing but the tier fast is
// prompt, and the tier full is done by the deadline, however fast the machine is: so
// each live product is published first by the one and superseded by the other, which
// is a re-analysis on a worker.
func TestWorkersMakeTheBytesOfADeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("makes the same products twice")
	}
	deadline := func(set *Dataset) {
		n := &set.Fill.Network
		n.Deadline, n.Prompt, n.Members = 100*time.Hour, 1, 2
	}
	local, told := makeBytes(t, deadline, 12, 2, 0, nil)
	remote, remoteTold := makeBytes(t, deadline, 12, 2, 2, brokertest.Start(t, brokertest.Options{}).Addrs())
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
func TestWorkersMakeTheBytesOverABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	run := func(edit func(*rolling)) map[string]string {
		r := newRolling(t, 8)
		r.cfg.Manners.Concurrent = 1
		if edit != nil {
			edit(r)
			defer r.startWorkers(t, 2)()
		}
		r.deliver(t, 0, 1, 2, 3, 4)
		r.sameTimes(t)
		r.pass(t, 0)
		r.deliver(t, 5)
		r.sameTimes(t)
		r.pass(t, 24*time.Hour)
		return productsIn(t, r.cfg.ProductsDir)
	}
	local := run(nil)
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	b := newBucketOf(t, "shared")
	remote := run(func(r *rolling) {
		r.byWorkers("bucket", brokers)
		r.cfg.Workers.S3 = &workers.S3{Config: b}
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

// makeBytes makes products of some days at once and of more day by day, by workers or,
// where there are none, by the daemon. It returns the sha256 of every file, and the
// descriptions of all products.
func makeBytes(t *testing.T, edit func(*Dataset), days, more, count int, brokers []string) (sums map[string]string, told string) {
	t.Helper()
	r := newRolling(t, days+more+3)
	set := &r.cfg.Datasets[0]
	set.Fill.Method, set.EmptyDays, set.Fill.Members = "auto", work.FillEmptyDays, 2
	edit(set)
	// Granules that are fetched at a time are recorded in any order, and products that
	// one day reopens are made again in any order, which decides which scalings of the
	// dataset are kept: so they come one by one here, and none comes late.
	r.cfg.Manners.Concurrent = 1
	if count > 0 {
		r.byWorkers(fmt.Sprintf("same%d", count), brokers)
		defer r.startWorkers(t, count)()
	}
	for i := range days {
		if i != 11 {
			r.deliver(t, i)
		}
	}
	r.sameTimes(t)
	r.pass(t, 0)
	for i := days; i < days+more; i++ {
		r.deliver(t, i)
		r.sameTimes(t)
		r.pass(t, 24*time.Hour)
	}
	if done, _ := filepath.Glob(filepath.Join(r.cfg.StateDir, "shared", "done", "*", "*.json")); count > 0 && len(done) < days {
		t.Errorf("%d workers have done %d jobs", count, len(done))
	}
	all, err := r.book(t).Publications(t.Context(), "sea", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		told += p.Body + "\n"
	}
	return productsIn(t, r.cfg.ProductsDir), told
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

func TestWorkersTakeWhatTheyLackFromPublishing(t *testing.T) {
	const publishing = "publish: {kafka: {brokers: ['kafka:9092'], prefix: sea}}\n"
	tests := []struct {
		name, text string
		brokers    string
		prefix     string
		shared     string
		want       string // part of the message; empty: valid
	}{
		{"a word alone", publishing + "workers: kafka\n", "kafka:9092", "sea", "var/shared", ""},
		{"its own", publishing + "workers: {type: kafka, brokers: ['other:9092'], prefix: own, shared_dir: /mnt/sea}\n", "other:9092", "own", "/mnt/sea", ""},
		{"no brokers at all", "workers: kafka\n", "", "", "", "brokers is empty"},
		{"brokers in memory", "publish: {kafka: {embedded: true}}\nworkers: kafka\n", "", "", "", "workers need brokers of their own"},
		{"another type", "workers: slurm\n", "", "", "", `type is "slurm"`},
		{"none", "", "", "lacuna", "var/shared", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := parseConfig("lacuna.yaml", []byte(validConfig+tt.text))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want a message with %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if w := cfg.workers(); strings.Join(w.Brokers, " ") != tt.brokers || w.Prefix != tt.prefix || w.SharedDir != tt.shared {
				t.Errorf("%+v", w)
			}
		})
	}
}
