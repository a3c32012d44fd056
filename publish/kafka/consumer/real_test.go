package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/brokertest"
	"lacuna/publish/kafka/consumer"
	"lacuna/publish/sinktest"

	kafkago "github.com/segmentio/kafka-go"
)

// The tests of this file share one real broker; each has topics of its own.
func TestRealBroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Java process")
	}
	r := &real{Cluster: brokertest.Start(t, brokertest.Options{
		Secure: true, Properties: map[string]string{"log.cleaner.backoff.ms": "200"},
	})}
	t.Run("SinkKeepsItsContract", r.contract)
	t.Run("OtherClients", r.clients)
	t.Run("TLSAndLogin", r.security)
	t.Run("MessageTooLarge", r.tooLarge)
	t.Run("TopicsDeleted", r.topicsDeleted)
	t.Run("EventsCompacted", r.compacted)
	t.Run("KilledInTheMiddleOfParts", r.killedInTheMiddle)
	t.Run("AwayWhileProductsPileUp", r.away)
	t.Run("MemoryStaysFlat", r.memoryFlat)
	if os.Getenv("LACUNA_LONG") != "" {
		t.Run("FrozenInTheMiddleOfParts", r.frozen)
	}
}

type real struct{ *brokertest.Cluster }

// topics returns settings for a sink and a consumer on topics of their own.
func (r *real) topics(t *testing.T, prefix string) (kafka.Config, consumer.Config) {
	sink, reader := sinkConfig(r.Addrs()), consumerConfig(t, r.Addrs())
	sink.Prefix, reader.Prefix, reader.Group = prefix, prefix, prefix
	reader.SessionTimeout = 2 * time.Second // the brokers of the tests allow it
	return sink, reader
}

func (r *real) contract(t *testing.T) {
	checks := 0
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		checks++
		return subject(t, r.Addrs(), fmt.Sprintf("contract%d", checks))
	})
}

func (r *real) security(t *testing.T) {
	secret := func(password string) string {
		path := t.TempDir() + "/password"
		if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	login := func(mechanism, password string) kafka.Connection {
		return kafka.Connection{Brokers: r.SASLAddrs(), SASL: kafka.SASL{Mechanism: mechanism, User: brokertest.User, PasswordFile: secret(password)}}
	}
	encrypted := func(name string) kafka.Connection {
		return kafka.Connection{Brokers: r.TLSAddrs(), TLS: kafka.TLS{
			Enabled: true, CAFile: r.File("ca.pem"), CertFile: r.File(name + ".pem"), KeyFile: r.File(name + ".key"),
		}}
	}
	tests := []struct {
		name string
		conn kafka.Connection
		want string // part of the message; empty: it works
	}{
		{"SCRAM", login("scram-sha-512", brokertest.Password), ""},
		{"PLAIN", login("plain", brokertest.Password), ""},
		{"TLS", encrypted("client"), ""},
		{"wrong SCRAM password", login("scram-sha-512", "guess"), "user or password refused"},
		{"wrong PLAIN password", login("plain", "guess"), "user or password refused"},
		{"mechanism not offered", login("scram-sha-256", brokertest.Password), "does not know this sasl.mechanism"},
		{"no login", kafka.Connection{Brokers: r.SASLAddrs()}, "is tls or sasl set"},
		{"certificate of another authority", encrypted("stranger"), "certificates do not fit"},
		{"no TLS to a TLS port", kafka.Connection{Brokers: r.TLSAddrs()}, "is tls or sasl set"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink, reader := r.topics(t, fmt.Sprintf("secure%d", i))
			sink.Connection, reader.Connection = tt.conn, tt.conn
			p := newProduct(t, "sea", "a", 1, 2_000_000)
			begun := time.Now()
			err := newSink(t, sink).Publish(t.Context(), p)
			if tt.want != "" {
				if err == nil || errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Publish() = %v, want a message with %q", err, tt.want)
				}
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("it took %v to find out", took)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantIDs(t, readOnce(t, reader), p.ID())
		})
	}
}

func (r *real) tooLarge(t *testing.T) {
	cfg, _ := r.topics(t, "large")
	sink := newSink(t, cfg)
	mustPublish(t, sink, newProduct(t, "sea", "a", 1, 10))
	r.admin(t, func(ctx context.Context, c *kafkago.Client) error {
		_, err := c.IncrementalAlterConfigs(ctx, &kafkago.IncrementalAlterConfigsRequest{Resources: []kafkago.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: "large.data",
			Configs: []kafkago.IncrementalAlterConfigsRequestConfig{{Name: "max.message.bytes", Value: "100000", ConfigOperation: kafkago.ConfigOperationSet}},
		}}})
		return err
	})
	big := newProduct(t, "sea", "b", 1, 2_000_000)
	if err := sink.Publish(t.Context(), big); !errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("Publish() = %v, want a permanent failure that names max.message.bytes", err)
	}
	if err := newSink(t, cfg).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "at most 100000 bytes") {
		t.Errorf("Check() = %v, want the limit of the topic", err)
	}
	cfg.PartBytes = 50_000
	mustPublish(t, newSink(t, cfg), big)
}

func (r *real) topicsDeleted(t *testing.T) {
	cfg, reader := r.topics(t, "deleted")
	sink := newSink(t, cfg)
	products, stop := start(t, reader)
	a, b := newProduct(t, "sea", "a", 1, 2_000_000), newProduct(t, "sea", "b", 1, 2_000_000)
	mustPublish(t, sink, a)
	wantIDs(t, []received{next(t, products)}, a.ID())
	// A commit that arrives after the topic was made anew would stand for its
	// first event: with the group's own offsets nobody can tell the two apart.
	r.waitForCommit(t, reader.Group, "deleted.events")
	r.admin(t, func(ctx context.Context, c *kafkago.Client) error {
		_, err := c.DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: []string{"deleted.events", "deleted.data"}})
		return err
	})
	mustPublish(t, sink, b)
	got := next(t, products)
	wantIDs(t, []received{got}, b.ID())
	if want, _ := os.ReadFile(b.Path); !bytes.Equal(got.content, want) {
		t.Errorf("after the topics were made again the product differs: %v", got.Missing)
	}
	stop()
}

// killedInTheMiddle kills the broker twice while one product of a hundred
// parts is on its way. The sink rides it out; every part is there once.
func (r *real) killedInTheMiddle(t *testing.T) {
	cfg, reader := r.topics(t, "killed")
	cfg.Timeout = 10 * time.Minute
	cfg.Compression = "none"
	products, _ := start(t, reader)
	sink := newSink(t, cfg)
	before, p := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 90_000_000)
	mustPublish(t, sink, before)
	published := make(chan error, 1)
	go func() { published <- sink.Publish(context.WithoutCancel(t.Context()), p) }()
	for _, parts := range []int64{10, 40} {
		r.awaitParts(t, "killed.data", parts)
		select {
		case err := <-published:
			t.Fatalf("Publish() = %v before the broker was killed", err)
		default:
		}
		r.Kill(0)
		r.Restart(0)
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	got := []received{next(t, products), next(t, products)}
	wantIDs(t, got, before.ID(), p.ID())
	if want, _ := os.ReadFile(p.Path); !bytes.Equal(got[1].content, want) {
		t.Errorf("the product differs: %v", got[1].Missing)
	}
	if parts, err := r.parts(t.Context(), "killed.data"); err != nil || parts != 101 {
		t.Errorf("%d messages on the data topic (%v), want 1 + 100", parts, err)
	}
}

// away has the broker gone while a queue of products is tried again and again,
// as the outbox does. Time is compressed: seconds for hours.
func (r *real) away(t *testing.T) {
	cfg, reader := r.topics(t, "away")
	cfg.Timeout = 500 * time.Millisecond
	products, _ := start(t, reader)
	sink := newSink(t, cfg)
	var queue []publish.Product
	var want []string
	for i := range 20 {
		p := newProduct(t, fmt.Sprintf("sea%d", i%2), fmt.Sprintf("day%02d", i/4), i%4/2+1, 50_000)
		queue = append(queue, p)
		want = append(want, p.ID())
	}
	var got []received
	failures := 0
	for i, p := range queue {
		if i == 3 {
			r.Kill(0)
		}
		for err := sink.Publish(t.Context(), p); err != nil; err = sink.Publish(t.Context(), p) {
			if errors.Is(err, publish.ErrPermanent) {
				t.Fatal(err)
			}
			failures++
			if failures == 6 {
				r.Restart(0)
			}
		}
	}
	if failures < 6 {
		t.Errorf("only %d attempts went wrong: the broker was not away", failures)
	}
	for range queue {
		got = append(got, next(t, products))
	}
	for _, dataset := range []string{"sea0", "sea1"} {
		wantIDs(t, only(got, dataset), filter(want, dataset)...)
	}
}

func only(all []received, dataset string) (of []received) {
	for _, r := range all {
		if r.Dataset == dataset {
			of = append(of, r)
		}
	}
	return of
}

func filter(ids []string, dataset string) (of []string) {
	for _, id := range ids {
		if strings.HasPrefix(id, dataset+"/") {
			of = append(of, id)
		}
	}
	return of
}

func (r *real) admin(t *testing.T, do func(context.Context, *kafkago.Client) error) {
	t.Helper()
	pool := &kafkago.Transport{}
	defer pool.CloseIdleConnections()
	if err := do(t.Context(), &kafkago.Client{Addr: kafkago.TCP(r.Addrs()...), Transport: pool, Timeout: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}
}

// parts counts the messages of a topic.
func (r *real) parts(ctx context.Context, topic string) (n int64, err error) {
	c, err := kafka.Connection{Brokers: r.Addrs()}.Open()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	partitions, err := c.Partitions(ctx, topic)
	for _, p := range partitions {
		first, next, err := c.Bounds(ctx, topic, p.ID)
		if err != nil {
			return 0, err
		}
		n += next - first
	}
	return n, err
}

func (r *real) awaitParts(t *testing.T, topic string, atLeast int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		n, err := r.parts(ctx, topic)
		if ctx.Err() != nil {
			t.Fatalf("%s has %d messages (%v), want at least %d", topic, n, err, atLeast)
		}
		if err == nil && n >= atLeast {
			return
		}
	}
}

// waitForCommit returns when a group has committed an offset of a topic.
func (r *real) waitForCommit(t *testing.T, group, topic string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		committed := false
		r.admin(t, func(ctx context.Context, c *kafkago.Client) error {
			told, err := c.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1, 2, 3}}})
			if err != nil {
				return err
			}
			for _, p := range told.Topics[topic] {
				committed = committed || p.CommittedOffset > 0
			}
			return nil
		})
		if committed {
			return
		}
	}
	t.Fatalf("group %s has committed nothing of %s", group, topic)
}
