package kafka

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
)

// readTopic returns every message of a topic, partition by partition.
func readTopic(t testing.TB, brokers []string, topic string) []kafkago.Message {
	t.Helper()
	c, err := Connection{Brokers: brokers}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return readAll(t, c, topic)
}

func readAll(t testing.TB, c *Cluster, topic string) []kafkago.Message {
	t.Helper()
	partitions, err := c.Partitions(t.Context(), topic)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []kafkago.Message
	for _, p := range partitions {
		first, next, err := c.Bounds(t.Context(), topic, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Read(t.Context(), Span{Topic: topic, Partition: p.ID, From: first, To: next}, func(m kafkago.Message) error {
			all = append(all, m)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// events parses every message of an events topic.
func events(t testing.TB, brokers []string) []Event {
	t.Helper()
	var all []Event
	for _, m := range readTopic(t, brokers, "lacuna.events") {
		e, err := ParseEvent(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestPartsAreTheFileAndTheEventSaysWhereTheyLie(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	p := newProduct(t, "20240312", 1, 2*maxPartBytes+12345)
	if err := sink.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got := events(t, broker.ListenAddrs())
	if len(got) != 1 {
		t.Fatalf("%d events, want 1", len(got))
	}
	e := got[0]
	if e.ID != p.ID() || e.File.SHA256 != p.SHA256 || e.Seed != p.Seed || *e.MeanUncertainty != p.MeanUncertainty || !e.Created.Equal(p.Created) || e.Data.Parts != 3 {
		t.Errorf("event is %+v, does not describe %+v", e, p)
	}
	var whole []byte
	parts := readTopic(t, broker.ListenAddrs(), "lacuna.data")
	for i, m := range parts {
		part, err := ParsePart(m)
		if err != nil {
			t.Fatal(err)
		}
		if part.Number != i || string(m.Key) != p.Key() || len(m.Value) > maxPartBytes {
			t.Errorf("message %d is part %+v with key %s and %d bytes", i, part, m.Key, len(m.Value))
		}
		whole = append(whole, m.Value...)
	}
	want, _ := os.ReadFile(p.Path)
	if !bytes.Equal(whole, want) {
		t.Errorf("the parts are %d bytes and differ from the file's %d", len(whole), len(want))
	}
	if first, last := parts[0], parts[len(parts)-1]; e.Data.Partition != first.Partition || e.Data.FirstOffset != first.Offset || e.Data.LastOffset != last.Offset {
		t.Errorf("event places the parts at %+v, they are at %d from %d to %d", e.Data, first.Partition, first.Offset, last.Offset)
	}
}

func TestRevisionIsAnnouncedOnceAlsoByAnotherProcess(t *testing.T) {
	broker := fakeBroker(t)
	p := newProduct(t, "20240312", 1, 1000)
	for range 2 { // two sinks: the second knows only the topic
		sink := newSink(t, testConfig(broker.ListenAddrs()...))
		for range 2 {
			if err := sink.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := events(t, broker.ListenAddrs()); len(got) != 1 {
		t.Errorf("%d events, want 1", len(got))
	}
}

func TestOlderRevisionNeverFollowsALaterOne(t *testing.T) {
	broker := fakeBroker(t)
	first, second := newProduct(t, "20240312", 1, 1000), newProduct(t, "20240312", 2, 1000)
	for _, p := range []publish.Product{second, first, second} {
		if err := newSink(t, testConfig(broker.ListenAddrs()...)).Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if got := events(t, broker.ListenAddrs()); len(got) != 1 || got[0].Revision != 2 {
		t.Errorf("events are %+v, want revision 2 alone", got)
	}
}

func TestRetractionIsATombstoneThatSaysWhy(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	p := newProduct(t, "20240312", 1, 1000)
	if err := sink.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Retracted, p.Why = true, "the sensor was decontaminated"
	for range 2 {
		if err := sink.Retract(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		sink = newSink(t, testConfig(broker.ListenAddrs()...))
	}
	all := readTopic(t, broker.ListenAddrs(), "lacuna.events")
	if len(all) != 2 || all[1].Value != nil || string(all[1].Key) != p.Key() {
		t.Fatalf("%d events, want the product and one tombstone", len(all))
	}
	e, err := ParseEvent(all[1])
	if err != nil || !e.Retracted || e.Why != p.Why || e.Revision != 1 || e.File.Name != p.Name || e.Dataset != p.Dataset {
		t.Errorf("tombstone is %+v, %v", e, err)
	}
	if err := sink.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := events(t, broker.ListenAddrs()); len(got) != 2 {
		t.Errorf("a retracted revision was published again")
	}
}

func TestRetractingASupersededRevisionKeepsItsSuccessor(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	first, second := newProduct(t, "20240312", 1, 1000), newProduct(t, "20240312", 2, 1000)
	for _, p := range []publish.Product{first, second} {
		if err := sink.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := sink.Retract(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	broker.Compact()
	got := events(t, broker.ListenAddrs())
	if len(got) != 2 || got[0].Revision != 2 || got[0].Retracted || !got[1].Retracted || got[1].Revision != 1 {
		t.Errorf("after compaction the topic says %+v, want revision 2 and the retraction of 1", got)
	}
}

func TestFileThatIsNotTheProductIsNotAnnounced(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	for name, spoil := range map[string]func(p *publish.Product){
		"other bytes": func(p *publish.Product) { os.WriteFile(p.Path, make([]byte, p.Size), 0o600) },
		"other bytes since it was hashed": func(p *publish.Product) {
			p.Hashed = new(publish.Hashed)
			if err := p.CheckFiles(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // the clock of file systems ticks slowly
			os.WriteFile(p.Path, make([]byte, p.Size), 0o600)
		},
		"longer":       func(p *publish.Product) { p.Size-- },
		"shorter":      func(p *publish.Product) { p.Size++ },
		"gone":         func(p *publish.Product) { os.Remove(p.Path) },
		"hostile name": func(p *publish.Product) { p.Name = "../../etc/passwd" },
		"hidden name":  func(p *publish.Product) { p.Name = ".." },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProduct(t, "20240312", 1, maxPartBytes+10)
			spoil(&p)
			if err := sink.Publish(t.Context(), p); !errors.Is(err, publish.ErrPermanent) {
				t.Errorf("Publish() = %v, want a permanent failure", err)
			}
		})
	}
	if got := events(t, broker.ListenAddrs()); len(got) != 0 {
		t.Errorf("%d events, want none", len(got))
	}
}

func TestEventsOfADatasetKeepTheirOrder(t *testing.T) {
	broker := fakeBroker(t)
	cfg := testConfig(broker.ListenAddrs()...)
	cfg.Topics.Partitions = 8
	sink := newSink(t, cfg)
	granules := []string{"d", "a", "c", "b", "f", "e"}
	for _, g := range granules {
		if err := sink.Publish(t.Context(), newProduct(t, g, 1, 10)); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range events(t, broker.ListenAddrs()) {
		if e.Granule != granules[i] {
			t.Errorf("event %d is of %s, want %s", i, e.Granule, granules[i])
		}
	}
}

func TestCancelledPublishReturnsAtOnce(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, testConfig(broker.ListenAddrs()...))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sink.Publish(ctx, newProduct(t, "a", 1, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish() = %v, want context.Canceled", err)
	}
}
