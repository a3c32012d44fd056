package cuts

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"lacuna/internal/powercut"
	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// The marks of a broker. A message counts as sent when the request is there: it
// may be read from now on.
type (
	sent      struct{ request *kmsg.ProduceRequest }
	committed struct{ request *kmsg.OffsetCommitRequest }
	created   struct{ request *kmsg.CreateTopicsRequest }
)

// newBroker starts a broker; where disk is given, it marks what it is told.
func newBroker(disk *powercut.Disk) (*kfake.Cluster, error) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil || disk == nil {
		return broker, err
	}
	broker.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		asked := r.(*kmsg.ProduceRequest)
		kept := *asked
		kept.Topics = slices.Clone(asked.Topics)
		for i, topic := range kept.Topics {
			kept.Topics[i].Partitions = slices.Clone(topic.Partitions)
			for j, p := range topic.Partitions {
				kept.Topics[i].Partitions[j].Records = slices.Clone(p.Records)
			}
		}
		disk.Mark(sent{&kept})
		return nil, nil, false
	})
	broker.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		kept := *r.(*kmsg.CreateTopicsRequest)
		disk.Mark(created{&kept})
		return nil, nil, false
	})
	broker.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		kept := *r.(*kmsg.OffsetCommitRequest)
		disk.Mark(committed{&kept})
		return nil, nil, false
	})
	return broker, nil
}

// remake starts a broker that has been told what an earlier one was, before a cut.
func remake(ctx context.Context, marks []any) (broker *kfake.Cluster, err error) {
	if broker, err = newBroker(nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			broker.Close()
		}
	}()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.MaxVersions(kversion.V2_4_0()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var tell []kmsg.Request
	var commit *kmsg.OffsetCommitRequest
	for _, m := range marks {
		switch m := m.(type) {
		case sent:
			again := *m.request
			tell = append(tell, &again)
		case created:
			again := *m.request
			tell = append(tell, &again)
		case committed:
			commit = m.request
		}
	}
	if commit != nil { // as a tool does, which is no member of the group
		again := *commit
		again.Generation, again.MemberID = -1, ""
		tell = append(tell, &again)
	}
	for _, r := range tell {
		if _, err := client.SeedBrokers()[0].Request(ctx, r); err != nil {
			return nil, fmt.Errorf("tell the broker again: %w", err)
		}
	}
	return broker, nil
}

// messages are those of a topic, by partition, in the order of offsets.
type messages map[int32][]kafkago.Message

// readTopics returns what a broker holds of the topics that the service has made.
func readTopics(ctx context.Context, broker *kfake.Cluster) (map[string]messages, error) {
	conn, err := kafkago.DialContext(ctx, "tcp", broker.ListenAddrs()[0]) // a kafkago.Client would keep its connections for ever
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	partitions, err := conn.ReadPartitions()
	if err != nil {
		return nil, err
	}
	all := map[string]messages{}
	for _, p := range partitions {
		if p.Topic != kafka.EventsTopic(prefix) && p.Topic != kafka.DataTopic(prefix) {
			continue
		}
		if all[p.Topic] == nil {
			all[p.Topic] = messages{}
		}
		if all[p.Topic][int32(p.ID)], err = readPartition(ctx, broker.ListenAddrs()[0], p.Topic, p.ID); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readPartition(ctx context.Context, addr, topic string, partition int) (list []kafkago.Message, err error) {
	conn, err := kafkago.DialLeader(ctx, "tcp", addr, topic, partition)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	end, err := conn.ReadLastOffset()
	if err != nil || end == 0 {
		return nil, err
	}
	if _, err := conn.Seek(0, kafkago.SeekAbsolute); err != nil {
		return nil, err
	}
	for len(list) == 0 || list[len(list)-1].Offset < end-1 {
		m, err := conn.ReadMessage(1 << 20)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// recordsIn returns the number of messages in a batch, which is in its head.
func recordsIn(batch []byte) int {
	const at = 57
	if len(batch) < at+4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(batch[at:]))
}

// eventsIn returns the events among messages.
func eventsIn(t testing.TB, all messages) (events []kafka.Event) {
	t.Helper()
	for _, list := range all {
		for _, m := range list {
			e, err := kafka.ParseEvent(m)
			if errors.Is(err, kafka.ErrNoProduct) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
	}
	return events
}
