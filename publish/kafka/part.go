package kafka

import (
	"fmt"
	"strconv"

	kafkago "github.com/segmentio/kafka-go"
)

// Part is the frame of one message of the data topic: which piece of which
// product its value is.
type Part struct {
	ID     string // id of the product's revision, as in the event
	Number int    // from 0
	Parts  int
	Size   int64  // bytes of the whole product
	SHA256 string // hash of the whole product
}

func (p Part) headers() []kafkago.Header {
	return []kafkago.Header{
		{Key: "id", Value: []byte(p.ID)},
		{Key: "part", Value: []byte(strconv.Itoa(p.Number))},
		{Key: "parts", Value: []byte(strconv.Itoa(p.Parts))},
		{Key: "size", Value: []byte(strconv.FormatInt(p.Size, 10))},
		{Key: "sha256", Value: []byte(p.SHA256)},
		{Key: "schema", Value: []byte("urn:lacuna:schema:product-part:" + strconv.Itoa(SchemaVersion))},
	}
}

// ParsePart reads the headers of a message of the data topic.
func ParsePart(m kafkago.Message) (Part, error) {
	h := headersOf(m)
	p := Part{ID: h["id"], SHA256: h["sha256"]}
	var errPart, errParts, errSize error
	p.Number, errPart = strconv.Atoi(h["part"])
	p.Parts, errParts = strconv.Atoi(h["parts"])
	p.Size, errSize = strconv.ParseInt(h["size"], 10, 64)
	if p.ID == "" || errPart != nil || errParts != nil || errSize != nil || p.Number < 0 || p.Number >= p.Parts {
		return Part{}, fmt.Errorf("%w: part at offset %d lacks id, part, parts or size", ErrNotOurs, m.Offset)
	}
	return p, nil
}
