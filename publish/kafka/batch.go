package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
)

// Positions in a record batch of version 2 as a produce request has it: after
// the four bytes of its size. See "Record Batch" in the protocol guide of
// Apache Kafka.
const (
	sizeBytes    = 4
	atLength     = 12 // length of the rest
	atEpoch      = 16 // epoch of the leader, unused by clients
	atVersion    = 20
	atChecksum   = 21
	atCodec      = 25 // the checksum covers this and all that follows
	atFirstTime  = 31
	atLastTime   = 39
	atProducer   = 47
	atGeneration = 55 // epoch of the producer
	atSequence   = 57
	atCount      = 61
	atRecords    = 65
)

// batch is a record batch of one message, whose producer is stamped on it when it is
// sent. All but that is summed before: nobody waits for it between two messages.
type batch struct {
	content bytes.Buffer
	sum     uint32 // of the records
}

// encode makes the batch of a message; what was in it is lost.
func (b *batch) encode(m kafkago.Message, at time.Time, codec compress.Compression) error {
	if m.Value == nil {
		return b.encodeFrom(m, nil, -1, at, codec)
	}
	return b.encodeFrom(m, bytes.NewReader(m.Value), int64(len(m.Value)), at, codec)
}

// encodeFrom makes the batch of a message whose value are the next size bytes of value,
// or null where size is -1. A value that ends early is io.EOF.
func (b *batch) encodeFrom(m kafkago.Message, value io.Reader, size int64, at time.Time, codec compress.Compression) error {
	buf := &b.content
	buf.Reset()
	buf.Write(make([]byte, atRecords))
	if codec == compress.None {
		if err := writeRecord(buf, m, value, size); err != nil {
			return err
		}
	} else {
		w := codec.Codec().NewWriter(buf)
		// Some cannot read by themselves after they were written to (lz4): only Write is shown.
		if err := errors.Join(writeRecord(struct{ io.Writer }{w}, m, value, size), w.Close()); err != nil {
			return err
		}
	}
	all := buf.Bytes()
	put := binary.BigEndian
	put.PutUint32(all, uint32(len(all)-sizeBytes))
	put.PutUint32(all[atLength:], uint32(len(all)-atEpoch))
	put.PutUint32(all[atEpoch:], ^uint32(0))
	all[atVersion] = 2
	put.PutUint16(all[atCodec:], uint16(codec))
	put.PutUint64(all[atFirstTime:], uint64(at.UnixMilli()))
	put.PutUint64(all[atLastTime:], uint64(at.UnixMilli()))
	put.PutUint32(all[atCount:], 1)
	b.sum = crc32.Checksum(all[atRecords:], castagnoli)
	return nil
}

// writeRecord writes one record: lengths are zigzag varints, -1 stands for
// null.
func writeRecord(w io.Writer, m kafkago.Message, value io.Reader, size int64) error {
	head := []byte{0, 0, 0} // no attributes; time and offset of the batch
	head = appendBytes(head, m.Key)
	head = binary.AppendVarint(head, size)
	tail := binary.AppendVarint(nil, int64(len(m.Headers)))
	for _, h := range m.Headers {
		tail = appendBytes(tail, []byte(h.Key))
		tail = appendBytes(tail, h.Value)
	}
	length := binary.AppendVarint(nil, int64(len(head)+len(tail))+max(size, 0))
	if buf, ok := w.(*bytes.Buffer); ok {
		// At once, and with the room that it wants to see a value's end.
		buf.Grow(len(length) + len(head) + len(tail) + int(max(size, 0)) + bytes.MinRead)
	}
	_, err := w.Write(append(length, head...))
	if err == nil && size > 0 {
		_, err = io.CopyN(w, value, size)
	}
	if err == nil {
		_, err = w.Write(tail)
	}
	return err
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendVarint(to, int64(len(b))), b...)
}

// stamp writes the session and the sequence number of its first record into a batch,
// and the checksum, and returns its bytes.
func (b *batch) stamp(s *session, sequence int32) []byte {
	all := b.content.Bytes()
	put := binary.BigEndian
	put.PutUint64(all[atProducer:], uint64(s.id))
	put.PutUint16(all[atGeneration:], uint16(s.epoch))
	put.PutUint32(all[atSequence:], uint32(sequence))
	head := crc32.Checksum(all[atCodec:atRecords], castagnoli)
	put.PutUint32(all[atChecksum:], joined(head, b.sum, len(all)-atRecords))
	return all
}
