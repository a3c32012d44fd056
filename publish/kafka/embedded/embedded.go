// Package embedded runs a Kafka-compatible broker inside this process, so that
// Lacuna can be tried without one.
//
// It listens on the loopback interface, keeps everything in memory and forgets
// it at the end; its memory is bounded by time and bytes. It is for trying out:
// it has one node, no users and no disk.
//
// Package embedded knows nothing of products or of our topics, which the
// publisher makes.
package embedded

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Config holds the settings of a broker.
type Config struct {
	Port          int           `yaml:"port"`           // port on the loopback interface; 0: any that is free
	MaxTopicBytes int64         `yaml:"max_topic_size"` // size limit of a partition; older messages are dropped
	MaxAge        time.Duration `yaml:"max_age"`        // age limit of messages of topics that are not compacted
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Port:          0,
		MaxTopicBytes: 64 << 20, // with four partitions some hundred products of the demo
		MaxAge:        time.Hour,
	}
}

// sweepInterval is the time between two removals of old messages.
const sweepInterval = 10 * time.Second

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	stop    chan struct{}
	swept   sync.WaitGroup
}

// New starts a broker. Close stops it.
func New(cfg Config) (*Broker, error) {
	options := []kfake.Opt{
		kfake.NumBrokers(1), kfake.ClusterID("lacuna-embedded"),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes": strconv.FormatInt(cfg.MaxTopicBytes, 10),
			"log.retention.ms":    strconv.FormatInt(cfg.MaxAge.Milliseconds(), 10),
		}),
	}
	if cfg.Port != 0 {
		options = append(options, kfake.Ports(cfg.Port))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		return nil, fmt.Errorf("start the in-memory broker on port %d: %w", cfg.Port, err)
	}
	b := &Broker{cluster: cluster, stop: make(chan struct{})}
	b.swept.Go(b.sweep)
	return b, nil
}

// Addr is the host:port that clients connect to.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Close stops the broker and drops its messages.
func (b *Broker) Close() {
	close(b.stop)
	b.swept.Wait()
	b.cluster.Close()
}

// sweep drops messages beyond the limits until Close.
func (b *Broker) sweep() {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
			b.cluster.ApplyRetention()
			b.cluster.Compact()
		}
	}
}
