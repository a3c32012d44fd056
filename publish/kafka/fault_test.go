package kafka

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"lacuna/publish"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Every answer to a produce request is lost once, after the broker has carried
// out the request. Without producer ids each part would be there twice.
func TestLostAnswerLeavesNoRepetitionOfParts(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	mustPublish(t, sink, newProduct(t, "warm-up", 1, 10))
	lost := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "lacuna.data", Err: kerr.RequestTimedOut, Count: 3})
	mustPublish(t, sink, newProduct(t, "20240312", 1, 2*maxPartBytes))
	if lost.Hits() != 3 {
		t.Fatalf("%d answers were lost, want 3", lost.Hits())
	}
	if got := len(readTopic(t, broker.ListenAddrs(), "lacuna.data")); got != 3 {
		t.Errorf("%d parts on the topic, want 1 + 2", got)
	}
	if got := events(t, broker.ListenAddrs()); len(got) != 2 {
		t.Errorf("%d events on the topic, want 2", len(got))
	}
}

func TestPassingTroublesAreRiddenOut(t *testing.T) {
	for name, trouble := range map[string]*kerr.Error{
		"leader moved":        kerr.NotLeaderForPartition,
		"not enough replicas": kerr.NotEnoughReplicas,
		"appended by too few": kerr.NotEnoughReplicasAfterAppend,
		"disk error":          kerr.KafkaStorageError,
		"producer forgotten":  kerr.UnknownProducerID,
		"sequence forgotten":  kerr.OutOfOrderSequenceNumber,
	} {
		t.Run(name, func(t *testing.T) {
			broker := fakeBroker(t)
			sink := newSink(t, testConfig(broker.ListenAddrs()...))
			broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: trouble, Count: 2})
			mustPublish(t, sink, newProduct(t, "20240312", 1, 2*maxPartBytes))
			if got := events(t, broker.ListenAddrs()); len(got) != 1 {
				t.Errorf("%d events on the topic, want 1", len(got))
			}
		})
	}
}

func TestConnectionCutInTheMiddleOfPartsIsMadeAgain(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	requests := 0
	broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		requests++
		return nil, errors.New("cut"), requests%2 == 0
	})
	mustPublish(t, sink, newProduct(t, "20240312", 1, 4*maxPartBytes))
	if got := len(readTopic(t, broker.ListenAddrs(), "lacuna.data")); got != 4 {
		t.Errorf("%d parts on the topic, want 4", got)
	}
}

// A product that was given up half-way, with its last request still on the way,
// must not share sequence numbers with the next: the broker would take that
// for a repetition and drop it.
func TestGivingUpDoesNotSwallowTheNextProduct(t *testing.T) {
	broker := fakeBroker(t)
	cfg := testConfig(broker.ListenAddrs()...)
	cfg.Timeout = 300 * time.Millisecond
	cfg.Topics.Partitions = 1 // or they would not meet
	sink := newSink(t, cfg)
	mustPublish(t, sink, newProduct(t, "warm-up", 1, 10))
	lost := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1})
	a := newProduct(t, "a", 1, 10)
	if err := sink.Publish(t.Context(), a); err == nil || errors.Is(err, publish.ErrPermanent) {
		t.Fatalf("Publish() = %v, want an error that is not permanent", err)
	}
	lost.Remove()
	b := newProduct(t, "b", 1, 20)
	mustPublish(t, sink, b, a)
	var sizes []int64
	for _, e := range events(t, broker.ListenAddrs()) {
		for _, m := range readTopic(t, broker.ListenAddrs(), "lacuna.data") {
			if m.Partition == e.Data.Partition && m.Offset == e.Data.FirstOffset {
				sizes = append(sizes, int64(len(m.Value)))
				if int64(len(m.Value)) != e.File.Size {
					t.Errorf("%s of %d bytes is said to be a part of %d bytes", e.ID, e.File.Size, len(m.Value))
				}
			}
		}
	}
	if len(sizes) != 3 {
		t.Errorf("%d events with their part on the topic, want 3", len(sizes))
	}
}

func TestMessageTooLargeForTheTopicIsPermanent(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge})
	err := sink.Publish(t.Context(), newProduct(t, "20240312", 1, 10))
	if !errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("Publish() = %v, want a permanent failure that names max.message.bytes", err)
	}
}

func TestUnfitTopicIsRefusedWithWhatToChange(t *testing.T) {
	tests := []struct {
		name   string
		create map[string]map[string]string
		want   string
	}{
		{"no topics", nil, "topic lacuna.events does not exist: create it, or set topics.create"},
		{"no data topic", map[string]map[string]string{"lacuna.events": {"cleanup.policy": "compact"}}, "topic lacuna.data does not exist"},
		{
			"small messages",
			map[string]map[string]string{"lacuna.events": {"cleanup.policy": "compact"}, "lacuna.data": {"max.message.bytes": "500000"}},
			"at most 500000 bytes",
		},
		{"events not compacted", map[string]map[string]string{"lacuna.events": {}, "lacuna.data": {}}, "must be compact"},
		{
			"data compacted",
			map[string]map[string]string{"lacuna.events": {"cleanup.policy": "compact"}, "lacuna.data": {"cleanup.policy": "compact"}},
			"must be delete",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broker := fakeBroker(t)
			for name, settings := range tt.create {
				if err := broker.CreateTopic(name, 1, settings); err != nil {
					t.Fatal(err)
				}
			}
			cfg := testConfig(broker.ListenAddrs()...)
			cfg.Topics.Create = false
			if err := newSink(t, cfg).Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestDeletedTopicIsMadeAgain(t *testing.T) {
	for _, topic := range []string{"lacuna.events", "lacuna.data"} {
		t.Run(topic, func(t *testing.T) {
			broker := fakeBroker(t)
			sink := newSink(t, testConfig(broker.ListenAddrs()...))
			mustPublish(t, sink, newProduct(t, "a", 1, 10))
			if err := broker.DeleteTopic(topic); err != nil {
				t.Fatal(err)
			}
			b := newProduct(t, "b", 1, 2*maxPartBytes)
			mustPublish(t, sink, b)
			got := events(t, broker.ListenAddrs())
			if last := got[len(got)-1]; last.ID != b.ID() {
				t.Errorf("the last event is %s, want %s", last.ID, b.ID())
			}
		})
	}
}

func TestAbsentBrokerIsReportedInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cfg := testConfig(addr)
	cfg.Timeout = time.Second
	begun := time.Now()
	err = newSink(t, cfg).Publish(t.Context(), newProduct(t, "a", 1, 10))
	if err == nil || errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "no Kafka broker answers at "+addr) {
		t.Errorf("Publish() = %v, want a message that no broker answers", err)
	}
	if took := time.Since(begun); took > 15*time.Second { // as long as a loaded machine may take, less than the client's own patience
		t.Errorf("it took %v to find out", took)
	}
}

func TestBrokerThatGoesAwayIsReportedInTimeAndFoundAgain(t *testing.T) {
	dir := t.TempDir()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	addr := broker.ListenAddrs()[0]
	port := portOf(t, addr)
	cfg := testConfig(addr)
	cfg.Timeout = time.Second
	sink := newSink(t, cfg)
	mustPublish(t, sink, newProduct(t, "a", 1, 10))
	broker.Close()
	b := newProduct(t, "b", 1, 10)
	begun := time.Now()
	err = sink.Publish(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("Publish() = %v, want a message that names the broker", err)
	}
	if took := time.Since(begun); took > 15*cfg.Timeout {
		t.Errorf("it took %v to find out, want about %v", took, cfg.Timeout)
	}
	fakeBroker(t, kfake.DataDir(dir), kfake.Ports(port))
	deadline, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for err = sink.Publish(deadline, b); err != nil && deadline.Err() == nil; {
		err = sink.Publish(deadline, b)
	}
	got := events(t, []string{addr})
	if err != nil || len(got) != 2 || got[1].ID != b.ID() {
		t.Errorf("after the broker is back: %v, %d events, want 2", err, len(got))
	}
}

func portOf(t *testing.T, addr string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}

func mustPublish(t testing.TB, s *Sink, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		if err := s.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// Datasets that wait for the same broker find out together that it is away.
func TestManyDatasetsDoNotAddUpTheirWaiting(t *testing.T) {
	broker := fakeBroker(t)
	cfg := testConfig(broker.ListenAddrs()...)
	cfg.Timeout = 3 * time.Second // one after the other they would take 15
	sink := newSink(t, cfg)
	mustPublish(t, sink, newProduct(t, "warm-up", 1, 10))
	broker.Close()
	begun := time.Now()
	results := make(chan error)
	const datasets = 5
	for i := range datasets {
		p := newProduct(t, "a", 1, 10)
		p.Dataset += string(rune('a' + i))
		go func() { results <- sink.Publish(context.WithoutCancel(t.Context()), p) }()
	}
	for range datasets {
		if err := <-results; err == nil || errors.Is(err, publish.ErrPermanent) {
			t.Errorf("Publish() = %v, want an error that is not permanent", err)
		}
	}
	if took := time.Since(begun); took > 15*cfg.Timeout {
		t.Errorf("it took %v for all to find out, want about %v", took, cfg.Timeout)
	}
}
