package kafka

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"lacuna/publish"

	"golang.org/x/sync/errgroup"
)

// sendFile sends the file of p in parts and returns their position. While one
// part is on its way the next is read, hashed and compressed: two are in
// memory at a time. A file without the hash of p is an error, after its parts were
// sent; parts that are not announced are never read.
func (w *writer) sendFile(ctx context.Context, to slot, id string, p publish.Product) (Placement, error) {
	file, err := os.Open(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Placement{}, fmt.Errorf("%w: %w", publish.ErrPermanent, err)
	}
	if err != nil {
		return Placement{}, err
	}
	defer file.Close()
	place := Placement{Topic: to.topic, Partition: to.partition, Parts: partsOf(p.Size, w.cfg.PartBytes)}
	buffers := newBuffers()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(buffers.full)
		return w.encodeParts(ctx, file, id, p, buffers)
	})
	g.Go(func() error { return w.sendParts(ctx, to, buffers, &place) })
	if err := g.Wait(); err != nil {
		return Placement{}, err
	}
	buffers.keep()
	return place, nil
}

// buffers passes two buffers back and forth between encodeParts and sendParts.
// Each channel has room for both, so that putting one never blocks.
type buffers struct{ full, free chan *batch }

// emptied are batches whose memory the next product can have.
var emptied = sync.Pool{New: func() any { return new(batch) }}

func newBuffers() buffers {
	const count = 2
	b := buffers{full: make(chan *batch, count), free: make(chan *batch, count)}
	for range count {
		b.free <- emptied.Get().(*batch)
	}
	return b
}

// keep hands the buffers back when all parts have been sent.
func (b buffers) keep() {
	for range cap(b.free) {
		emptied.Put(<-b.free)
	}
}

// encodeParts cuts a file into parts and encodes them into buffers as record
// batches. A file that is not known to have its hash is hashed on the way.
func (w *writer) encodeParts(ctx context.Context, file *os.File, id string, p publish.Product, buffers buffers) error {
	digest, known := sha256.New(), p.Hashed.Has(file, p.SHA256)
	content := io.Reader(file)
	if !known {
		content = io.TeeReader(file, digest)
	}
	part := Part{ID: id, Parts: partsOf(p.Size, w.cfg.PartBytes), Size: p.Size, SHA256: p.SHA256}
	for part.Number = range part.Parts {
		var b *batch
		select {
		case b = <-buffers.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		size := min(int64(w.cfg.PartBytes), p.Size-int64(part.Number)*int64(w.cfg.PartBytes))
		err := b.encodeFrom(partMessage(p.Key(), part), content, size, time.Now(), w.producer.codec)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s is not the product that was made: it is shorter than %d bytes", publish.ErrPermanent, p.Path, p.Size)
		}
		if err != nil {
			return fmt.Errorf("encode part %d: %w", part.Number+1, err)
		}
		buffers.full <- b
	}
	if n, _ := file.Read(make([]byte, 1)); n > 0 {
		return fmt.Errorf("%w: %s is not the product that was made: it is longer than %d bytes", publish.ErrPermanent, p.Path, p.Size)
	}
	switch sum := hex.EncodeToString(digest.Sum(nil)); {
	case known && p.Hashed.Has(file, p.SHA256): // nobody has written to it meanwhile
	case known:
		return fmt.Errorf("%s was changed while it was sent", p.Path) // it is hashed the next time
	case sum != p.SHA256:
		return fmt.Errorf("%w: %s is not the product that was made: its sha256 is %s, not %s", publish.ErrPermanent, p.Path, sum, p.SHA256)
	}
	return nil
}

// sendParts sends the full buffers, one after the other, and keeps their
// offsets in place.
func (w *writer) sendParts(ctx context.Context, to slot, buffers buffers, place *Placement) error {
	sent := 0
	for b := range buffers.full {
		offset, err := w.producer.send(ctx, to, b)
		switch {
		case err != nil:
			return fmt.Errorf("part %d of %d: %w", sent+1, place.Parts, err)
		case sent == 0:
			place.FirstOffset = offset
		case offset <= place.LastOffset:
			return fmt.Errorf("part %d of %d: %w: it was made anew meanwhile", sent+1, place.Parts, errTopicGone)
		}
		place.LastOffset = offset
		sent++
		buffers.free <- b
	}
	return nil
}

// partsOf returns the number of parts of a product; an empty one has an empty
// part.
func partsOf(size int64, partBytes int) int {
	return int(max(1, (size+int64(partBytes)-1)/int64(partBytes)))
}
