package slots

import (
	"context"
	"runtime"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// Decoders decode files, each in a child that may take as much memory as
// decode.memory_mib, and bound the number of children at a time. Workers, intakes
// and pages share them.
//
// A slot is held for one file, and its holder waits for nothing else, so that no
// two can block each other. The limit on the time of decoding counts from the
// moment at which there is a slot.
type Decoders struct {
	*ingest.Reader
	places *Slots
	filled bool // for workers, which may take the last slot
}

// NewDecoders returns slots for as many files as there are granules in work at a
// time, and one more that is left to the workers, so that a fast intake does not
// hold them up.
func NewDecoders(reader *ingest.Reader) Decoders {
	return Decoders{Reader: reader, places: New(Fills() + 1), filled: true}
}

// Fills returns the number of granules that are filled at a time.
func Fills() int { return max(runtime.GOMAXPROCS(0), 2) }

// Patient returns the decoders for intakes and pages, which leave the last slot
// to the workers.
func (d Decoders) Patient() Decoders {
	d.filled = false
	return d
}

// Read waits for a slot and calls ingest.Reader.Read.
func (d Decoders) Read(ctx context.Context, path string, opt ingest.Options) (g ingest.Granule, err error) {
	err = d.places.Within(ctx, d.filled, func() error {
		g, err = d.Reader.Read(ctx, path, opt)
		return err
	})
	return g, err
}

// ReadSea waits for a slot and calls ingest.Reader.ReadSea.
func (d Decoders) ReadSea(ctx context.Context, path string, grid field.Grid) (sea field.Mask, err error) {
	err = d.places.Within(ctx, d.filled, func() error {
		sea, err = d.Reader.ReadSea(ctx, path, grid)
		return err
	})
	return sea, err
}
