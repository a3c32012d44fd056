package consumer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"
	"lacuna/publish/sinktest"

	kafkago "github.com/segmentio/kafka-go"
)

func TestSinkKeepsItsContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		broker := fakeBroker(t)
		return subject(t, broker.ListenAddrs(), "lacuna")
	})
}

// subject is a sink and a consumer on the same topics.
func subject(t *testing.T, brokers []string, prefix string) sinktest.Subject {
	cfg := sinkConfig(brokers)
	cfg.Prefix = prefix
	restart := func(t *testing.T) publish.Sink { return newSink(t, cfg) }
	return sinktest.Subject{
		Sink:    restart(t),
		Restart: restart,
		Receive: func(t *testing.T, dataset string) map[string]sinktest.Seen {
			if err := newSink(t, cfg).Check(t.Context()); err != nil { // where nothing was published
				t.Fatal(err)
			}
			seen, news := map[string]sinktest.Seen{}, map[string]bool{}
			reader := consumerConfig(t, brokers)
			reader.Prefix, reader.Group = prefix, prefix
			for _, r := range readOnce(t, reader) {
				if news[r.ID] {
					t.Errorf("%s was handed over twice", r.ID)
				}
				news[r.ID] = true
				if r.Dataset != dataset {
					continue
				}
				one := sinktest.Seen{Revision: r.Revision, Retracted: r.Retracted, Why: r.Why}
				if r.Missing != nil {
					t.Errorf("%s is announced and not there: %v", r.ID, r.Missing)
				}
				if !r.Retracted {
					sum := sha256.Sum256(r.content)
					one.SHA256 = hex.EncodeToString(sum[:])
				}
				if r.Members != nil {
					one.Members = r.Members.SHA256
				}
				seen[r.Granule] = one
			}
			return seen
		},
	}
}

func TestProductOfManyPartsArrivesByteForByte(t *testing.T) {
	broker := fakeBroker(t)
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		cfg := sinkConfig(broker.ListenAddrs())
		cfg.Prefix, cfg.Compression = compression, compression
		p := newProduct(t, "sea", "a", 1, 5_000_001)
		empty := newProduct(t, "sea", "b", 1, 0)
		mustPublish(t, newSink(t, cfg), p, empty)
		reader := consumerConfig(t, broker.ListenAddrs())
		reader.Prefix = compression
		got := readOnce(t, reader)
		wantIDs(t, got, p.ID(), empty.ID())
		if want, _ := os.ReadFile(p.Path); !bytes.Equal(got[0].content, want) {
			t.Errorf("%s: %d bytes differ from the file's %d", compression, len(got[0].content), len(want))
		}
	}
}

func TestReadersSkipTheOwnerMessage(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, a)
	if err := sink.Claim(t.Context(), publish.Owner{State: "ours", Epoch: 1, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, sink, b)
	var log bytes.Buffer
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.Once = true
	var got []string
	c, err := consumer.New(cfg, func(_ context.Context, p consumer.Product) error {
		got = append(got, p.ID)
		return nil
	}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err == nil {
		err = c.Run(t.Context())
	}
	if err != nil || !slices.Equal(got, []string{a.ID(), b.ID()}) || log.Len() > 0 {
		t.Errorf("read %v, %v, and complained: %s", got, err, &log)
	}
}

func TestProductThatWasNotTakenComesAgain(t *testing.T) {
	broker := fakeBroker(t)
	a, b, c := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000), newProduct(t, "sea", "c", 1, 1000)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), a, b, c)
	cfg := consumerConfig(t, broker.ListenAddrs())
	full := errors.New("the disk is full")
	taken := 0
	err := newConsumer(t, cfg, func(_ context.Context, p consumer.Product) error {
		if p.ID == b.ID() {
			return full
		}
		taken++
		return nil
	}).Run(t.Context())
	if !errors.Is(err, full) || taken != 1 {
		t.Fatalf("Run() = %v after %d products, want the handler's error after 1", err, taken)
	}
	wantIDs(t, readOnce(t, cfg), b.ID(), c.ID())
	wantIDs(t, readOnce(t, cfg))
}

func TestRepetitionIsDroppedAlsoAfterARestart(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, a)
	if err := sink.Replay(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	cfg := consumerConfig(t, broker.ListenAddrs())
	wantIDs(t, readOnce(t, cfg), a.ID())
	if err := sink.Replay(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, sink, b)
	wantIDs(t, readOnce(t, cfg), b.ID())
	cfg.Group = "latecomers"
	wantIDs(t, readOnce(t, cfg), a.ID(), b.ID())
}

// Events with one id have one body: a replay, whose parts lie elsewhere, has an id
// of its own and says that it is the same revision.
func TestAReplayHasAnIDOfItsOwn(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a := newProduct(t, "sea", "a", 1, 1000)
	mustPublish(t, sink, a)
	for range 2 {
		if err := sink.Replay(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	bodies := map[string]string{}
	look := func(m kafkago.Message) error {
		e, err := kafka.ParseEvent(m)
		if err != nil {
			return nil // of the owner
		}
		if before, known := bodies[e.ID]; known && before != string(m.Value) {
			t.Errorf("two events with the id %s have the bodies\n%s\n%s", e.ID, before, m.Value)
		}
		bodies[e.ID] = string(m.Value)
		if e.Revised() != a.ID() {
			t.Errorf("%s is about %s, want %s", e.ID, e.Revised(), a.ID())
		}
		return nil
	}
	c, err := kafka.Connection{Brokers: broker.ListenAddrs()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for partition := range 2 {
		_, end, err := c.Bounds(t.Context(), "lacuna.events", partition)
		if err == nil {
			err = c.Read(t.Context(), kafka.Span{Topic: "lacuna.events", Partition: partition, To: end}, look)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies) != 3 {
		t.Errorf("there are %d ids, want 3", len(bodies))
	}
}

func TestPartsThatAreGoneAreReportedAndTheRestGoesOn(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a := newProduct(t, "sea", "a", 1, 1000)
	mustPublish(t, sink, a)
	for partition := range int32(2) {
		if err := broker.DeleteRecords("lacuna.data", partition, -1); err != nil {
			t.Fatal(err)
		}
	}
	b := newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, b)
	got := readOnce(t, consumerConfig(t, broker.ListenAddrs()))
	wantIDs(t, got, a.ID(), b.ID())
	if !errors.Is(got[0].Missing, kafka.ErrGone) || got[1].Missing != nil {
		t.Errorf("missing are %v and %v, want only the first to be gone", got[0].Missing, got[1].Missing)
	}
}

func TestReplayBringsALostProduct(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a := newProduct(t, "sea", "a", 1, 1000)
	mustPublish(t, sink, a)
	for partition := range int32(2) {
		if err := broker.DeleteRecords("lacuna.data", partition, -1); err != nil {
			t.Fatal(err)
		}
	}
	products, _ := start(t, consumerConfig(t, broker.ListenAddrs()))
	if gone := next(t, products); gone.Missing == nil {
		t.Fatal("the parts are gone and the product is there")
	}
	for range 2 {
		if err := sink.Replay(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	b := newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, b)
	got := []received{next(t, products), next(t, products)}
	wantIDs(t, got, a.ID(), b.ID())
	if got[0].Missing != nil {
		t.Errorf("after a replay the product is still missing: %v", got[0].Missing)
	}
}

func TestDamagedPartIsNotHandedOver(t *testing.T) {
	broker := fakeBroker(t)
	a := newProduct(t, "sea", "a", 1, 1000)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), a)
	// The event claims another content than its parts have.
	forge(t, broker.ListenAddrs(), func(m *kafkago.Message) {
		m.Value = bytes.Replace(m.Value, []byte(a.SHA256), []byte(a.SHA256[1:]+"0"), 1)
		setHeader(m, "ce_id", "sea/forged/r1")
	})
	got := readOnce(t, consumerConfig(t, broker.ListenAddrs()))
	wantIDs(t, got, a.ID(), "sea/forged/r1")
	if got[0].Missing != nil || got[1].Missing == nil || got[1].Path != "" {
		t.Errorf("the forged product is handed over as %+v", got[1].Product)
	}
}

func TestHostileAndForeignMessagesArePassedOver(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, a)
	for i, edit := range []func(m *kafkago.Message){
		func(m *kafkago.Message) { m.Value = bytes.Replace(m.Value, []byte("a_l4.nc"), []byte("../../a.nc"), 1) },
		func(m *kafkago.Message) { m.Value = bytes.Replace(m.Value, []byte(`"sea"`), []byte(`".."`), 1) },
		func(m *kafkago.Message) { m.Value = []byte("{") },
		func(m *kafkago.Message) { m.Headers = nil },
		func(m *kafkago.Message) { setHeader(m, "ce_type", "lacuna.product.published.v99") },
		func(m *kafkago.Message) {
			m.Value = bytes.Replace(m.Value, []byte(`"parts":1`), []byte(`"parts":-1`), 1)
		},
	} {
		forge(t, broker.ListenAddrs(), func(m *kafkago.Message) {
			setHeader(m, "ce_id", fmt.Sprintf("forged%d", i))
			edit(m)
		})
	}
	mustPublish(t, sink, b)
	wantIDs(t, readOnce(t, consumerConfig(t, broker.ListenAddrs())), a.ID(), b.ID())
}

// forge takes the first event, edits it and sends it as another.
func forge(t *testing.T, brokers []string, edit func(*kafkago.Message)) {
	t.Helper()
	c, err := kafka.Connection{Brokers: brokers}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var first kafkago.Message
	for partition := range 2 {
		_, end, err := c.Bounds(t.Context(), "lacuna.events", partition)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Read(t.Context(), kafka.Span{Topic: "lacuna.events", Partition: partition, To: min(end, 1)}, func(m kafkago.Message) error {
			first = m
			return nil
		})
	}
	forged := kafkago.Message{Key: first.Key, Value: bytes.Clone(first.Value), Headers: first.Headers}
	edit(&forged)
	pool := &kafkago.Transport{}
	defer pool.CloseIdleConnections()
	w := &kafkago.Writer{
		Addr: kafkago.TCP(brokers...), Topic: "lacuna.events", BatchSize: 1, RequiredAcks: kafkago.RequireAll, Transport: pool,
		Balancer: kafkago.BalancerFunc(func(kafkago.Message, ...int) int { return first.Partition }),
	}
	defer w.Close()
	if err := w.WriteMessages(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
}

func setHeader(m *kafkago.Message, key, value string) {
	for i, h := range m.Headers {
		if h.Key == key {
			m.Headers[i].Value = []byte(value)
		}
	}
}

func TestNewGroupFromNowMissesNothingAfterItsFirstStart(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b, c := newProduct(t, "sea", "a", 1, 10), newProduct(t, "sea", "b", 1, 10), newProduct(t, "sea", "c", 1, 10)
	mustPublish(t, sink, a)
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.From = consumer.Now
	wantIDs(t, readOnce(t, cfg))
	mustPublish(t, sink, b, c) // while nobody listens
	wantIDs(t, readOnce(t, cfg), b.ID(), c.ID())
}

func TestMembersOfAGroupShareAndReplaceEachOther(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	if err := sink.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := consumerConfig(t, broker.ListenAddrs())
	first, stopFirst := start(t, cfg)
	second, _ := start(t, cfg)
	if _, err := broker.WaitGroupStable(t.Context(), cfg.Group, 2); err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	publishOn := func(day int) {
		for dataset := range 8 { // some on either partition
			mustPublish(t, sink, newProduct(t, fmt.Sprintf("sea%d", dataset), fmt.Sprintf("day%d", day), 1, 10))
		}
		for range 8 {
			select {
			case r := <-first:
				times[r.ID]++
			case r := <-second:
				times[r.ID]++
			case <-time.After(patience):
				t.Fatal("a product was not handed over")
			}
		}
	}
	publishOn(1)
	stopFirst()
	publishOn(2)
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s was handed over %d times", id, n)
		}
	}
	if len(times) != 16 {
		t.Errorf("%d products were handed over, want 16", len(times))
	}
}

func TestTopicMadeAnewIsReadFromItsBeginning(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	products, _ := start(t, consumerConfig(t, broker.ListenAddrs()))
	for i := range 5 {
		p := newProduct(t, "sea", fmt.Sprint(i), 1, 10)
		mustPublish(t, sink, p)
		wantIDs(t, []received{next(t, products)}, p.ID())
	}
	for _, topic := range []string{"lacuna.events", "lacuna.data"} {
		if err := broker.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
	}
	p := newProduct(t, "sea", "after", 1, 10) // at offset 0, where the reader is at 5
	mustPublish(t, sink, p)
	wantIDs(t, []received{next(t, products)}, p.ID())
}

func TestGroupThatIsRefusedEndsRun(t *testing.T) {
	broker := fakeBroker(t)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), newProduct(t, "sea", "a", 1, 10))
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.SessionTimeout = time.Millisecond // which no broker takes
	err := newConsumer(t, cfg, func(context.Context, consumer.Product) error { return nil }).Run(t.Context())
	if !errors.Is(err, kafkago.InvalidSessionTimeout) {
		t.Errorf("Run() = %v, want the broker's refusal", err)
	}
}
