package netcdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"lacuna/internal/cdl"
)

// chunk is a compressed piece of a variable, as HDF5 stores it.
type chunk struct {
	at  []int // indices of its first cell
	raw []byte
}

// compress cuts a variable into chunks and compresses them on all cores. HDF5
// would do it on one, with the lock held, and that is most of the time a write
// takes.
func compress(v Var, shape, lengths []int) ([]chunk, error) {
	chunks := cut(shape, lengths)
	size := cdl.SizeOf(v.Type)
	var g errgroup.Group
	var taken atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(chunks)) {
		g.Go(func() error {
			d := newDeflater(lengths, size)
			for i := taken.Add(1) - 1; i < int64(len(chunks)); i = taken.Add(1) - 1 {
				gather(d.plain, v.Raw, size, block{shape, lengths, chunks[i].at})
				var err error
				if chunks[i].raw, err = d.deflate(size); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("compress variable %s: %w", v.Name, err)
	}
	return chunks, nil
}

// cut returns where the chunks of a variable start, row by row.
func cut(shape, lengths []int) []chunk {
	at := make([]int, len(shape))
	var chunks []chunk
	for {
		chunks = append(chunks, chunk{at: slices.Clone(at)})
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if at[d] += lengths[d]; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return chunks
		}
	}
}

// block is a part of a grid that may hang over its edges.
type block struct {
	shape, lengths, at []int
}

// gather copies the cells of a block, of size bytes each, from raw to dst.
// Cells beyond the edge of the grid are zero, so that the same product gives
// the same bytes.
func gather(dst, raw []byte, size int, b block) {
	clear(dst)
	last := len(b.shape) - 1
	row := min(b.lengths[last], b.shape[last]-b.at[last]) * size
	step := b.lengths[last] * size
	index := make([]int, last) // index of a row, within the block
	for to := 0; to < len(dst); to += step {
		from, inside := 0, true
		for d := range index {
			i := b.at[d] + index[d]
			inside = inside && i < b.shape[d]
			from = from*b.shape[d] + i
		}
		if inside {
			from = (from*b.shape[last] + b.at[last]) * size
			copy(dst[to:to+row], raw[from:from+row])
		}
		for d := last - 1; d >= 0; d-- {
			if index[d]++; index[d] < b.lengths[d] {
				break
			}
			index[d] = 0
		}
	}
}

// deflater compresses chunk after chunk with the memory of one.
type deflater struct {
	plain, planes []byte
	packed        bytes.Buffer
	w             *zlib.Writer
}

func newDeflater(lengths []int, size int) *deflater {
	n := size
	for _, l := range lengths {
		n *= l
	}
	return &deflater{plain: make([]byte, n), planes: make([]byte, n)}
}

// deflate compresses d.plain, numbers of size bytes, as the HDF5 filters
// shuffle and deflate do one after the other.
func (d *deflater) deflate(size int) ([]byte, error) {
	shuffle(d.planes, d.plain, size)
	d.packed.Reset()
	if d.w == nil {
		w, err := zlib.NewWriterLevel(&d.packed, deflateLevel)
		if err != nil {
			return nil, err
		}
		d.w = w
	}
	d.w.Reset(&d.packed)
	if _, err := d.w.Write(d.planes); err != nil {
		return nil, err
	}
	if err := d.w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(d.packed.Bytes()), nil
}

// shuffle puts the first bytes of all numbers together, then the second bytes
// and so on: neighbours share their exponents, and those then compress well.
func shuffle(dst, raw []byte, size int) {
	n := len(raw) / size
	for b := range size {
		plane := dst[b*n : (b+1)*n]
		for i := range plane {
			plane[i] = raw[i*size+b]
		}
	}
}
