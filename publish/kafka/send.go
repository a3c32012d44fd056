package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"lacuna/publish"

	"golang.org/x/sync/errgroup"
)

// sendFile sends the file of p in parts and returns their position. While one
// part is on its way it is hashed, and the next is read and compressed: two are in
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
	return place, nil
}

// buffers passes two buffers back and forth between encodeParts and sendParts.
// Each channel has room for both, so that putting one never blocks.
type buffers struct{ full, free chan *bytes.Buffer }

func newBuffers() buffers {
	const count = 2
	b := buffers{full: make(chan *bytes.Buffer, count), free: make(chan *bytes.Buffer, count)}
	for range count {
		b.free <- new(bytes.Buffer)
	}
	return b
}

// encodeParts cuts a file into parts and encodes them into buffers as record
// batches. A file that is not known to have its hash is hashed on the way.
func (w *writer) encodeParts(ctx context.Context, file *os.File, id string, p publish.Product, buffers buffers) error {
	digest, known := sha256.New(), p.Hashed.Has(file, p.SHA256)
	rest := io.LimitReader(file, p.Size+1)
	part := Part{ID: id, Parts: partsOf(p.Size, w.cfg.PartBytes), Size: p.Size, SHA256: p.SHA256}
	piece := make([]byte, w.cfg.PartBytes)
	var read int64
	for part.Number = range part.Parts {
		n, err := io.ReadFull(rest, piece)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		read += int64(n)
		var batch *bytes.Buffer
		select {
		case batch = <-buffers.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := encode(batch, partMessage(p.Key(), part, piece[:n]), time.Now(), w.producer.codec); err != nil {
			return fmt.Errorf("encode part %d: %w", part.Number+1, err)
		}
		buffers.full <- batch
		if !known {
			digest.Write(piece[:n]) // while it is on its way
		}
	}
	switch sum := hex.EncodeToString(digest.Sum(nil)); {
	case read == p.Size && known && p.Hashed.Has(file, p.SHA256): // nobody has written to it meanwhile
	case read == p.Size && known:
		return fmt.Errorf("%s was changed while it was sent", p.Path) // it is hashed the next time
	case read != p.Size || sum != p.SHA256:
		return fmt.Errorf("%w: %s is not the product that was made: %d bytes with sha256 %s, not %d with %s",
			publish.ErrPermanent, p.Path, read, sum, p.Size, p.SHA256)
	}
	return nil
}

// sendParts sends the full buffers, one after the other, and keeps their
// offsets in place.
func (w *writer) sendParts(ctx context.Context, to slot, buffers buffers, place *Placement) error {
	sent := 0
	for batch := range buffers.full {
		offset, err := w.producer.send(ctx, to, batch)
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
		buffers.free <- batch
	}
	return nil
}

// partsOf returns the number of parts of a product; an empty one has an empty
// part.
func partsOf(size int64, partBytes int) int {
	return int(max(1, (size+int64(partBytes)-1)/int64(partBytes)))
}
