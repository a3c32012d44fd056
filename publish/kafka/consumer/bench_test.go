package consumer_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka/brokertest"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
)

// BenchmarkPublish sends products of 27 MB to a real broker, and the same
// number of bytes with the plain writer of kafka-go at the same settings, turn
// by turn, so that both see the same machine. The ratio of their throughputs
// must be at least 0.7: the sink also reads the file, hashes it and sends the
// event.
func BenchmarkPublish(b *testing.B) {
	const parts, partBytes = 30, 900_000
	for _, compression := range []string{"none", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			broker := brokertest.Start(b, brokertest.Options{})
			cfg := sinkConfig(broker.Addrs())
			cfg.Compression = compression
			sink := newSink(b, cfg)
			mustPublish(b, sink, newProduct(b, "sea", "warm-up", 1, parts*partBytes))
			p := newProduct(b, "sea", "a", 1, parts*partBytes)
			p.Hashed = new(publish.Hashed) // as a product that this process has stored
			p.Hashed.Note(p.Path, p.SHA256)
			value := make([]byte, partBytes)
			_, _ = rand.Read(value)
			codecs := map[string]compress.Compression{"none": compress.None, "zstd": compress.Zstd}
			pool := &kafkago.Transport{}
			defer pool.CloseIdleConnections()
			w := &kafkago.Writer{
				Addr: kafkago.TCP(broker.Addrs()...), Topic: "lacuna.data", RequiredAcks: kafkago.RequireAll, BatchSize: 1,
				Transport: pool, Compression: codecs[compression], Balancer: &kafkago.Hash{},
			}
			defer w.Close()
			raw := func() time.Duration {
				begun := time.Now()
				for range parts {
					if err := w.WriteMessages(b.Context(), kafkago.Message{Key: []byte("sea/a"), Value: value}); err != nil {
						b.Fatal(err)
					}
				}
				return time.Since(begun)
			}
			raw()
			var ours, plain []time.Duration
			b.SetBytes(parts * partBytes)
			for b.Loop() {
				plain = append(plain, raw())
				p.Revision++
				begun := time.Now()
				mustPublish(b, sink, p)
				ours = append(ours, time.Since(begun))
			}
			ratio := median(plain).Seconds() / median(ours).Seconds()
			b.ReportMetric(ratio, "of_plain_writer")
			if ratio < 0.7 && len(ours) >= 5 {
				b.Errorf("throughput is %.2f of the plain writer's, want at least 0.7", ratio)
			}
		})
	}
}

// BenchmarkLatency measures from a product that is stored to its file in the
// hands of a consumer.
func BenchmarkLatency(b *testing.B) {
	broker := brokertest.Start(b, brokertest.Options{})
	products, _ := start(b, consumerConfig(b, broker.Addrs()))
	sink := newSink(b, sinkConfig(broker.Addrs()))
	mustPublish(b, sink, newProduct(b, "sea", "warm-up", 1, 1_000_000))
	next(b, products)
	content := newProduct(b, "sea", "a", 1, 1_000_000)
	var took []time.Duration
	for b.Loop() {
		for range 100 {
			content.Revision++
			begun := time.Now()
			mustPublish(b, sink, content)
			next(b, products)
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return took[min(int(share*float64(len(took))), len(took)-1)].Seconds() * 1000
	}
	b.ReportMetric(at(0.5), "p50_ms")
	b.ReportMetric(at(0.99), "p99_ms")
	if os.Getenv("LACUNA_LONG") != "" {
		fmt.Fprintf(b.Output(), "%d products, slowest %.1f ms\n", len(took), at(1))
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
