package ncfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// classicSize returns the size in bytes that a NetCDF-3 file must have by its
// own header. netCDF-C silently reads zeros beyond the end of a short file, so
// truncation has to be found here; and a header that claims absurd dimensions
// is refused before anything is allocated for them. The size saturates at
// math.MaxInt64.
//
// The format is in the NetCDF Classic Format Specification: a list each of
// dimensions, attributes and variables, big endian, padded to four bytes.
func classicSize(r io.Reader) (int64, error) {
	w := &classicWalk{r: bufio.NewReader(r)}
	magic := w.take(4)
	if w.err != nil {
		return 0, w.err
	}
	w.version = magic[3]
	records := w.count()
	if w.version != 5 && records == math.MaxUint32 || records == math.MaxUint64 {
		records = 0 // written as a stream: the number of records is not known
	}
	dims := w.dims()
	w.attrs()
	vars := w.vars(dims)
	if w.err != nil {
		return 0, w.err
	}
	return extent(vars, records), nil
}

// A classicVar is the place of a variable in the file.
type classicVar struct {
	begin, bytes uint64 // offset, and size of the whole variable or of one record
	record       bool
}

// extent returns the end of the variable that ends last.
func extent(vars []classicVar, records uint64) int64 {
	var recordBytes, recordVars uint64
	for _, v := range vars {
		if v.record {
			recordBytes = add(recordBytes, add(v.bytes, 3)&^3)
			recordVars++
		}
	}
	if recordVars == 1 { // a single record variable is not padded
		for _, v := range vars {
			if v.record {
				recordBytes = v.bytes
			}
		}
	}
	end := uint64(0)
	for _, v := range vars {
		last := add(v.begin, v.bytes)
		switch {
		case v.record && records == 0:
			last = 0
		case v.record:
			last = add(last, mul(records-1, recordBytes))
		}
		end = max(end, last)
	}
	return int64(min(end, math.MaxInt64))
}

// A classicWalk steps through a header. After the first error it only
// returns zeros.
type classicWalk struct {
	r       *bufio.Reader
	version byte // 1 classic, 2 64-bit offsets, 5 64-bit data
	err     error
}

var errClassicHeader = errors.New("the header makes no sense")

func (w *classicWalk) take(n int) []byte {
	buf := make([]byte, n)
	if w.err == nil {
		_, w.err = io.ReadFull(w.r, buf)
	}
	return buf
}

// skip passes over n bytes and their padding.
func (w *classicWalk) skip(n uint64) {
	if w.err != nil {
		return
	}
	if n > math.MaxInt32 {
		w.err = errClassicHeader
		return
	}
	_, w.err = w.r.Discard((int(n) + 3) &^ 3)
}

func (w *classicWalk) uint32() uint64 { return uint64(binary.BigEndian.Uint32(w.take(4))) }
func (w *classicWalk) uint64() uint64 { return binary.BigEndian.Uint64(w.take(8)) }

// count reads a number that CDF-5 widened.
func (w *classicWalk) count() uint64 {
	if w.version == 5 {
		return w.uint64()
	}
	return w.uint32()
}

// list reads the head of a list that must have the given tag, or be absent.
func (w *classicWalk) list(tag uint64) uint64 {
	got, n := w.uint32(), w.count()
	if w.err == nil && (got != tag && (got != 0 || n != 0)) {
		w.err = fmt.Errorf("%w: tag %d where %d belongs", errClassicHeader, got, tag)
	}
	if w.err != nil {
		return 0
	}
	return n
}

const tagDimension, tagVariable, tagAttribute = 10, 11, 12

func (w *classicWalk) dims() []uint64 {
	var lens []uint64
	for n := w.list(tagDimension); n > 0 && w.err == nil; n-- {
		w.skip(w.count()) // name
		lens = append(lens, w.count())
	}
	return lens
}

func (w *classicWalk) attrs() {
	for n := w.list(tagAttribute); n > 0 && w.err == nil; n-- {
		w.skip(w.count()) // name
		size := w.typeSize()
		w.skip(mul(size, w.count()))
	}
}

func (w *classicWalk) vars(dims []uint64) []classicVar {
	var vars []classicVar
	for n := w.list(tagVariable); n > 0 && w.err == nil; n-- {
		w.skip(w.count()) // name
		v := classicVar{bytes: 1}
		rank := w.count()
		for i := uint64(0); i < rank && w.err == nil; i++ {
			id := w.count()
			switch {
			case w.err != nil:
			case id >= uint64(len(dims)):
				w.err = fmt.Errorf("%w: dimension number %d of %d", errClassicHeader, id, len(dims))
			case i == 0 && dims[id] == 0:
				v.record = true
			default:
				v.bytes = mul(v.bytes, dims[id])
			}
		}
		w.attrs()
		v.bytes = mul(v.bytes, w.typeSize())
		w.count() // vsize, which is wrong for large variables
		if w.version == 1 {
			v.begin = w.uint32()
		} else {
			v.begin = w.uint64()
		}
		vars = append(vars, v)
	}
	return vars
}

func (w *classicWalk) typeSize() uint64 {
	sizes := [...]uint64{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8}
	t := w.uint32()
	if w.err == nil && (t == 0 || t >= uint64(len(sizes))) {
		w.err = fmt.Errorf("%w: type number %d", errClassicHeader, t)
	}
	if w.err != nil {
		return 0
	}
	return sizes[t]
}

// add and mul saturate, so that a hostile header cannot wrap round to a small
// number.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func mul(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
