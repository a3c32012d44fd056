package consumer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nonsense is a batch of so many records that says it is compressed by gzip, and
// is not.
func nonsense(records int32) []byte {
	body := binary.BigEndian.AppendUint16(nil, 1) // attributes: gzip
	body = binary.BigEndian.AppendUint32(body, uint32(records-1))
	body = binary.BigEndian.AppendUint64(body, uint64(time.Now().UnixMilli()))
	body = binary.BigEndian.AppendUint64(body, uint64(time.Now().UnixMilli()))
	body = append(body, bytes.Repeat([]byte{0xff}, 8+2+4)...) // no producer
	body = binary.BigEndian.AppendUint32(body, uint32(records))
	body = append(body, "this is not what gzip makes"...)
	batch := binary.BigEndian.AppendUint64(nil, 0)
	batch = binary.BigEndian.AppendUint32(batch, uint32(4+1+4+len(body)))
	batch = binary.BigEndian.AppendUint32(batch, 0)
	batch = append(batch, 2)
	batch = binary.BigEndian.AppendUint32(batch, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return append(batch, body...)
}

// writeRaw sends a batch as it is, which no client does.
func writeRaw(t *testing.T, brokers []string, topic string, partition int32, batch []byte) {
	t.Helper()
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	of := kmsg.NewProduceRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	request := kmsg.NewPtrProduceRequest()
	request.Version, request.Acks, request.TimeoutMillis, request.Topics = 7, -1, 10_000, append(request.Topics, of)
	conn, err := net.Dial("tcp", brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)); err != nil {
		t.Fatal(err)
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(conn, size); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	response := request.ResponseKind()
	if err := response.ReadFrom(answer[4:]); err != nil { // the first four bytes are the correlation id
		t.Fatal(err)
	}
	if code := response.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatal(kerr.ErrorForCode(code))
	}
}

func TestMessagesThatCannotBeDecodedArePassedOver(t *testing.T) {
	broker := fakeBroker(t)
	brokers := broker.ListenAddrs()
	config := sinkConfig(brokers)
	config.Topics.Partitions = 1
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 3_000_000)
	sink := newSink(t, config)
	mustPublish(t, sink, a)
	writeRaw(t, brokers, "lacuna.events", 0, nonsense(3))
	writeRaw(t, brokers, "lacuna.data", 0, nonsense(2)) // before the parts of b
	mustPublish(t, sink, b)
	cfg := consumerConfig(t, brokers)
	cfg.Patience = time.Second
	var refused []consumer.Refusal
	cfg.Refused = func(_ context.Context, r consumer.Refusal) error {
		refused = append(refused, r)
		return nil
	}
	got := readOnce(t, cfg)
	wantIDs(t, got, a.ID(), b.ID())
	if got[0].Missing != nil || got[1].Missing != nil {
		t.Errorf("missing are %v and %v", got[0].Missing, got[1].Missing)
	}
	if len(refused) != 1 || refused[0].Offset != 1 || !errors.Is(refused[0].Reason, kafka.ErrUndecodable) {
		t.Errorf("passed over %+v, want the batch at offset 1", refused)
	}
	// Another start reads back across it, and passes it over no more.
	c := newProduct(t, "sea", "c", 1, 10)
	mustPublish(t, sink, c)
	wantIDs(t, readOnce(t, cfg), c.ID())
	if len(refused) != 1 {
		t.Errorf("passed over again: %+v", refused)
	}
}

// Parts among which lies something that cannot be decoded are missing.
func TestPartsThatCannotBeDecodedAreReported(t *testing.T) {
	broker := fakeBroker(t)
	brokers := broker.ListenAddrs()
	sink := newSink(t, sinkConfig(brokers))
	a, b := newProduct(t, "sea", "a", 1, 1000), newProduct(t, "sea", "b", 1, 1000)
	if err := sink.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for partition := range int32(2) { // whichever a is on
		writeRaw(t, brokers, "lacuna.data", partition, nonsense(1))
	}
	mustPublish(t, sink, a)
	forge(t, brokers, func(m *kafkago.Message) {
		m.Value = bytes.Replace(m.Value, []byte(`"first_offset":1`), []byte(`"first_offset":0`), 1)
		setHeader(m, "ce_id", "poison")
	})
	mustPublish(t, sink, b)
	cfg := consumerConfig(t, brokers)
	cfg.Patience = time.Second
	got := readOnce(t, cfg)
	wantIDs(t, got, a.ID(), "poison", b.ID())
	if got[0].Missing != nil || !errors.Is(got[1].Missing, kafka.ErrUndecodable) || got[2].Missing != nil {
		t.Errorf("missing are %v, %v and %v, want the second", got[0].Missing, got[1].Missing, got[2].Missing)
	}
}
