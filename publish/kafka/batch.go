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

// encode makes a record batch of one message in buf, whose content is lost, and
// leaves the fields of the producer to stamp.
func encode(buf *bytes.Buffer, m kafkago.Message, at time.Time, codec compress.Compression) error {
	buf.Reset()
	buf.Write(make([]byte, atRecords))
	if codec == compress.None {
		_ = writeRecord(buf, m) // a buffer takes everything
	} else {
		w := codec.Codec().NewWriter(buf)
		if err := errors.Join(writeRecord(w, m), w.Close()); err != nil {
			return err
		}
	}
	b := buf.Bytes()
	put := binary.BigEndian
	put.PutUint32(b, uint32(len(b)-sizeBytes))
	put.PutUint32(b[atLength:], uint32(len(b)-atEpoch))
	put.PutUint32(b[atEpoch:], ^uint32(0))
	b[atVersion] = 2
	put.PutUint16(b[atCodec:], uint16(codec))
	put.PutUint64(b[atFirstTime:], uint64(at.UnixMilli()))
	put.PutUint64(b[atLastTime:], uint64(at.UnixMilli()))
	put.PutUint32(b[atCount:], 1)
	return nil
}

// writeRecord writes one record: lengths are zigzag varints, -1 stands for
// null.
func writeRecord(w io.Writer, m kafkago.Message) error {
	head := []byte{0, 0, 0} // no attributes; time and offset of the batch
	head = appendBytes(head, m.Key)
	if m.Value == nil {
		head = binary.AppendVarint(head, -1)
	} else {
		head = binary.AppendVarint(head, int64(len(m.Value)))
	}
	tail := binary.AppendVarint(nil, int64(len(m.Headers)))
	for _, h := range m.Headers {
		tail = appendBytes(tail, []byte(h.Key))
		tail = appendBytes(tail, h.Value)
	}
	length := binary.AppendVarint(nil, int64(len(head)+len(m.Value)+len(tail)))
	for _, piece := range [][]byte{length, head, m.Value, tail} {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendVarint(to, int64(len(b))), b...)
}

// stamp writes the session and the sequence number of its first record into an
// encoded batch, and its checksum.
func stamp(b []byte, s *session, sequence int32) {
	put := binary.BigEndian
	put.PutUint64(b[atProducer:], uint64(s.id))
	put.PutUint16(b[atGeneration:], uint16(s.epoch))
	put.PutUint32(b[atSequence:], uint32(sequence))
	put.PutUint32(b[atChecksum:], crc32.Checksum(b[atCodec:], crc32.MakeTable(crc32.Castagnoli)))
}
