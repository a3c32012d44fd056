package daemon

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/ops"
	"lacuna/ops/ledger"
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
	b.cfg.Publish.S3 = &S3{Config: s3.Config{Endpoint: host.URL, Region: "us-east-1", Bucket: "products", Prefix: "tree"}}
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

// deliver puts a granule of one name and day onto the archive, of which the
// seed decides the bytes.
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

// copyOf keeps a folder, and returns what puts it back.
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

// hashes is what every place says of every revision: who says which sha256.
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

// said collects what the folder, the bucket, every message that was ever on
// the topic and the ledger say of a granule's revisions.
func (b *bench) said(t *testing.T) hashes {
	t.Helper()
	all := hashes{}
	collect := func(who string) func(publish.Manifest) error {
		return func(m publish.Manifest) error { all.addManifest(m, who); return nil }
	}
	if err := (disk.Store{Root: b.cfg.ProductsDir}).Manifests(t.Context(), time.Time{}, collect("disk")); err != nil {
		t.Fatal(err)
	}
	bucket, err := s3.New(b.cfg.Publish.S3.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.Manifests(t.Context(), time.Time{}, collect("s3")); err != nil {
		t.Fatal(err)
	}
	for _, e := range b.onTopic(t) {
		all.add(e.Revision, e.File.SHA256, "kafka")
	}
	book, err := ledger.Join(t.Context(), b.cfg.ledgerPath())
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

// wantOneHash checks that nobody says another sha256 of a revision than
// anybody else, and that all have the newest.
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

// alarms returns what an operator is told, by name and sink.
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

func TestAStateRestoredFromAnOlderCopyGoesOnAboveWhatWasPublished(t *testing.T) {
	for _, tt := range []struct {
		name     string
		products bool // the folder of products is restored as well
		alarm    []string
	}{
		{"the state alone", false, []string{"restored/disk"}},
		{"the state and its products", true, []string{"restored/s3:products/tree", "restored/kafka:lacuna"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := allSinks(t)
			b.deliver(t, 1)
			b.once(t)
			restoreState, restoreProducts := copyOf(t, b.cfg.StateDir), copyOf(t, b.cfg.ProductsDir)
			b.deliver(t, 2)
			b.once(t)
			b.wantOneHash(t, 2)
			restoreState()
			if tt.products {
				restoreProducts()
			}
			b.deliver(t, 3)
			b.once(t)
			b.wantOneHash(t, 3)
			if !strings.Contains(b.log.String(), "THE STATE IS OLDER THAN WHAT WAS PUBLISHED") {
				t.Errorf("nobody was told:\n%s", b.log)
			}
			for _, key := range tt.alarm {
				if _, ok := b.alarms(t)[key]; !ok {
					t.Errorf("no alarm %s: %v", key, b.alarms(t))
				}
			}
			b.log.Reset()
			if got := b.once(t); got != (Summary{}) || strings.Contains(b.log.String(), "OLDER") {
				t.Errorf("the next pass has something to do: %+v\n%s", got, b.log)
			}
		})
	}
}

// The folder of products and the state are restored, the topic and the bucket
// are away, and meanwhile the number that they have is given to other bytes.
func TestAConflictWithASinkThatWasAwayIsResolvedAndTold(t *testing.T) {
	for _, lost := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d revisions were lost", lost), func(t *testing.T) { conflictWithSinkAway(t, lost) })
	}
}

func conflictWithSinkAway(t *testing.T, lost int) {
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	restoreState, restoreProducts := copyOf(t, b.cfg.StateDir), copyOf(t, b.cfg.ProductsDir)
	var granule string
	for i := range lost {
		granule = b.deliver(t, uint64(2+i))
		b.once(t)
	}
	theirs := slices.Collect(maps.Keys(b.said(t)[2]))[0]
	restoreState()
	restoreProducts()
	b.deliver(t, 9)
	brokers, endpoint := b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint
	b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint = []string{"127.0.0.1:1"}, "http://127.0.0.1:1"
	away, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got, err := b.daemon(t).Once(away); err == nil || got.Products != 1 {
		t.Fatalf("Once() = %+v, %v with two sinks away, want a product and what waits\n%s", got, err, b.log)
	}
	b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint = brokers, endpoint
	ours := ""
	if err := (disk.Store{Root: b.cfg.ProductsDir}).Manifests(t.Context(), time.Time{}, func(m publish.Manifest) error {
		e, _ := m.Entry(granule)
		ours = e.SHA256
		return nil
	}); err != nil || ours == theirs {
		t.Fatalf("the test is of no use: both have %s, %v", ours, err)
	}
	b.once(t)
	b.once(t) // a conflict that was met at the end of a pass is made good by the next
	b.wantOneHash(t, 2+lost)
	for _, sink := range []string{"s3:products/tree", "kafka:lacuna"} {
		a, ok := b.alarms(t)["conflict/"+sink]
		if !ok {
			// The one that was looked at first has displaced the revision for both.
			a, ok = b.alarms(t)["restored/"+sink]
			if !ok || !strings.Contains(a.Summary, granule) {
				t.Errorf("no alarm of %s: %v", sink, b.alarms(t))
			}
			continue
		}
		for _, part := range []string{granule, sink, ours, theirs} {
			if part == theirs && lost > 1 {
				continue // a topic that is compacted does not remember what was superseded
			}
			if !strings.Contains(a.Summary, part) {
				t.Errorf("the alarm does not say %s: %s", part, a.Summary)
			}
		}
	}
	if !strings.Contains(b.log.String(), "ONE REVISION HAS TWO FILES") {
		t.Errorf("nobody was told:\n%s", b.log)
	}
}

// A crash came after the file of a revision was sealed and before the ledger
// knew of it; by now a neighbour makes another product of the granule.
func TestASealedFileThatTheLedgerDoesNotKnowKeepsItsNumber(t *testing.T) {
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	restoreState := copyOf(t, b.cfg.StateDir)
	b.deliver(t, 2)
	b.once(t)
	hidden, err := filepath.Glob(filepath.Join(b.cfg.ProductsDir, "sea", ".revisions", "*", "*", "*_r2_*"))
	if err != nil || len(hidden) != 1 {
		t.Fatal(hidden, err)
	}
	sealed, err := os.ReadFile(hidden[0])
	if err != nil {
		t.Fatal(err)
	}
	// Nothing was shown to anybody: other sinks, and a folder with that one file.
	restoreState()
	b.bucketOn(t)
	b.kafkaOn(broker(t, 0))
	if err := os.RemoveAll(b.cfg.ProductsDir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(hidden[0]), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hidden[0], sealed, 0o444); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 3)
	b.once(t)
	b.wantOneHash(t, 3)
	if _, err := b.daemon(t).Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.once(t); got != (Summary{}) {
		t.Errorf("after a rebuilding Once() = %+v: what went on under a later number is made again", got)
	}
	b.wantOneHash(t, 3)
	if after, err := os.ReadFile(hidden[0]); err != nil || string(after) != string(sealed) {
		t.Errorf("the sealed file of revision 2 has changed (%v)", err)
	}
}

// A start does not read what did not change: neither files nor the ledger's
// rows of them.
func TestAStartWithManyProductsDoesNotLookAtThoseThatDidNotChange(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.deliver(t, 1)
	b.once(t)
	root := filepath.Join(b.cfg.ProductsDir, "sea")
	many := 2000
	if os.Getenv("LACUNA_LONG") != "" {
		many = 100_000
	}
	long := time.Now().AddDate(-1, 0, 0)
	for i := range many {
		day := time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		folder := filepath.Join(root, day.Format("2006"), day.Format("01"))
		// One that is read would be found to be ahead of the ledger.
		m := publish.Manifest{Dataset: "sea", Day: publish.Day(day), Products: []publish.Entry{{
			Granule: fmt.Sprintf("%d.nc", i), File: fmt.Sprintf("%d_l4.nc", i), Revision: 1, Time: day, SHA256: strconv.Itoa(i),
		}}}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, publish.ManifestName(day))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	d := b.daemon(t)
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	o := &outbox{book: book, store: d.store, now: time.Now, log: d.log}
	if o.me, err = identify(t.Context(), book, time.Now()); err != nil {
		t.Fatal(err)
	}
	o.guards = []*guard{o.guard(disk.NewSink(d.store))}
	began := time.Now()
	if err := d.lookAtProducts(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d products that did not change: looked at in %v", many, time.Since(began))
	if strings.Contains(b.log.String(), "OLDER") {
		t.Errorf("manifests that did not change were read:\n%s", b.log)
	}
}

func TestARevisionThatWentOnUnderALaterNumberIsNotRestored(t *testing.T) {
	b := newBench(t)
	s := newSalvage(b.daemon(t))
	spooled := filepath.Join(t.TempDir(), "granule")
	if err := os.WriteFile(spooled, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fact := ledger.Fact{Dataset: "sea", Name: "a.nc", Revision: 2, SHA256: "same", SpoolPath: spooled}
	later := fact
	later.Revision, later.Publication = 3, &ledger.PublishedFact{File: spooled}
	s.addFact(fact) // as it was before its number was found to be taken
	s.addFact(later)
	if got := s.found(); len(got) != 1 || got[0].Revision != 3 {
		t.Errorf("found() = %+v, want revision 3 only", got)
	}
}
