package daemon

import (
	"context"
	"runtime"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// seaReader reads the sea of a grid from a file.
type seaReader interface {
	ReadSea(ctx context.Context, path string, grid field.Grid) (field.Mask, error)
}

// decoders have files decoded, each by a child that may take as much memory as
// decode.memory_mib, and bound how many children there are at a time, whoever
// asks: what is filled, what comes in and what pages show.
//
// A place is held for one file and while nothing else is waited for, so that
// whoever has one lets it go. The limit on the time of decoding counts from
// when there is a place.
type decoders struct {
	*ingest.Reader
	places *slots
	filled bool // it is for filling: one place is left to it
}

// newDecoders returns places for as many files as there are granules in work at
// a time, and one more that is left to filling, so that what comes in fast does
// not hold it up.
func newDecoders(reader *ingest.Reader) decoders {
	return decoders{Reader: reader, places: newSlots(fillSlots() + 1), filled: true}
}

// fillSlots is how many granules are filled at a time.
func fillSlots() int { return max(runtime.GOMAXPROCS(0), 2) }

// patient returns the decoders for those who leave a place to filling.
func (d decoders) patient() decoders {
	d.filled = false
	return d
}

// Read is ingest.Reader's, when there is a place.
func (d decoders) Read(ctx context.Context, path string, opt ingest.Options) (g ingest.Granule, err error) {
	err = d.places.within(ctx, d.filled, func() error {
		g, err = d.Reader.Read(ctx, path, opt)
		return err
	})
	return g, err
}

// ReadSea is ingest.Reader's, when there is a place.
func (d decoders) ReadSea(ctx context.Context, path string, grid field.Grid) (sea field.Mask, err error) {
	err = d.places.within(ctx, d.filled, func() error {
		sea, err = d.Reader.ReadSea(ctx, path, grid)
		return err
	})
	return sea, err
}
