package daemon

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/outbox"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"
)

const (
	// publisherEnv makes the test binary a publisher in the folder it names.
	publisherEnv = "LACUNA_TEST_PUBLISHER"
	brokerEnv    = "LACUNA_TEST_BROKER"
	finishEnv    = "LACUNA_TEST_FINISH" // deliver the queue and exit

	publisherKills     = 60
	publisherKillsLong = 200 // in the long suite
)

// publisherConfig is a daemon with the sinks disk and kafka in a folder.
func publisherConfig(folder, broker string) Config {
	cfg := DefaultConfig()
	cfg.StateDir, cfg.ProductsDir = filepath.Join(folder, "state"), filepath.Join(folder, "products")
	cfg.Publish.Disk.FloorMiB = 0
	cfg.Publish.RetryMin, cfg.Publish.Poll = 10*time.Millisecond, 50*time.Millisecond
	cfg.Publish.Kafka = &outbox.Kafka{Config: kafka.DefaultConfig()}
	cfg.Publish.Kafka.Brokers = []string{broker}
	cfg.Publish.Kafka.PartBytes = 16 << 10 // so that small products have parts
	return cfg
}

// publisher takes made-up products through the store, the ledger and the
// sinks, as the worker of a dataset does with real ones.
type publisher struct {
	book  *ledger.Ledger
	store disk.Store
	now   func() time.Time
	out   *outbox.Outbox
	queue outbox.Queue
}

func openPublisher(ctx context.Context, cfg Config) (*publisher, error) {
	book, err := ledger.Open(ctx, cfg.state().Ledger())
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	d := &Daemon{cfg: cfg, parts: Parts{Log: log, Now: time.Now}, log: log, store: cfg.Publish.Store(cfg.ProductsDir)}
	out, err := d.openOutbox(ctx, book)
	if err != nil {
		return nil, err
	}
	return &publisher{
		book: book, store: d.store, now: time.Now, out: out,
		queue: outbox.Queue{Book: book, Store: d.store, Sinks: cfg.Publish.SinkNames(), Now: time.Now},
	}, nil
}

// publisherProduct returns the content of a product, which depends only on the
// granule, as with a real one.
func publisherProduct(g ledger.Granule) []byte {
	return bytes.Repeat([]byte(g.Name+" "+g.SHA256+"\n"), 40<<10/(len(g.Name)+len(g.SHA256)+2))
}

// publisherMembers returns the members of a product; every third granule has
// none.
func publisherMembers(g ledger.Granule) []byte {
	if g.Size%3 == 0 {
		return nil
	}
	return append([]byte("members of "), publisherProduct(g)...)
}

func (p *publisher) process(ctx context.Context, g ledger.Granule) error {
	if err := p.book.Advance(ctx, g.ID, ledger.Filled, p.now()); err != nil {
		return err
	}
	item := disk.Item{Dataset: g.Dataset, Granule: g.Name, Name: fill.ProductName(g.Name), Time: publisherDay(g.Name), Revision: g.Revision}
	members := publisherMembers(g)
	stored, err := p.store.Put(ctx, item, func(path string) error {
		if members != nil {
			if err := os.WriteFile(disk.MembersPath(path), members, 0o644); err != nil {
				return err
			}
		}
		return os.WriteFile(path, publisherProduct(g), 0o644)
	})
	if err != nil {
		return err
	}
	told := publish.Product{
		Dataset: g.Dataset, Granule: g.Name, Name: filepath.Base(stored.Visible), Time: item.Time, Revision: g.Revision,
		Path: stored.Path, Size: stored.Bytes, SHA256: stored.SHA256, BBox: [4]float64{26, 40, 42, 48}, Variable: "CHL", Units: "1",
		Model: "oi", Mode: publish.NearRealTime, Created: g.Recorded,
	}
	if members != nil {
		told.Members = &publish.Members{
			Name: publish.MembersName(told.Name), Path: disk.MembersPath(stored.Path), Size: int64(len(members)), SHA256: hash(members), Count: 2,
		}
	}
	return p.queue.Add(ctx, g, told, ledger.Product{Path: stored.Visible, SHA256: stored.SHA256})
}

// publisherDay spreads granules over a few days.
func publisherDay(name string) time.Time {
	return time.Date(2024, 4, 1+int(name[len(name)-4]-'0')%5, 0, 0, 0, 0, time.UTC)
}

// pending finishes the granules that a killed process has left.
func (p *publisher) pending(ctx context.Context) error {
	for _, dataset := range []string{"chl", "sst"} {
		left, err := p.book.Pending(ctx, dataset)
		if err != nil {
			return err
		}
		for _, g := range left {
			if err := p.process(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestPublisherProcess is the publisher that is killed, in a process of its own;
// it tests nothing itself.
func TestPublisherProcess(t *testing.T) {
	folder := os.Getenv(publisherEnv)
	if folder == "" {
		t.Skip("is started by TestKilledPublisherLeavesFilesLedgerAndTopicAgreed")
	}
	ctx := context.Background()
	p, err := openPublisher(ctx, publisherConfig(folder, os.Getenv(brokerEnv)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.pending(ctx); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(finishEnv) != "" {
		if err := p.out.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, stage := range p.out.Stages() {
		g.Go(func() error { return stage.Run(ctx, ctx) })
	}
	g.Go(func() error { return p.produce(ctx) })
	t.Fatal(g.Wait())
}

// produce makes products without end, and now and then retracts one.
func (p *publisher) produce(ctx context.Context) error {
	for i := 0; ; i++ {
		a := ledger.Arrival{
			Object: ledger.Object{Dataset: []string{"chl", "sst"}[i%2], Name: fmt.Sprintf("granule%d.nc", i/2%10), Size: int64(i), ModTime: p.now()},
			SHA256: fmt.Sprintf("%d-%d", os.Getpid(), i), SpoolPath: "spool",
		}
		g, _, err := p.book.Arrive(ctx, a, p.now())
		if err != nil {
			return err
		}
		if err := p.process(ctx, g); err != nil {
			return err
		}
		p.out.Nudge()
		if i%9 == 8 {
			_, err := p.book.QueueRetraction(ctx, ledger.Retraction{
				Dataset: g.Dataset, Granule: g.Name, Why: "every ninth", Sinks: p.queue.Sinks,
			}, p.now())
			if err != nil {
				return err
			}
		}
		fmt.Println("stored", i)
		time.Sleep(2 * time.Millisecond) // so that the sinks keep up and are killed at work
	}
}

func TestKilledPublisherLeavesFilesLedgerAndTopicAgreed(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a process many times")
	}
	if os.Getenv(publisherEnv) != "" {
		t.Skip("this is the process")
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	folder, addr := t.TempDir(), broker.ListenAddrs()[0]
	random := rand.New(rand.NewPCG(3, 5))
	kills := publisherKills
	if os.Getenv("LACUNA_LONG") != "" {
		kills = publisherKillsLong
	}
	for range kills {
		killPublisher(t, folder, addr, random)
	}
	finish := publisherCommand(folder, addr)
	finish.Env = append(finish.Env, finishEnv+"=1")
	if said, err := finish.CombinedOutput(); err != nil {
		t.Fatalf("finish: %v\n%s", err, said)
	}
	cfg := publisherConfig(folder, addr)
	rows := publishedRows(t, cfg)
	t.Logf("%d revisions in the ledger after %d kills", len(rows), kills)
	if len(rows) < 2*kills {
		t.Errorf("%d revisions are too few to mean anything", len(rows))
	}
	wantFilesAgree(t, cfg, rows)
	wantTopicAgrees(t, cfg, rows)
}

func publisherCommand(folder, broker string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestPublisherProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), publisherEnv+"="+folder, brokerEnv+"="+broker)
	return cmd
}

// killPublisher lets a publisher store some products and kills it a random
// moment later.
func killPublisher(t *testing.T, folder, broker string, random *rand.Rand) {
	t.Helper()
	cmd := publisherCommand(folder, broker)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stored, moment := 1+random.IntN(15), time.Duration(random.IntN(20_000))*time.Microsecond
	n := 0
	var said []string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		said = append(said, lines.Text())
		if n++; n == stored {
			time.AfterFunc(moment, func() { cmd.Process.Kill() })
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("publisher ended by itself: %v\n%s\n%s", err, strings.Join(said, "\n"), trouble.String())
	}
}

// row is a revision as the ledger knows it.
type row struct {
	publish.Product
	retracted bool
}

// publishedRows returns every revision that the ledger knows, oldest first,
// and fails where one is not delivered.
func publishedRows(t *testing.T, cfg Config) []row {
	t.Helper()
	book, err := ledger.Open(t.Context(), cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	backlogs, err := book.Backlogs(t.Context())
	if err != nil || len(backlogs) != 2 {
		t.Fatalf("Backlogs() = %+v, %v, want two sinks", backlogs, err)
	}
	for _, b := range backlogs {
		if b.Waiting != 0 || b.Aside != 0 {
			t.Errorf("sink %s is behind: %+v", b.Sink, b)
		}
	}
	counts, err := book.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, c := range counts {
		total += c.Granules
		if c.State != ledger.Announced {
			t.Errorf("%d granules of %s are %s", c.Granules, c.Dataset, c.State)
		}
	}
	recent, err := book.Recent(t.Context(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range recent { // days without a granule have products too
		switch {
		case g.Absent && g.State == ledger.Announced:
			total++
		case g.Absent && g.State != ledger.Quarantined: // there the granule came first
			t.Errorf("the absence %s is %s", g.Name, g.State)
		}
	}
	published, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(published) != total {
		t.Errorf("%d publications of %d granules", len(published), total)
	}
	return convert.Each(published, func(p ledger.Publication) row {
		d := outbox.Delivery(ledger.Delivery{Publication: p})
		return row{Product: d.Product, retracted: !p.Retracted.IsZero()}
	})
}

// wantFilesAgree compares the folder of products with the ledger.
func wantFilesAgree(t *testing.T, cfg Config, rows []row) {
	t.Helper()
	newest := map[string]row{}
	for _, r := range rows {
		if content, err := os.ReadFile(r.Path); err != nil || hash(content) != r.SHA256 {
			t.Errorf("%s: the revision's own file is not what was promised: %v", r.ID(), err)
		}
		if r.Revision > newest[r.Key()].Revision {
			newest[r.Key()] = r
		}
	}
	listed := map[string]publish.Entry{}
	manifests, _ := filepath.Glob(filepath.Join(cfg.ProductsDir, "*", "*", "*", "*.manifest.json"))
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := publish.ParseManifest(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Products {
			listed[m.Dataset+"/"+e.Granule] = e
		}
	}
	for key, r := range newest {
		e := listed[key]
		visible, _ := cfg.Publish.Store(cfg.ProductsDir).Visible(r.Dataset, r.Time, r.Name)
		content, err := os.ReadFile(visible)
		switch {
		case e.Revision != r.Revision || e.Retracted != r.retracted:
			t.Errorf("%s: manifest has revision %d, retracted %v; ledger %d, %v", key, e.Revision, e.Retracted, r.Revision, r.retracted)
		case r.retracted && !errors.Is(err, os.ErrNotExist):
			t.Errorf("%s: retracted and still there: %v", key, err)
		case !r.retracted && (err != nil || hash(content) != r.SHA256 || !e.Live()):
			t.Errorf("%s: file has %s, ledger %s, %v", key, hash(content), r.SHA256, err)
		}
		want := ""
		if r.Members != nil && !r.retracted {
			want = r.Members.SHA256
		}
		members, err := os.ReadFile(publish.MembersName(visible))
		if (want == "") != errors.Is(err, os.ErrNotExist) || want != "" && hash(members) != want || (e.Members != nil) != (want != "") {
			t.Errorf("%s: the members have %s, %v, the manifest %+v; ledger %q", key, hash(members), err, e.Members, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.ProductsDir, "*", "*", "*", ".put-*")); len(left) > 0 || len(listed) != len(newest) {
		t.Errorf("%d products are listed, %d known; left behind: %v", len(listed), len(newest), left)
	}
}

// wantTopicAgrees reads the topics as a consumer does, and compares them with the
// ledger: every revision once, in order, byte for byte, and every retraction.
func wantTopicAgrees(t *testing.T, cfg Config, rows []row) {
	t.Helper()
	reader := consumer.DefaultConfig()
	reader.Connection, reader.Once, reader.Dir = cfg.Publish.Kafka.Connection, true, t.TempDir()
	received := map[string][]string{} // events by dataset, in order
	retracted := map[string]int{}
	c, err := consumer.New(reader, func(_ context.Context, p consumer.Product) error {
		id := fmt.Sprintf("%s/%s/r%d", p.Dataset, p.Granule, p.Revision)
		if p.Retracted {
			retracted[id]++
			return nil
		}
		content, err := p.Bytes()
		if err != nil {
			return err
		}
		received[p.Dataset] = append(received[p.Dataset], id+" "+hash(content))
		return nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dataset := range []string{"chl", "sst"} {
		var want []string
		for _, r := range rows {
			if r.Dataset == dataset {
				want = append(want, r.ID()+" "+r.SHA256)
			}
		}
		if got := received[dataset]; !slices.Equal(got, want) {
			t.Errorf("consumer of %s was handed %d products, the ledger has %d; first difference at %d", dataset, len(got), len(want), differ(got, want))
		}
	}
	for _, r := range rows {
		if got := retracted[r.ID()]; r.retracted && got != 1 {
			t.Errorf("consumer was told %d times that %s is retracted, want once", got, r.ID())
		}
	}
}

func differ(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
