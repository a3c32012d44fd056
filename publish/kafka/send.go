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

// sendFile sends the file of p in parts and returns where they lie. While one
// part is on its way the next is read, hashed and compressed: two are in memory
// at a time. A file that is not what p says is an error, after its parts were
// sent; nobody looks at parts that are not announced.
func (l *line) sendFile(ctx context.Context, to slot, p publish.Product) (Placement, error) {
	file, err := os.Open(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Placement{}, fmt.Errorf("%w: %w", publish.ErrPermanent, err)
	}
	if err != nil {
		return Placement{}, err
	}
	defer file.Close()
	place := Placement{Topic: to.topic, Partition: to.partition, Parts: partsOf(p.Size, l.cfg.PartBytes)}
	belt := newBelt()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(belt.full)
		return l.encodeParts(ctx, file, p, belt)
	})
	g.Go(func() error { return l.sendParts(ctx, to, belt, &place) })
	if err := g.Wait(); err != nil {
		return Placement{}, err
	}
	return place, nil
}

// belt carries two buffers between the one who fills and the one who sends
// them. Each channel has room for both, so that putting one never blocks.
type belt struct{ full, free chan *bytes.Buffer }

func newBelt() belt {
	const buffers = 2
	b := belt{full: make(chan *bytes.Buffer, buffers), free: make(chan *bytes.Buffer, buffers)}
	for range buffers {
		b.free <- new(bytes.Buffer)
	}
	return b
}

// encodeParts cuts a file into parts and puts them on the belt as record
// batches.
func (l *line) encodeParts(ctx context.Context, file io.Reader, p publish.Product, belt belt) error {
	digest := sha256.New()
	rest := io.TeeReader(io.LimitReader(file, p.Size+1), digest)
	part := Part{ID: p.ID(), Parts: partsOf(p.Size, l.cfg.PartBytes), Size: p.Size, SHA256: p.SHA256}
	piece := make([]byte, l.cfg.PartBytes)
	var read int64
	for part.Number = range part.Parts {
		n, err := io.ReadFull(rest, piece)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		read += int64(n)
		var batch *bytes.Buffer
		select {
		case batch = <-belt.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := encode(batch, partMessage(p.Key(), part, piece[:n]), time.Now(), l.producer.codec); err != nil {
			return fmt.Errorf("encode part %d: %w", part.Number+1, err)
		}
		belt.full <- batch
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); read != p.Size || sum != p.SHA256 {
		return fmt.Errorf("%w: %s is not the product that was made: %d bytes with sha256 %s, not %d with %s",
			publish.ErrPermanent, p.Path, read, sum, p.Size, p.SHA256)
	}
	return nil
}

// sendParts sends what is on the belt, one after the other, and notes in place
// where it lies.
func (l *line) sendParts(ctx context.Context, to slot, belt belt, place *Placement) error {
	sent := 0
	for batch := range belt.full {
		offset, err := l.producer.send(ctx, to, batch)
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
		belt.free <- batch
	}
	return nil
}

// partsOf returns how many parts a product has; an empty one has an empty part.
func partsOf(size int64, partBytes int) int {
	return int(max(1, (size+int64(partBytes)-1)/int64(partBytes)))
}
