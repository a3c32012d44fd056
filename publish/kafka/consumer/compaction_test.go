package consumer_test

import (
	"context"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

// compacted lets the broker compact the events topic, which leaves holes that
// must be read across, by sinks that read back and by consumers.
func (r *real) compacted(t *testing.T) {
	cfg, reader := r.topics(t, "compacted")
	cfg.Topics.Partitions = 1
	if err := newSink(t, cfg).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.admin(t, func(ctx context.Context, c *kafkago.Client) error {
		request := kafkago.IncrementalAlterConfigsRequestResource{ResourceType: kafkago.ResourceTypeTopic, ResourceName: "compacted.events"}
		for name, value := range map[string]string{
			"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "100", "delete.retention.ms": "100",
		} {
			request.Configs = append(request.Configs, kafkago.IncrementalAlterConfigsRequestConfig{
				Name: name, Value: value, ConfigOperation: kafkago.ConfigOperationSet,
			})
		}
		_, err := c.IncrementalAlterConfigs(ctx, &kafkago.IncrementalAlterConfigsRequest{Resources: []kafkago.IncrementalAlterConfigsRequestResource{request}})
		return err
	})
	owner := publish.Owner{State: "ours", Epoch: 2, Since: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	for _, o := range []publish.Owner{{State: "theirs", Epoch: 1}, owner} {
		if err := newSink(t, cfg).Claim(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kept := newProduct(t, "sea", "kept", 1, 10)
	mustPublish(t, newSink(t, cfg), kept)
	p := newProduct(t, "sea", "often", 0, 10)
	again := func() {
		p.Revision++
		mustPublish(t, newSink(t, cfg), p) // each as another process would
	}
	const revisions = 20
	for range revisions {
		again()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for r.records(ctx, t, "compacted.events") > revisions/2 {
		// The segment that is written to is not compacted: begin a new one.
		time.Sleep(300 * time.Millisecond)
		again()
	}
	got := readOnce(t, reader)
	if len(got) < 2 || got[0].ID != kept.ID() || got[len(got)-1].ID != p.ID() {
		t.Errorf("after compaction %q are handed over, want the first and the last product", ids(got))
	}
	if o, err := newSink(t, cfg).Owner(t.Context()); err != nil || o != owner {
		t.Errorf("after compaction the topics are of %+v, %v, want %+v", o, err, owner)
	}
	for _, one := range got {
		if one.Missing != nil {
			t.Errorf("%s: %v", one.ID, one.Missing)
		}
	}
}

// records counts the readable messages in the first partition of a topic.
func (r *real) records(ctx context.Context, t *testing.T, topic string) (n int) {
	t.Helper()
	c, err := kafka.Connection{Brokers: r.Addrs()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, next, err := c.Bounds(ctx, topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Read(ctx, kafka.Span{Topic: topic, From: first, To: next}, func(kafkago.Message) error { n++; return nil })
	if err != nil {
		t.Fatalf("read %s from %d to %d after %d records: %v", topic, first, next, n, err)
	}
	return n
}
