package kafka

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/publish"

	"github.com/twmb/franz-go/pkg/kfake"
)

// fakeBroker starts an in-process broker.
func fakeBroker(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// testConfig is a configuration for one broker, impatient.
func testConfig(brokers ...string) Config {
	cfg := DefaultConfig()
	cfg.Brokers = brokers
	cfg.Timeout = 10 * time.Second
	cfg.Topics.Partitions = 2
	cfg.Topics.Replication = 1
	return cfg
}

func newSink(t testing.TB, cfg Config) *Sink {
	t.Helper()
	s, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// newProduct writes a file of random bytes and describes it.
func newProduct(t testing.TB, granule string, revision int, size int64) publish.Product {
	t.Helper()
	content := make([]byte, size)
	seed := [32]byte{byte(revision)}
	copy(seed[1:], granule)
	_, _ = rand.NewChaCha8(seed).Read(content)
	name := granule + "_l4.nc"
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return publish.Product{
		Dataset: "blk-chl", Granule: granule, Name: name, Revision: revision, Supersedes: revision - 1,
		Time:      time.Date(2024, 3, 12, 0, 0, 0, 0, time.UTC),
		Created:   time.Date(2024, 3, 13, 6, 30, 0, 123456789, time.UTC),
		Published: time.Date(2024, 3, 13, 5, 0, 0, 0, time.UTC),
		Fetched:   time.Date(2024, 3, 13, 6, 29, 59, 0, time.UTC),
		Filled:    time.Date(2024, 3, 13, 6, 30, 12, 0, time.UTC),
		Path:      path, Size: size, SHA256: hex.EncodeToString(sum[:]),
		BBox: [4]float64{27, 40, 42, 47}, Variable: "CHL", Units: "milligram m-3",
		Model: "oi", Seed: 1<<63 + 1, Mode: publish.NearRealTime,
		CoverageBefore: 0.41, CoverageAfter: 1, MeanUncertainty: 0.23,
		Links: map[string]string{"file": "https://example.org/" + name},
	}
}
