package consumer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"
	"lacuna/publish/kafka/embedded"
)

// A reader takes every product that is on the topics, then ends. Without Once it
// goes on with those that come, until its context is cancelled.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	broker, err := embedded.New(embedded.DefaultConfig()) // in your program: brokers of yours
	if err != nil {
		panic(err)
	}
	defer broker.Close()
	announce(dir, broker.Addr())

	cfg := consumer.DefaultConfig()
	cfg.Brokers, cfg.Group, cfg.Dir, cfg.Once = []string{broker.Addr()}, "my-forecast", dir, true
	handle := func(_ context.Context, p consumer.Product) error {
		if p.Missing != nil || p.Retracted {
			return nil // there is no file
		}
		content, err := p.Bytes() // complete and verified; move p.Path away to keep it
		fmt.Printf("%s %s revision %d: %s\n", p.Dataset, p.File.Name, p.Revision, content)
		return err
	}
	c, err := consumer.New(cfg, handle, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// black-sea 20240401_l4.nc revision 1: a gap-free map
}

// announce publishes a product, as the daemon does.
func announce(dir, broker string) {
	content := []byte("a gap-free map")
	path := filepath.Join(dir, "20240401_l4.nc")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		panic(err)
	}
	cfg := kafka.DefaultConfig()
	cfg.Brokers = []string{broker}
	sink, err := kafka.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	defer sink.Close()
	sum := sha256.Sum256(content)
	day := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	err = sink.Publish(context.Background(), publish.Product{
		Dataset: "black-sea", Granule: "20240401.nc", Name: "20240401_l4.nc", Revision: 1, Time: day, Created: day.AddDate(0, 0, 1),
		Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), BBox: [4]float64{27, 40, 42, 47},
		Variable: "CHL", Units: "milligram m-3", Model: "oi", Mode: publish.NearRealTime,
	})
	if err != nil {
		panic(err)
	}
}
