package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// chain is the way from the stored bytes of a chunk to its numbers.
type chain struct {
	size    int        // bytes of an element
	order   []int      // axes of the stored chunk, by those of the array; nil: the same
	big     bool       // elements are big endian
	shard   *sharding  // the chunk is a shard; nil: it is not
	inflate []inflater // in the order of encoding
}

// sharding says how a shard is divided into chunks.
type sharding struct {
	chunks  []int
	inner   chain
	index   chain
	atStart bool
}

// decode returns the numbers of a chunk of shape, little endian and row-major.
// Numbers that a shard does not hold are fill.
func (c chain) decode(stored []byte, shape []int, fill []byte) ([]byte, error) {
	want := elements(shape, maxChunk/c.size) * c.size
	if want > maxChunk {
		return nil, fmt.Errorf("a chunk of shape %v has more than %d bytes", shape, maxChunk)
	}
	room := want + want/8 + 1<<10 // what a codec adds to numbers that do not compress
	if c.shard != nil {
		room = maxStored
	}
	for _, step := range slices.Backward(c.inflate) {
		var err error
		if stored, err = step.decode(stored, room); err != nil {
			return nil, fmt.Errorf("codec %s: %w", step.name, err)
		}
		if len(stored) > room {
			return nil, fmt.Errorf("codec %s: it inflates to more than %d bytes, where the chunk has %d", step.name, room, want)
		}
	}
	laid := permuted(shape, c.order)
	var numbers []byte
	if c.shard != nil {
		var err error
		if numbers, err = c.shard.decode(stored, laid, fill, c.size); err != nil {
			return nil, err
		}
	} else if numbers = stored; len(numbers) != want {
		return nil, fmt.Errorf("it has %d bytes of numbers, and its shape %v takes %d", len(numbers), shape, want)
	}
	if c.big {
		numbers = swapped(numbers, c.size)
	}
	return restored(numbers, laid, c.order, c.size), nil
}

// absent marks a chunk that a shard does not hold.
const absent = math.MaxUint64

func (s *sharding) decode(stored []byte, shape []int, fill []byte, size int) ([]byte, error) {
	grid := make([]int, len(shape))
	for i, n := range shape {
		if n%s.chunks[i] != 0 {
			return nil, fmt.Errorf("a shard of shape %v cannot be divided into chunks of %v", shape, s.chunks)
		}
		grid[i] = n / s.chunks[i]
	}
	index, err := s.readIndex(stored, grid)
	if err != nil {
		return nil, err
	}
	out := make([]byte, elements(shape, maxChunk)*size)
	whole := region{start: make([]int, len(shape)), count: shape}
	at := make([]int, len(shape))
	for i := 0; i < len(index); i += 16 {
		offset, length := binary.LittleEndian.Uint64(index[i:]), binary.LittleEndian.Uint64(index[i+8:])
		var numbers []byte
		switch {
		case offset == absent && length == absent:
			numbers = filled(elements(s.chunks, maxChunk), fill)
		case offset > uint64(len(stored)) || length > uint64(len(stored))-offset:
			return nil, fmt.Errorf("the index of the shard names %d bytes from %d on, and the shard has %d", length, offset, len(stored))
		default:
			if numbers, err = s.inner.decode(stored[offset:offset+length], s.chunks, fill); err != nil {
				return nil, fmt.Errorf("chunk %d of the shard: %w", i/16, err)
			}
		}
		whole.take(out, numbers, at, s.chunks, size)
		advance(at, grid)
	}
	return out, nil
}

func (s *sharding) readIndex(stored []byte, grid []int) ([]byte, error) {
	const most = 1 << 20 // chunks of a shard
	n := elements(grid, most)
	if n > most {
		return nil, fmt.Errorf("a shard has more than %d chunks", most)
	}
	length := 16 * n
	for _, step := range s.index.inflate {
		if step.name != "crc32c" {
			return nil, fmt.Errorf("the index of a shard is coded with %s, whose length is not fixed", step.name)
		}
		length += 4
	}
	if length > len(stored) {
		return nil, errors.New("the shard is shorter than its index")
	}
	raw := stored[len(stored)-length:]
	if s.atStart {
		raw = stored[:length]
	}
	return s.index.decode(raw, append(slices.Clone(grid), 2), make([]byte, 8))
}

// advance moves at to the next place of a grid, in row-major order; false: it
// was the last.
func advance(at, grid []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < grid[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// filled returns n elements of fill.
func filled(n int, fill []byte) []byte {
	out := make([]byte, n*len(fill))
	if !slices.ContainsFunc(fill, func(b byte) bool { return b != 0 }) {
		return out
	}
	for i := 0; i < len(out); i += len(fill) {
		copy(out[i:], fill)
	}
	return out
}

// swapped reverses the bytes of every element.
func swapped(numbers []byte, size int) []byte {
	out := make([]byte, len(numbers))
	for i := 0; i+size <= len(numbers); i += size {
		for j := range size {
			out[i+j] = numbers[i+size-1-j]
		}
	}
	return out
}

// permuted returns the shape whose axis i is axis order[i] of shape.
func permuted(shape, order []int) []int {
	if order == nil {
		return shape
	}
	out := make([]int, len(shape))
	for i, axis := range order {
		out[i] = shape[axis]
	}
	return out
}

// restored returns numbers of the permuted shape laid in the order of the
// array's own axes.
func restored(numbers []byte, laid, order []int, size int) []byte {
	if order == nil {
		return numbers
	}
	rank := len(laid)
	shape := make([]int, rank)
	for i, axis := range order {
		shape[axis] = laid[i]
	}
	stride := make([]int, rank) // of the array's axes in the stored numbers, in elements
	for i, step := rank-1, 1; i >= 0; i-- {
		stride[order[i]] = step
		step *= laid[i]
	}
	out := make([]byte, len(numbers))
	at := make([]int, rank)
	for to := 0; to < len(out); to += size {
		from := 0
		for i, n := range at {
			from += n * stride[i]
		}
		copy(out[to:to+size], numbers[from*size:])
		advance(at, shape)
	}
	return out
}
