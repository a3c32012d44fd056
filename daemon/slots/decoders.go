package slots

import (
	"context"
	"runtime"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// Decoders have files decoded, each by a child that may take as much memory as
// decode.memory_mib, and bound how many children there are at a time, whoever
// asks: what is filled, what comes in and what pages show.
//
// A place is held for one file and while nothing else is waited for, so that
// whoever has one lets it go. The limit on the time of decoding counts from
// when there is a place.
type Decoders struct {
	*ingest.Reader
	places *Slots
	filled bool // it is for filling: one place is left to it
}

// NewDecoders returns places for as many files as there are granules in work at
// a time, and one more that is left to filling, so that what comes in fast does
// not hold it up.
func NewDecoders(reader *ingest.Reader) Decoders {
	return Decoders{Reader: reader, places: New(Fills() + 1), filled: true}
}

// Fills is how many granules are filled at a time.
func Fills() int { return max(runtime.GOMAXPROCS(0), 2) }

// Patient returns the decoders for those who leave a place to filling.
func (d Decoders) Patient() Decoders {
	d.filled = false
	return d
}

// Read is ingest.Reader's, when there is a place.
func (d Decoders) Read(ctx context.Context, path string, opt ingest.Options) (g ingest.Granule, err error) {
	err = d.places.Within(ctx, d.filled, func() error {
		g, err = d.Reader.Read(ctx, path, opt)
		return err
	})
	return g, err
}

// ReadSea is ingest.Reader's, when there is a place.
func (d Decoders) ReadSea(ctx context.Context, path string, grid field.Grid) (sea field.Mask, err error) {
	err = d.places.Within(ctx, d.filled, func() error {
		sea, err = d.Reader.ReadSea(ctx, path, grid)
		return err
	})
	return sea, err
}
