package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/daemontest"
	"lacuna/daemon/feed"
	"lacuna/daemon/outbox"
	"lacuna/internal/durable"
	"lacuna/ledger"
	"lacuna/pipeline/simulate"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	chainKills     = 12
	chainKillsLong = 200 // in the long suite
)

// chainConfig is a daemon with a dataset from a bucket and one from a folder,
// which analyses its products again at once, and the sinks disk and kafka.
func chainConfig(folder, bucket, broker string) daemon.Config {
	cfg := publishingConfig(folder, broker)
	for _, name := range []string{"chl", "sst"} {
		set := daemon.DefaultDataset()
		set.Name = name
		set.Archive.PollInterval, set.Archive.Settle = 40*time.Millisecond, 0
		set.Archive.Dir = filepath.Join(folder, "archive")
		set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays = "climatology", 3, 2
		set.Reanalysis.Settle, set.Reanalysis.LeastChange = 100*time.Millisecond, 0.02
		if name == "chl" {
			set.Archive.Type = "s3"
			set.Archive.S3.Endpoint, set.Archive.S3.Bucket = bucket, "granules"
		}
		cfg.Datasets = append(cfg.Datasets, set)
	}
	cfg.Manners.Pace.RequestsPerSecond, cfg.Manners.Pace.Burst = 1000, 1000
	return cfg
}

// producer puts granules into the bucket and the folder.
type producer struct {
	bucket, folder string
	world          *simulate.World
	schedule       []simulate.Delivery
	scratch        string
	current        map[string]string // sha256 of the objects in the archives, by name
}

func (p *producer) deliver(t *testing.T, n int) {
	t.Helper()
	for _, d := range p.schedule[:min(n, len(p.schedule))] {
		file := filepath.Join(p.scratch, "granule.nc")
		if err := feed.Write(file, p.world.Granule(d)); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(filepath.Join(p.folder, d.Name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.bucket+"/granules/"+d.Name, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("put %s: %v, %v", d.Name, answer, err)
		}
		answer.Body.Close()
		p.current[d.Name] = daemontest.Hash(content)
	}
	p.schedule = p.schedule[min(n, len(p.schedule)):]
}

func newProducer(t *testing.T, folder string) *producer {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("granules"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server())
	t.Cleanup(server.Close)
	days := 60 // more than a short run delivers
	if os.Getenv("LACUNA_LONG") != "" || os.Getenv(eventsEnv) != "" {
		days = 500
	}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 16, Width: 24, Days: days, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := &producer{
		bucket: server.URL, folder: filepath.Join(folder, "archive"), world: w, scratch: t.TempDir(), current: map[string]string{},
	}
	for _, d := range w.Schedule() { // empty granules are left out: another test is about those
		if w.Granule(d).Seen.ObservedMask().Count() > 0 {
			p.schedule = append(p.schedule, d)
		}
	}
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// A daemon is killed at random moments between its start and its last delivery:
// in archive, spool, fill, re-analysis, scores, disk and Kafka. Whatever the
// moment, every visible file is whole, and in the end ledger, disk and topic agree
// and hold every granule, each revision once.
func TestKilledDaemonLosesNothingAndDoesNothingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a process many times")
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	folder := t.TempDir()
	chain := chainRun{folder: folder, broker: broker.ListenAddrs()[0], producer: newProducer(t, folder)}
	random := rand.New(rand.NewPCG(7, 11))
	kills := chainKills
	if os.Getenv("LACUNA_LONG") != "" {
		kills = chainKillsLong
	}
	for range kills {
		if why := chain.setAside(t); why != "" {
			t.Fatalf("set aside: %s", why)
		}
		chain.producer.deliver(t, random.IntN(2))
		chain.kill(t, time.Duration(100+random.IntN(1400))*time.Millisecond)
		chain.wantWhole(t)
	}
	finish := chain.command("chain-finish")
	if said, err := finish.CombinedOutput(); err != nil {
		t.Fatalf("finish: %v\n%s\nset aside: %s", err, said, chain.setAside(t))
	}
	site := siteOf(chain.config())
	rows := site.Rows(t)
	site.WantAgreement(t, rows)
	chain.wantNothingLost(t)
	t.Logf("%d kills, %d granules in each archive, %d revisions published", kills, len(chain.producer.current), len(rows))
}

// chainRun is a daemon that is started and killed again and again.
type chainRun struct {
	folder, broker string
	producer       *producer
}

func (c *chainRun) config() daemon.Config { return chainConfig(c.folder, c.producer.bucket, c.broker) }

// siteOf is where the daemon of a configuration keeps what it publishes.
func siteOf(cfg daemon.Config) daemontest.Site {
	return daemontest.Site{Ledger: stateOf(cfg).Ledger(), Products: cfg.ProductsDir, Store: cfg.Publish.Store(cfg.ProductsDir), Topic: cfg.Publish.Kafka.Connection}
}

func (c *chainRun) command(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, folderEnv+"="+c.folder, brokerEnv+"="+c.broker, bucketEnv+"="+c.producer.bucket)
	return cmd
}

// kill runs a daemon for a while and kills it.
func (c *chainRun) kill(t *testing.T, after time.Duration) {
	t.Helper()
	cmd := c.command("chain")
	said, err := os.Create(filepath.Join(c.producer.scratch, "said")) // a file, because children of the killed process would keep a pipe open
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("the daemon ended by itself: %v\n%s", err, text)
	}
}

// setAside returns the reasons of granules in quarantine: there should be none.
func (c *chainRun) setAside(t *testing.T) (reasons string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(stateOf(c.config()).Quarantine(), "*", "*.why.txt"))
	for _, file := range files {
		why, _ := os.ReadFile(file)
		reasons += string(why)
	}
	return reasons
}

// wantWhole checks that every visible product is one that the ledger promised,
// byte for byte.
func (c *chainRun) wantWhole(t *testing.T) {
	t.Helper()
	cfg := c.config()
	promised := map[string]bool{}
	if book, err := ledger.Join(t.Context(), stateOf(cfg).Ledger()); err == nil { // the daemon may have been killed before it made one
		all, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			promised[outbox.Delivery(ledger.Delivery{Publication: p}).Product.SHA256] = true
		}
		book.Close()
	}
	files, _ := filepath.Glob(filepath.Join(cfg.ProductsDir, "*", "*", "*", "*.nc"))
	for _, file := range files {
		if strings.Contains(file, ".revisions") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil || !promised[daemontest.Hash(content)] {
			t.Fatalf("%s is visible and was never promised: %d bytes, %v", file, len(content), err)
		}
	}
}

// wantNothingLost checks that every object of the archives was published, and that
// no product was made twice: revisions differ in content or in cause.
func (c *chainRun) wantNothingLost(t *testing.T) {
	t.Helper()
	book, err := ledger.Join(t.Context(), stateOf(c.config()).Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	for _, set := range []string{"chl", "sst"} {
		gs, err := book.Window(t.Context(), set, time.Time{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]string{}
		for _, g := range gs {
			have[g.Name] = g.SHA256
			if g.State != ledger.Announced {
				t.Errorf("%s revision %d is %s", g.Name, g.Revision, g.State)
			}
		}
		for name, sha256 := range c.producer.current {
			if have[name] != sha256 {
				t.Errorf("%s: %s was lost: the ledger has %q, the archive %q", set, name, have[name], sha256)
			}
		}
		open, err := book.Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: set, OpenOnly: true})
		if err != nil || len(open) > 0 {
			t.Errorf("%s: still open: %+v, %v", set, open, err)
		}
		if _, due, err := book.NextSkill(t.Context(), set); due || err != nil {
			t.Errorf("%s: a score is still due, %v", set, err)
		}
	}
	wantEachContentOnce(t, book)
}

// wantEachContentOnce checks that no content of an archive was fetched as two
// revisions.
func wantEachContentOnce(t *testing.T, book *ledger.Ledger) {
	t.Helper()
	recent, err := book.Recent(t.Context(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range recent {
		if key := fmt.Sprint(g.Dataset, g.Name, g.SHA256); g.Cause == ledger.FromArchive {
			if seen[key] {
				t.Errorf("%s of %s was taken up twice", g.Name, g.Dataset)
			}
			seen[key] = true
		}
	}
}
