package consumer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
)

// patience bounds a test that waits for something that does not come.
const patience = 5 * time.Minute

func fakeBroker(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func sinkConfig(brokers []string) kafka.Config {
	cfg := kafka.DefaultConfig()
	cfg.Brokers = brokers
	cfg.Topics.Partitions = 2
	cfg.Timeout = 2 * time.Minute
	return cfg
}

func newSink(t testing.TB, cfg kafka.Config) *kafka.Sink {
	t.Helper()
	s, err := kafka.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func consumerConfig(t testing.TB, brokers []string) consumer.Config {
	cfg := consumer.DefaultConfig()
	cfg.Brokers = brokers
	cfg.Dir = t.TempDir()
	cfg.Group = "readers"
	return cfg
}

// newProduct writes a file of random bytes and describes it.
func newProduct(t testing.TB, dataset, granule string, revision int, size int64) publish.Product {
	t.Helper()
	content := make([]byte, size)
	seed := [32]byte{byte(revision)}
	copy(seed[1:], dataset+granule)
	_, _ = rand.NewChaCha8(seed).Read(content)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return publish.Product{
		Dataset: dataset, Granule: granule, Name: granule + "_l4.nc", Revision: revision, Supersedes: revision - 1,
		Time:    time.Date(2024, 3, 12, 0, 0, 0, 0, time.UTC),
		Created: time.Date(2024, 3, 13, 6, 30, 0, 0, time.UTC),
		Path:    path, Size: size, SHA256: hex.EncodeToString(sum[:]), BBox: [4]float64{27, 40, 42, 47},
		Variable: "CHL", Units: "milligram m-3", Model: "oi", Mode: publish.NearRealTime,
	}
}

func mustPublish(t testing.TB, s publish.Sink, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		if err := s.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// received is a product that a handler was given, with the content of the file.
type received struct {
	consumer.Product
	content []byte
}

// readOnce returns the products that a consumer hands over until the end.
func readOnce(t testing.TB, cfg consumer.Config) []received {
	t.Helper()
	cfg.Once = true
	var all []received
	c := newConsumer(t, cfg, func(_ context.Context, p consumer.Product) error {
		r := received{Product: p}
		if !p.Retracted && p.Missing == nil {
			var err error
			if r.content, err = p.Bytes(); err != nil {
				return err
			}
		}
		all = append(all, r)
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Run(ctx); err != nil || ctx.Err() != nil {
		t.Fatalf("Run() = %v, %v", err, ctx.Err())
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Dir, ".incoming*")); len(left) > 0 {
		t.Errorf("temporary files are left behind: %v", left)
	}
	return all
}

func newConsumer(t testing.TB, cfg consumer.Config, h consumer.Handler) *consumer.Consumer {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	c, err := consumer.New(cfg, h, log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs a consumer in the background; its products come through the
// channel, and stop ends it.
func start(t testing.TB, cfg consumer.Config) (products <-chan received, stop func()) {
	t.Helper()
	out := make(chan received, 1000)
	c := newConsumer(t, cfg, func(_ context.Context, p consumer.Product) error {
		content, err := p.Bytes()
		if p.Retracted || p.Missing != nil {
			content, err = nil, nil
		}
		out <- received{Product: p, content: content}
		return err
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil after cancellation", err)
		}
	}
	t.Cleanup(stop)
	return out, stop
}

func next(t testing.TB, products <-chan received) received {
	t.Helper()
	select {
	case r := <-products:
		return r
	case <-time.After(patience):
		t.Fatal("nothing was handed over")
		return received{}
	}
}

func ids(all []received) []string {
	var ids []string
	for _, r := range all {
		ids = append(ids, r.Revised())
	}
	return ids
}

func wantIDs(t testing.TB, got []received, want ...string) {
	t.Helper()
	if g := ids(got); !slices.Equal(g, want) {
		t.Errorf("handed over %q, want %q", g, want)
	}
}
