package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Layout and flags of a Blosc 1 buffer, from the description of its format
// (README_CHUNK_FORMAT of c-blosc).
const (
	bloscHeader     = 16
	bloscShuffle    = 1 << 0
	bloscStored     = 1 << 1 // nothing is compressed
	bloscBitShuffle = 1 << 2
	bloscWhole      = 1 << 4 // blocks are not split by the bytes of an element
	bloscMaxSplits  = 16
	bloscMinSplit   = 128 // bytes of the smallest part of a split block
)

var errBlosc = errors.New("the buffer is damaged")

// unblosc undoes Blosc 1.
func unblosc(stored []byte, most int) ([]byte, error) {
	if len(stored) < bloscHeader {
		return nil, io.ErrUnexpectedEOF
	}
	flags, size := stored[2], int(stored[3])
	n, block, whole := int(binary.LittleEndian.Uint32(stored[4:])), int(binary.LittleEndian.Uint32(stored[8:])),
		int(binary.LittleEndian.Uint32(stored[12:]))
	switch {
	case stored[0] > 2:
		return nil, fmt.Errorf("format %d of Blosc is not known", stored[0])
	case n > most:
		return nil, fmt.Errorf("it inflates to %d bytes, more than %d", n, most)
	case whole > len(stored):
		return nil, io.ErrUnexpectedEOF
	case n == 0:
		return nil, nil
	case flags&bloscStored != 0:
		if whole != bloscHeader+n {
			return nil, errBlosc
		}
		return stored[bloscHeader:whole], nil
	case block <= 0 || block > n || size == 0:
		return nil, errBlosc
	}
	b := bloscBuffer{stored: stored[:whole], flags: flags, size: size}
	blocks := (n + block - 1) / block
	if bloscHeader+4*blocks > whole {
		return nil, errBlosc
	}
	out := make([]byte, 0, n)
	for i := range blocks {
		length := min(block, n-i*block)
		raw, err := b.block(int(binary.LittleEndian.Uint32(stored[bloscHeader+4*i:])), length, length < block)
		if err != nil {
			return nil, err
		}
		out = append(out, raw...)
	}
	return out, nil
}

type bloscBuffer struct {
	stored []byte
	flags  byte
	size   int // bytes of an element
}

// block returns the length bytes of the block that begins at from.
func (b bloscBuffer) block(from, length int, leftover bool) ([]byte, error) {
	parts := 1
	if b.flags&bloscWhole == 0 && !leftover && b.size <= bloscMaxSplits && length/b.size >= bloscMinSplit {
		parts = b.size
	}
	if length%parts != 0 {
		return nil, errBlosc
	}
	out := make([]byte, 0, length)
	for range parts {
		if from < 0 || from > len(b.stored)-4 {
			return nil, errBlosc
		}
		n := int(binary.LittleEndian.Uint32(b.stored[from:]))
		from += 4
		if n > len(b.stored)-from {
			return nil, errBlosc
		}
		part, err := b.part(b.stored[from:from+n], length/parts)
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
		from += n
	}
	switch {
	case b.flags&bloscShuffle != 0 && b.size > 1:
		return unshuffle(out, b.size), nil
	case b.flags&bloscBitShuffle != 0:
		return unbitshuffle(out, b.size), nil
	}
	return out, nil
}

// part inflates a part of a block to n bytes.
func (b bloscBuffer) part(stored []byte, n int) ([]byte, error) {
	if len(stored) == n {
		return stored, nil
	}
	var out []byte
	var err error
	switch b.flags >> 5 {
	case 0:
		out, err = unblosclz(stored, n)
	case 1:
		out, err = lz4Block(stored, n)
	case 2:
		if claimed, e := snappy.DecodedLen(stored); e != nil || claimed != n {
			return nil, errBlosc
		}
		out, err = snappy.Decode(nil, stored)
	case 3:
		out, err = unzlib(stored, n)
	case 4:
		out, err = unzstd(stored, n)
	default:
		return nil, fmt.Errorf("compressor %d of Blosc is not known", b.flags>>5)
	}
	if err == nil && len(out) != n {
		err = errBlosc
	}
	return out, err
}

// unbitshuffle undoes the transposition of bits: those of all elements are
// gathered by their place in the element. A number of elements that eight does
// not divide is left as it was.
func unbitshuffle(stored []byte, size int) []byte {
	n := len(stored) / size // elements
	if n%8 != 0 {
		return stored
	}
	out := make([]byte, len(stored))
	row := n / 8 // bytes of one bit of all elements
	for bit := range size * 8 {
		for i := range row {
			eight := stored[bit*row+i]
			for k := range 8 {
				out[(8*i+k)*size+bit/8] |= (eight >> k & 1) << (bit % 8)
			}
		}
	}
	copy(out[n*size:], stored[n*size:])
	return out
}

// unblosclz undoes BloscLZ, a byte-oriented LZ77 of the FastLZ kind: a control
// byte below 32 begins a run of literals, any other a match.
func unblosclz(stored []byte, n int) ([]byte, error) {
	const farDistance = 8191
	out := make([]byte, 0, n)
	at := 0
	next := func() (int, bool) {
		if at >= len(stored) {
			return 0, false
		}
		at++
		return int(stored[at-1]), true
	}
	control, ok := next()
	if !ok {
		return nil, errBlosc
	}
	control &= 31
	for {
		if control >= 32 {
			length, distance := control>>5-1, control&31<<8
			if length == 6 {
				for more := 255; more == 255; length += more {
					if more, ok = next(); !ok {
						return nil, errBlosc
					}
				}
			}
			low, ok := next()
			if !ok {
				return nil, errBlosc
			}
			distance += low
			if low == 255 && distance == 31<<8+255 {
				high, ok1 := next()
				low, ok2 := next()
				if !ok1 || !ok2 {
					return nil, errBlosc
				}
				distance = high<<8 + low + farDistance
			}
			from, length := len(out)-distance-1, length+3
			if from < 0 || len(out)+length > n {
				return nil, errBlosc
			}
			for i := range length {
				out = append(out, out[from+i])
			}
		} else {
			run := control + 1
			if at+run > len(stored) || len(out)+run > n {
				return nil, errBlosc
			}
			out = append(out, stored[at:at+run]...)
			at += run
		}
		if control, ok = next(); !ok {
			return out, nil
		}
	}
}
