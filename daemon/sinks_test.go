package daemon

import (
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/simulate"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	kafkago "github.com/segmentio/kafka-go"
)

// bucketOn gives a bench a bucket that products go to.
func (b *bench) bucketOn(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("products"); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(host.Close)
	b.cfg.Publish.S3 = &outbox.S3{Config: s3.Config{Endpoint: host.URL, Region: "us-east-1", Bucket: "products", Prefix: "tree"}}
}

// allSinks is a bench with a folder, a bucket and a topic.
func allSinks(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.plain()
	b.bucketOn(t)
	b.kafkaOn(broker(t, 0))
	b.cfg.Publish.Disk.FloorMiB = 0
	return b
}

// deliver puts a granule of one name and day into the archive, with bytes that
// depend on the seed.
func (b *bench) deliver(t *testing.T, seed uint64) string {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 32, Days: 40, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	g := w.Granule(firstVersions(world(t, 24, 32), 1)[0])
	path := put(t, b.archive(), g)
	at := time.Now().Add(time.Duration(seed) * time.Second) // each delivery is later than the one before
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return g.Name
}

// copyOf copies a folder, and returns the function that restores it.
func copyOf(t *testing.T, folder string) (restore func()) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(folder, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
	}
}

// hashes are the places that have a revision, by revision and sha256.
type hashes map[int]map[string][]string

func (h hashes) add(revision int, sha256, who string) {
	if sha256 == "" {
		return
	}
	if h[revision] == nil {
		h[revision] = map[string][]string{}
	}
	h[revision][sha256] = append(h[revision][sha256], who)
}

func (h hashes) addManifest(m publish.Manifest, who string) {
	for _, e := range m.Products {
		h.add(e.Revision, e.SHA256, who)
		for _, s := range e.Superseded {
			h.add(s.Revision, s.SHA256, who)
		}
	}
}

// said collects the hashes of a granule's revisions in the folder, the bucket, the
// ledger and every message that was ever on the topic.
func (b *bench) said(t *testing.T) hashes {
	t.Helper()
	all := hashes{}
	collect := func(who string) func(publish.Manifest) error {
		return func(m publish.Manifest) error { all.addManifest(m, who); return nil }
	}
	if err := (disk.Store{Root: b.cfg.ProductsDir}).Manifests(t.Context(), time.Time{}, collect("disk")); err != nil {
		t.Fatal(err)
	}
	bucket, err := s3.New(b.cfg.Publish.S3.Config, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.Manifests(t.Context(), time.Time{}, collect("s3")); err != nil {
		t.Fatal(err)
	}
	for _, e := range b.onTopic(t) {
		all.add(e.Revision, e.File.SHA256, "kafka")
	}
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	published, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range published {
		if sum, ok, err := book.Promised(t.Context(), p.Dataset, p.Granule, p.Revision); err != nil {
			t.Fatal(err)
		} else if ok {
			all.add(p.Revision, sum, "ledger")
		}
	}
	return all
}

// onTopic returns every event on the topic, also those that compaction would
// remove.
func (b *bench) onTopic(t *testing.T) (all []kafka.Event) {
	t.Helper()
	cluster, err := b.cfg.Publish.Kafka.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	topic := kafka.EventsTopic(b.cfg.Publish.Kafka.Prefix)
	partitions, err := cluster.Partitions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		first, next, err := cluster.Bounds(t.Context(), topic, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		err = cluster.Read(t.Context(), kafka.Span{Topic: topic, Partition: p.ID, From: first, To: next}, func(m kafkago.Message) error {
			if e, err := kafka.ParseEvent(m); err == nil {
				all = append(all, e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// wantOneHash checks that a revision has the same sha256 in every place, and that
// all places have the newest one.
func (b *bench) wantOneHash(t *testing.T, newest int) {
	t.Helper()
	said := b.said(t)
	for revision, sums := range said {
		if len(sums) != 1 {
			t.Errorf("revision %d has %d files: %v\n%s", revision, len(sums), sums, b.log)
		}
	}
	if got := slices.Max(slices.Collect(maps.Keys(said))); got != newest {
		t.Fatalf("the newest revision is %d, want %d: %v\n%s", got, newest, said, b.log)
	}
	for _, who := range said[newest] {
		slices.Sort(who)
		if who = slices.Compact(who); !slices.Equal(who, []string{"disk", "kafka", "ledger", "s3"}) {
			t.Errorf("revision %d is known to %v only\n%s", newest, who, b.log)
		}
	}
}

// alarms returns the alarms, by name and sink.
func (b *bench) alarms(t *testing.T) map[string]ops.Alarm {
	t.Helper()
	v, err := b.daemon(t).Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]ops.Alarm{}
	for _, a := range v.Status.Alarms {
		all[a.Key()] = a
	}
	return all
}
