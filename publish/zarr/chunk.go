package zarr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// An encoder and a decoder take longer to make than to use, and hold nothing
// between two calls.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder { return must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))) })
	decoder = sync.OnceValue(func() *zstd.Decoder { return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))) })
)

func must[T any](made T, err error) T {
	if err != nil {
		panic(err) // the options are constants
	}
	return made
}

// compress returns the zstd frame of raw. The same bytes give the same frame.
func compress(raw []byte) []byte { return encoder().EncodeAll(raw, make([]byte, 0, len(raw)/2)) }

func decompress(frame []byte) ([]byte, error) { return decoder().DecodeAll(frame, nil) }

// chunkKey returns the key of a chunk below its array.
func chunkKey(at ...int) string {
	key := "c"
	for _, i := range at {
		key += "/" + strconv.Itoa(i)
	}
	return key
}

// shardKey returns the key of the shard of a slot of a map of some rank.
func shardKey(slot, rank int) string { return chunkKey(append([]int{slot}, make([]int, rank-1)...)...) }

// encodeShard returns the shard of a map: raw has the cells of one time in the
// order of shape, chunks are of the lengths inner. A chunk of fill values only is
// left out; nil: all were.
func encodeShard(raw, fill []byte, shape, inner []int) []byte {
	counts := make([]int, len(shape))
	n := 1
	for i := range shape {
		counts[i] = (shape[i] + inner[i] - 1) / inner[i]
		n *= counts[i]
	}
	var shard, index []byte
	at := make([]int, len(shape))
	for range n {
		chunk, empty := cut(raw, fill, shape, inner, at)
		if empty {
			index = binary.LittleEndian.AppendUint64(index, math.MaxUint64)
			index = binary.LittleEndian.AppendUint64(index, math.MaxUint64)
		} else {
			frame := compress(chunk)
			index = binary.LittleEndian.AppendUint64(index, uint64(len(shard)))
			index = binary.LittleEndian.AppendUint64(index, uint64(len(frame)))
			shard = append(shard, frame...)
		}
		next(at, counts)
	}
	if shard == nil {
		return nil
	}
	index = binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, crc32.MakeTable(crc32.Castagnoli)))
	return append(shard, index...)
}

// next moves at on to the next place in a box of the given lengths.
func next(at, lengths []int) {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < lengths[i] {
			return
		}
		at[i] = 0
	}
}

// cut returns the chunk at a place of the grid of chunks, filled up where it
// hangs over the edge, and whether it has nothing but fill values.
func cut(raw, fill []byte, shape, inner, at []int) (chunk []byte, empty bool) {
	size, last := len(fill), len(shape)-1
	cells := 1
	for _, n := range inner {
		cells *= n
	}
	chunk = bytes.Repeat(fill, cells)
	width := min(inner[last], shape[last]-at[last]*inner[last])
	empty = true
	rows := make([]int, last) // a row of the chunk, within it
	for r := range cells / inner[last] {
		from, inside := 0, true
		for i := range last {
			place := at[i]*inner[i] + rows[i]
			inside = inside && place < shape[i]
			from = from*shape[i] + place
		}
		if inside {
			from = (from*shape[last] + at[last]*inner[last]) * size
			to := chunk[r*inner[last]*size:][:width*size]
			empty = empty && bytes.Equal(to, raw[from:from+width*size])
			copy(to, raw[from:from+width*size])
		}
		next(rows, inner[:last])
	}
	return chunk, empty
}

// encodeSeries returns a chunk of a series: a row for each slot, filled up to
// length.
func encodeSeries(a array, rows [][]byte, length int) []byte {
	var raw []byte
	if a.Type == stringType {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(length))
	}
	for i := range length {
		row := a.fillRow()
		if i < len(rows) && rows[i] != nil {
			row = rows[i]
		}
		if a.Type == stringType {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(len(row)))
		}
		raw = append(raw, row...)
	}
	return compress(raw)
}

var errChunk = errors.New("its chunk is damaged: remove the store and replay the dataset")

// decodeSeries is the inverse of encodeSeries.
func decodeSeries(a array, frame []byte) (rows [][]byte, err error) {
	raw, err := decompress(frame)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChunk, err)
	}
	length := a.Grid.Configuration.Shape[0]
	if a.Type != stringType {
		if len(raw) != length*a.row() {
			return nil, errChunk
		}
		for i := range length {
			rows = append(rows, raw[i*a.row():][:a.row()])
		}
		return rows, nil
	}
	if len(raw) < 4 || int(binary.LittleEndian.Uint32(raw)) != length {
		return nil, errChunk
	}
	raw = raw[4:]
	for range length {
		if len(raw) < 4 || len(raw)-4 < int(binary.LittleEndian.Uint32(raw)) {
			return nil, errChunk
		}
		n := int(binary.LittleEndian.Uint32(raw))
		rows = append(rows, raw[4:4+n])
		raw = raw[4+n:]
	}
	return rows, nil
}

// trimmed returns text from a fixed number of letters.
func trimmed(letters []byte) []byte { return []byte(strings.TrimRight(string(letters), "\x00 ")) }
