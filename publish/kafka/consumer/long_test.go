package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/brokertest"
	"lacuna/publish/kafka/consumer"
)

// memoryFlat sends a product that is much larger than the memory of either side
// may grow.
func (r *real) memoryFlat(t *testing.T) {
	const size, allowed = 200_000_000, 16 << 20
	cfg, reader := r.topics(t, "flat")
	cfg.Compression = "none" // the windows of zstd have a constant 50 MB
	p := newProduct(t, "sea", "a", 1, size)
	done := make(chan struct{})
	c := newConsumer(t, reader, func(_ context.Context, p consumer.Product) error {
		defer close(done)
		return p.Missing
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	peak := watchHeap(t)
	mustPublish(t, newSink(t, cfg), p)
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("the product was not handed over")
	}
	if grown := peak(); grown > allowed {
		t.Errorf("the heap grew by %d MB for a product of %d MB, want at most %d", grown>>20, size>>20, allowed>>20)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// watchHeap returns a function that tells by how much the live heap has grown
// since, at most, as the collections in between have found it.
func watchHeap(t *testing.T) (grown func() uint64) {
	t.Helper()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	most := before
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.Tick(10 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick:
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return most - before
	}
}

// A broker that is frozen answers nothing and closes nothing. When it thaws, it
// carries out earlier requests: the repetition must not count twice.
func (r *real) frozen(t *testing.T) {
	cfg, reader := r.topics(t, "frozen")
	cfg.Timeout = 60 * time.Second
	cfg.Compression = "none"
	products, _ := start(t, reader)
	sink := newSink(t, cfg)
	p := newProduct(t, "sea", "a", 1, 90_000_000)
	published := make(chan error, 1)
	go func() { published <- sink.Publish(context.WithoutCancel(t.Context()), p) }()
	r.awaitParts(t, "frozen.data", 10)
	thaw := r.Freeze(0)
	time.AfterFunc(13*time.Second, thaw) // longer than a request is waited for
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	got := next(t, products)
	if want, _ := os.ReadFile(p.Path); !bytes.Equal(got.content, want) {
		t.Errorf("the product differs: %v", got.Missing)
	}
	if parts, err := r.parts(t.Context(), "frozen.data"); err != nil || parts != 100 {
		t.Errorf("%d messages on the data topic (%v), want 100", parts, err)
	}
}

// Three brokers, of which one is lost, another comes back, and the leaders
// change while products are under way: nothing is lost, nothing comes twice,
// the order of a dataset is kept.
func TestThreeBrokersOfWhichOneIsLost(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("takes a minute and three Java processes: set LACUNA_LONG=1")
	}
	r := &real{Cluster: brokertest.Start(t, brokertest.Options{Nodes: 3})}
	cfg, reader := r.topics(t, "three")
	cfg.Topics.Replication = 3
	cfg.Topics.Partitions = 6 // so that every broker leads some
	cfg.Timeout = 90 * time.Second
	products, _ := start(t, reader)
	sink := newSink(t, cfg)
	var published []publish.Product
	send := func(n int) {
		for range n {
			i := len(published)
			p := newProduct(t, fmt.Sprintf("sea%d", i%3), fmt.Sprintf("day%03d", i/3), 1, 5_000_000)
			published = append(published, p)
			mustPublish(t, sink, p)
		}
	}
	send(6)
	for node := range 3 {
		killed := make(chan struct{})
		time.AfterFunc(200*time.Millisecond, func() { r.Kill(node); close(killed) })
		send(12)
		<-killed
		send(3)
		r.Restart(node)
		r.awaitReplicas(t, "three.data", 3)
		r.awaitReplicas(t, "three.events", 3)
		r.awaitReplicas(t, "__consumer_offsets", 3)
	}
	send(3)
	byDataset, want := map[string][]received{}, map[string][]string{}
	for _, p := range published {
		got := next(t, products)
		byDataset[got.Dataset] = append(byDataset[got.Dataset], got)
		want[p.Dataset] = append(want[p.Dataset], p.ID())
		if got.Missing != nil {
			t.Errorf("%s: %v", got.ID, got.Missing)
		}
	}
	for dataset, ids := range want {
		wantIDs(t, byDataset[dataset], ids...)
	}
	select {
	case extra := <-products:
		t.Errorf("%s was handed over as well", extra.ID)
	case <-time.After(2 * time.Second):
	}
	if parts, err := r.parts(t.Context(), "three.data"); err != nil || parts != int64(6*len(published)) {
		t.Errorf("%d parts on the topic (%v), want %d", parts, err, 6*len(published))
	}
}

// awaitReplicas waits until every partition has so many in-sync replicas.
func (r *real) awaitReplicas(t *testing.T, topic string, n int) {
	t.Helper()
	c, err := kafka.Connection{Brokers: r.Addrs()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for whole := false; !whole; time.Sleep(100 * time.Millisecond) {
		partitions, err := c.Partitions(ctx, topic)
		whole = err == nil
		for _, p := range partitions {
			whole = whole && len(p.Isr) == n
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("%s does not come to %d replicas: %+v, %v", topic, n, partitions, err)
		}
	}
}
