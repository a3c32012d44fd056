package zarr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// region is a box of an array.
type region struct {
	start, count []int
}

// Read returns the numbers of a box of the array, exactly as they are stored:
// little endian and row-major. A box that takes more than most bytes is an
// error; where a chunk is not stored its numbers are Fill.
func (a *Array) Read(ctx context.Context, start, count []int, most int64) ([]byte, error) {
	if a.Unusable != "" {
		return nil, fmt.Errorf("%s: %s", a.Name, a.Unusable)
	}
	if len(start) != len(a.Shape) || len(count) != len(a.Shape) {
		return nil, fmt.Errorf("%s: it has %d dimensions, and the box %d", a.Name, len(a.Shape), len(start))
	}
	for i, n := range a.Shape {
		if start[i] < 0 || count[i] < 0 || start[i] > n-count[i] {
			return nil, fmt.Errorf("%s: a box of %v from %v on is not within its shape %v", a.Name, count, start, a.Shape)
		}
	}
	size := a.chain.size
	n := elements(count, int(most)/size)
	if int64(n)*int64(size) > most {
		return nil, fmt.Errorf("%s: a box of %v takes more than %d bytes", a.Name, count, most)
	}
	out := make([]byte, n*size)
	if n == 0 {
		return out, nil
	}
	box := region{start: start, count: count}
	first, grid := box.chunks(a.Chunks)
	for at := make([]int, len(grid)); ; {
		chunk := make([]int, len(at))
		for i := range at {
			chunk[i] = first[i] + at[i]
		}
		numbers, err := a.chunk(ctx, chunk)
		if err != nil {
			return nil, err
		}
		box.take(out, numbers, chunk, a.Chunks, size)
		if !advance(at, grid) {
			return out, nil
		}
	}
}

// chunk returns the numbers of a whole chunk.
func (a *Array) chunk(ctx context.Context, at []int) ([]byte, error) {
	key := a.key(at)
	stored, err := a.store.Get(ctx, key, maxStored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return filled(elements(a.Chunks, maxChunk), a.Fill), nil
	case err != nil:
		return nil, err
	}
	numbers, err := a.chain.decode(stored, a.Chunks, a.Fill)
	if err != nil {
		return nil, fmt.Errorf("chunk %s: %w", key, err)
	}
	return numbers, nil
}

// chunks returns the first chunk that a box touches, and how many along each
// dimension.
func (r region) chunks(shape []int) (first, grid []int) {
	first, grid = make([]int, len(shape)), make([]int, len(shape))
	for i, n := range shape {
		first[i] = r.start[i] / n
		grid[i] = (r.start[i]+r.count[i]-1)/n - first[i] + 1
	}
	return first, grid
}

// take copies into out, the numbers of the box, what the chunk at a place of the
// grid of chunks has of it.
func (r region) take(out, numbers []byte, at, shape []int, size int) {
	rank := len(shape)
	if rank == 0 {
		copy(out, numbers)
		return
	}
	from, to, count := make([]int, rank), make([]int, rank), make([]int, rank) // in the chunk, in the box
	for i := range rank {
		begin := max(r.start[i], at[i]*shape[i])
		end := min(r.start[i]+r.count[i], (at[i]+1)*shape[i])
		if end <= begin {
			return
		}
		from[i], to[i], count[i] = begin-at[i]*shape[i], begin-r.start[i], end-begin
	}
	row := count[rank-1] * size
	lines := slices.Clone(count)
	lines[rank-1] = 1
	for line := make([]int, rank); ; {
		src, dst := 0, 0
		for i := range rank {
			src = src*shape[i] + from[i] + line[i]
			dst = dst*r.count[i] + to[i] + line[i]
		}
		copy(out[dst*size:dst*size+row], numbers[src*size:])
		if !advance(line, lines) {
			return
		}
	}
}

// On returns the array read from another store, such as the same one opened
// again.
func (a *Array) On(store Store) *Array {
	out := *a
	out.store = store
	return &out
}
