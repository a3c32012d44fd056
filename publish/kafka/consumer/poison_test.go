package consumer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An event that cannot be completed is handed over as missing, or refused where
// it cannot be an event at all, and the next one is delivered.
func TestEventThatCannotBeCompletedIsReportedAndPassed(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*kafka.Event)
		refused bool
		says    string
	}{
		"last offset beyond the end":  {edit: func(e *kafka.Event) { e.Data.LastOffset += 1000 }, says: "the partition ends before offset 1"},
		"first offset beyond the end": {edit: func(e *kafka.Event) { e.Data.FirstOffset, e.Data.LastOffset = 1e12, 1e12 }, says: "ends before"},
		"the largest offset":          {edit: func(e *kafka.Event) { e.Data.LastOffset = math.MaxInt64 }, refused: true, says: "offsets of its parts"},
		"the largest but one":         {edit: func(e *kafka.Event) { e.Data.LastOffset = math.MaxInt64 - 1 }, says: "ends before"},
		"negative offsets":            {edit: func(e *kafka.Event) { e.Data.FirstOffset = -2 }, refused: true, says: "offsets of its parts"},
		"more parts than offsets":     {edit: func(e *kafka.Event) { e.Data.Parts = math.MaxInt32 }, refused: true, says: "offsets of its parts"},
		"a size of petabytes":         {edit: func(e *kafka.Event) { e.File.Size = 1 << 60 }, says: "more than the"},
		"a size that is not that":     {edit: func(e *kafka.Event) { e.File.Size++ }, says: "damaged"},
		"another sha256":              {edit: func(e *kafka.Event) { e.File.SHA256 = strings.Repeat("0", 64) }, says: "damaged"},
		"no such partition":           {edit: func(e *kafka.Event) { e.Data.Partition = 77 }, says: "not on the brokers"},
		"a negative partition":        {edit: func(e *kafka.Event) { e.Data.Partition = -1 }, says: "not on the brokers"},
		"no such topic":               {edit: func(e *kafka.Event) { e.Data.Topic = "elsewhere" }, says: "not on the brokers"},
		"a topic that cannot be":      {edit: func(e *kafka.Event) { e.Data.Topic = "no / topic" }, says: "parts of"},
		"no topic":                    {edit: func(e *kafka.Event) { e.Data.Topic = "" }, says: "parts of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := fakeBroker(t)
			sink := newSink(t, sinkConfig(broker.ListenAddrs()))
			a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
			mustPublish(t, sink, a)
			forge(t, broker.ListenAddrs(), func(m *kafkago.Message) {
				var e kafka.Event
				if err := json.Unmarshal(m.Value, &e); err != nil {
					t.Fatal(err)
				}
				c.edit(&e)
				m.Value, _ = json.Marshal(e)
				setHeader(m, "ce_id", "poison")
			})
			mustPublish(t, sink, b)
			cfg := consumerConfig(t, broker.ListenAddrs())
			cfg.Patience = time.Second
			var refused []consumer.Refusal
			cfg.Refused = func(_ context.Context, r consumer.Refusal) error {
				refused = append(refused, r)
				return nil
			}
			got := readOnce(t, cfg)
			reason := ""
			if c.refused {
				wantIDs(t, got, a.ID(), b.ID())
				if len(refused) == 1 && refused[0].ID == "poison" && refused[0].Offset == 1 {
					reason = refused[0].Reason.Error()
				}
			} else {
				wantIDs(t, got, a.ID(), "poison", b.ID())
				if len(got) == 3 && got[1].Missing != nil && got[1].Offset == 1 {
					reason = got[1].Missing.Error()
				}
			}
			if !strings.Contains(reason, c.says) {
				t.Errorf("it was reported as %q, %+v, want %q", reason, refused, c.says)
			}
			for _, r := range got {
				if r.ID != "poison" && r.Missing != nil {
					t.Errorf("%s: %v", r.ID, r.Missing)
				}
			}
		})
	}
}

// The parts were cut off under their event, as an unclean election does, and
// others are written in their place.
func TestTopicCutOffUnderItsEventsIsPassed(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b, c := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 3_000_000), newProduct(t, "sea", "c", 1, 1000)
	mustPublish(t, sink, a, b)
	if err := broker.DeleteTopic("lacuna.data"); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), c) // where a was
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.Patience = time.Second
	got := readOnce(t, cfg)
	wantIDs(t, got, a.ID(), b.ID(), c.ID())
	if got[0].Missing == nil || got[1].Missing == nil || got[2].Missing != nil {
		t.Errorf("missing are %v, %v and %v, want the first two", got[0].Missing, got[1].Missing, got[2].Missing)
	}
}

// A broker that does not answer, or answers that it has no leader, is waited for
// longer than any patience, and the product is whole in the end.
func TestBrokerThatIsAwayIsNotTheFaultOfAnEvent(t *testing.T) {
	broker := fakeBroker(t)
	a := newProduct(t, "sea", "a", 1, 3_000_000)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), a)
	cfg := consumerConfig(t, broker.ListenAddrs())
	cfg.Patience = 100 * time.Millisecond
	until := time.Now().Add(3 * time.Second)
	for _, key := range []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch} {
		broker.ControlKey(int16(key), leaderless(broker, until))
	}
	got := readOnce(t, cfg)
	wantIDs(t, got, a.ID())
	if got[0].Missing != nil || time.Now().Before(until) {
		t.Errorf("missing: %v, %v too soon", got[0].Missing, time.Until(until))
	}
}

// leaderless answers requests for the data topic as a broker does that has lost
// its leadership.
func leaderless(broker *kfake.Cluster, until time.Time) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		if time.Now().After(until) {
			return nil, nil, false
		}
		switch r := request.(type) {
		case *kmsg.ListOffsetsRequest:
			if r.Topics[0].Topic != "lacuna.data" {
				return nil, nil, false
			}
			answer := r.ResponseKind().(*kmsg.ListOffsetsResponse)
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.ErrorCode = r.Topics[0].Partitions[0].Partition, kerr.LeaderNotAvailable.Code
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic, topic.Partitions = "lacuna.data", append(topic.Partitions, partition)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		case *kmsg.FetchRequest:
			if len(r.Topics) == 1 && r.Topics[0].Topic == "lacuna.data" {
				return nil, errors.New("the connection broke"), true
			}
		}
		return nil, nil, false
	}
}

// Parts that a former leader does not have yet are asked for until patience is
// over.
func TestPartsThatTurnUpWithinPatienceAreTaken(t *testing.T) {
	broker := fakeBroker(t)
	a := newProduct(t, "sea", "a", 1, 1000)
	mustPublish(t, newSink(t, sinkConfig(broker.ListenAddrs())), a)
	until := time.Now().Add(2 * time.Second)
	broker.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		r := request.(*kmsg.MetadataRequest)
		if time.Now().After(until) || len(r.Topics) != 1 || r.Topics[0].Topic == nil || *r.Topics[0].Topic != "lacuna.data" {
			return nil, nil, false
		}
		answer := r.ResponseKind().(*kmsg.MetadataResponse)
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = r.Topics[0].Topic, kerr.UnknownTopicOrPartition.Code
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	got := readOnce(t, consumerConfig(t, broker.ListenAddrs()))
	wantIDs(t, got, a.ID())
	if got[0].Missing != nil || time.Now().Before(until) {
		t.Errorf("missing: %v, %v too soon", got[0].Missing, time.Until(until))
	}
}

// Old events whose parts are gone cost no wait each.
func TestOldEventsThatCannotBeCompletedCostNoPatience(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
	mustPublish(t, sink, a)
	const many = 5
	for i := range many {
		forge(t, broker.ListenAddrs(), func(m *kafkago.Message) {
			m.Value = bytes.Replace(m.Value, []byte(`"last_offset":0`), []byte(`"last_offset":9`), 1)
			m.Time = time.Now().Add(-time.Hour)
			setHeader(m, "ce_id", fmt.Sprintf("poison%d", i))
		})
	}
	mustPublish(t, sink, b)
	began := time.Now()
	got := readOnce(t, consumerConfig(t, broker.ListenAddrs()))
	if len(got) != many+2 || got[many+1].ID != b.ID() || got[many+1].Missing != nil || got[1].Missing == nil {
		t.Errorf("handed over %q", ids(got))
	}
	if took := time.Since(began); took > consumer.DefaultConfig().Patience {
		t.Errorf("it took %v, as if they had been waited for", took)
	}
}
