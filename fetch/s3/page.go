package s3

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"lacuna/fetch"
)

// page holds the elements of a ListObjectsV2 answer that are used.
type page struct {
	encoding  string // encoding of keys; the element may follow them
	truncated bool   // another page follows
	next      string // token of the next page
	contents  []content
}

// content is an object on a page.
type content struct {
	Key          string
	Size         int64
	LastModified time.Time
	ETag         string
}

// maxDepth is the deepest nesting of the elements of a page: the owner of an
// object lies at the fourth.
const maxDepth = 16

// readPage reads a page one element at a time, so that a host which sends more
// keys than it was asked for is stopped where bound is reached.
func readPage(r io.Reader, bound *fetch.Bound) (*page, error) {
	var p page
	decoder := xml.NewDecoder(r)
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 && t.Name.Local != "ListBucketResult" {
				return nil, fmt.Errorf("expected a ListBucketResult, the answer is a %.40q", t.Name.Local)
			}
			known := false
			if depth == 1 {
				if known, err = p.take(decoder, t, bound); err != nil {
					return nil, err
				}
			}
			if known { // take has read the element to its end
				continue
			}
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("%w: elements lie deeper than %d in one another", fetch.ErrUnacceptable, maxDepth)
			}
		case xml.EndElement:
			if depth--; depth == 0 {
				return &p, nil
			}
		}
	}
}

// take reads an element of a page, all of it, and reports whether it is one
// that is used.
func (p *page) take(decoder *xml.Decoder, start xml.StartElement, bound *fetch.Bound) (bool, error) {
	switch start.Name.Local {
	case "Contents":
		if err := bound.Entry(); err != nil {
			return true, err
		}
		var c content
		if err := decoder.DecodeElement(&c, &start); err != nil {
			return true, err
		}
		p.contents = append(p.contents, c)
		return true, nil
	case "EncodingType":
		return true, decoder.DecodeElement(&p.encoding, &start)
	case "IsTruncated":
		return true, decoder.DecodeElement(&p.truncated, &start)
	case "NextContinuationToken":
		return true, decoder.DecodeElement(&p.next, &start)
	}
	return false, nil
}
