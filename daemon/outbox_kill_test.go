package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/daemontest"
	"lacuna/daemon/fill"
	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"

	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"
)

const (
	// publisherEnv makes the test binary a publisher in the folder it names.
	publisherEnv = "LACUNA_TEST_PUBLISHER"
	brokerEnv    = "LACUNA_TEST_BROKER"
	finishEnv    = "LACUNA_TEST_FINISH" // deliver the queue and exit

	publisherKills     = 30
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
			Name: publish.MembersName(told.Name), Path: disk.MembersPath(stored.Path), Size: int64(len(members)), SHA256: daemontest.Hash(members), Count: 2,
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
	site := siteOf(cfg)
	rows := site.Rows(t)
	t.Logf("%d revisions in the ledger after %d kills", len(rows), kills)
	if len(rows) < 2*kills {
		t.Errorf("%d revisions are too few to mean anything", len(rows))
	}
	site.WantAgreement(t, rows)
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

// siteOf is where the daemon of a configuration keeps what it publishes.
func siteOf(cfg Config) daemontest.Site {
	return daemontest.Site{Ledger: cfg.state().Ledger(), Products: cfg.ProductsDir, Store: cfg.Publish.Store(cfg.ProductsDir), Topic: cfg.Publish.Kafka.Connection}
}

func hash(content []byte) string { return daemontest.Hash(content) }
