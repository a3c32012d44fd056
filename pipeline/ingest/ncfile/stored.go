package ncfile

/*
#cgo pkg-config: hdf5 libdeflate
#include <hdf5_hl.h>
#include <netcdf.h>
#include <stdlib.h>
#include "stored.h"
*/
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// mostPieces is how many chunks of a variable are unpacked here: HDF5 1.10 looks through
// all of them for each that it is asked for.
const mostPieces = 256

// A stored variable has its numbers in chunks of the mapped file, deflated, alone or
// after a shuffle, which is how nearly every granule has them. They are unpacked from
// there by libdeflate on all cores; HDF5 would copy each chunk three times and inflate
// it on one core in twice the time. Whatever else a file has is left to netCDF-C,
// which also says what is wrong with a chunk that cannot be unpacked.
type stored struct {
	file   []byte
	layout C.stored
	pieces []C.piece
}

// stored finds out how the numbers of a variable lie in the file; nil: in another way.
func (l *Library) stored(v int, shape []int) *stored {
	if len(shape) < 1 || len(shape) > C.MOST_DIMENSIONS || !l.openImage() {
		return nil
	}
	s := &stored{file: l.image, pieces: make([]C.piece, mostPieces)}
	if !s.typed(l.places[v]) {
		return nil
	}
	s.layout.rank = C.int(len(shape))
	for i, n := range shape {
		s.layout.dims[i] = C.ulonglong(n)
	}
	name, other, ok := l.paths(l.places[v])
	if !ok {
		return nil
	}
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(other))
	if C.lacuna_stored(l.hdf5, name, other, &s.layout, &s.pieces[0], mostPieces) == 0 {
		return nil
	}
	s.pieces = s.pieces[:s.layout.pieces]
	return s
}

// typed sets the type of the numbers.
func (s *stored) typed(p place) bool {
	var typ C.nc_type
	if C.nc_inq_vartype(p.group, p.id, &typ) != C.NC_NOERR {
		return false
	}
	widths := map[C.nc_type]C.uint{
		C.NC_BYTE: 1, C.NC_UBYTE: 1, C.NC_SHORT: 2, C.NC_USHORT: 2, C.NC_INT: 4, C.NC_UINT: 4, C.NC_INT64: 8, C.NC_UINT64: 8,
		C.NC_FLOAT: 4, C.NC_DOUBLE: 8,
	}
	s.layout.width = widths[typ]
	if typ == C.NC_FLOAT || typ == C.NC_DOUBLE {
		s.layout.floating = 1
	}
	if slices.Contains([]C.nc_type{C.NC_BYTE, C.NC_SHORT, C.NC_INT, C.NC_INT64}, typ) {
		s.layout.is_signed = 1
	}
	return s.layout.width != 0
}

// paths returns the names that a variable may have in HDF5: its own, and the one that
// netCDF-C gives it where a dimension of another shape has that name.
func (l *Library) paths(p place) (name, other *C.char, ok bool) {
	var own [C.NC_MAX_NAME + 1]C.char
	var length C.size_t
	if C.nc_inq_varname(p.group, p.id, &own[0]) != C.NC_NOERR || C.nc_inq_grpname_full(p.group, &length, nil) != C.NC_NOERR {
		return nil, nil, false
	}
	group := make([]C.char, length+1)
	if C.nc_inq_grpname_full(p.group, &length, &group[0]) != C.NC_NOERR {
		return nil, nil, false
	}
	path := C.GoString(&group[0]) + "/"
	return C.CString(path + C.GoString(&own[0])), C.CString(path + "_nc4_non_coord_" + C.GoString(&own[0])), true
}

// openImage opens the file for HDF5 itself, once. It is closed by Close.
func (l *Library) openImage() bool {
	if !l.tried {
		l.tried = true
		l.hdf5 = C.H5LTopen_file_image(unsafe.Pointer(unsafe.SliceData(l.image)), C.size_t(len(l.image)),
			C.H5LT_FILE_IMAGE_DONT_COPY|C.H5LT_FILE_IMAGE_DONT_RELEASE)
	}
	return l.hdf5 >= 0
}

// read fills dst with rows first to first+rows, and reports whether it could.
func (s *stored) read(first, rows int, dst []byte) bool {
	rank, width := int(s.layout.rank), int(s.layout.width)
	wanted, all := box{from: make([]int, rank), to: make([]int, rank)}, 1
	bytes := width
	for i := range rank {
		wanted.to[i] = int(s.layout.dims[i])
		if i == 0 {
			wanted.from[0], wanted.to[0] = first, first+rows
		}
		side := int(s.layout.chunk[i])
		if side < 1 || bytes > maxChunkBytes/side {
			return false
		}
		bytes *= side
		all *= (wanted.to[i]-1)/side - wanted.from[i]/side + 1
	}
	var here []C.piece
	for _, p := range s.pieces {
		if s.place(p).meets(wanted) {
			here = append(here, p)
		}
	}
	if len(here) != all { // one that was never written has fill values
		return false
	}
	return s.unpack(here, wanted, bytes, dst)
}

// maxChunkBytes bounds a chunk, as HDF5 does.
const maxChunkBytes = 1<<32 - 1

// unpack unpacks pieces of so many bytes each on all cores.
func (s *stored) unpack(pieces []C.piece, wanted box, bytes int, dst []byte) bool {
	var next atomic.Int64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(pieces)) {
		wait.Go(func() {
			out, scratch := C.malloc(C.size_t(bytes)), C.malloc(C.size_t(bytes))
			defer C.free(out)
			defer C.free(scratch)
			for i := int(next.Add(1)) - 1; i < len(pieces) && !failed.Load(); i = int(next.Add(1)) - 1 {
				if out == nil || scratch == nil || !s.unpackOne(pieces[i], wanted, bytes, out, scratch, dst) {
					failed.Store(true)
				}
			}
		})
	}
	wait.Wait()
	return !failed.Load()
}

// unpackOne unpacks a piece to out, or to its place in dst where it is whole there.
func (s *stored) unpackOne(p C.piece, wanted box, bytes int, out, scratch unsafe.Pointer, dst []byte) bool {
	if p.size == 0 || p.at > C.ulonglong(len(s.file)) || p.size > C.ulonglong(len(s.file))-p.at {
		return false
	}
	at, width := s.place(p), int(s.layout.width)
	offset, whole := at.within(wanted)
	whole = whole && len(dst) >= bytes && offset*width <= len(dst)-bytes
	if whole {
		out = unsafe.Pointer(&dst[offset*width])
	}
	if C.lacuna_inflate(unsafe.Pointer(&s.file[p.at]), C.size_t(p.size), out, scratch, C.size_t(bytes), s.layout.width, s.layout.shuffled) == 0 {
		return false
	}
	if !whole {
		at.copyTo(wanted, unsafe.Slice((*byte)(out), bytes), dst, width)
	}
	return true
}

// place returns the box of a piece.
func (s *stored) place(p C.piece) box {
	rank := int(s.layout.rank)
	b := box{from: make([]int, rank), to: make([]int, rank)}
	for i := range rank {
		b.from[i] = int(p.offset[i])
		b.to[i] = b.from[i] + int(s.layout.chunk[i])
	}
	return b
}

// A box is a range of indices along each dimension; the last runs fastest.
type box struct{ from, to []int }

func (b box) meets(o box) bool {
	for i := range b.from {
		if b.from[i] >= o.to[i] || o.from[i] >= b.to[i] {
			return false
		}
	}
	return true
}

// within returns where b begins in o, and whether it lies there in one piece: inside of
// it, and as wide along all dimensions after the first that is longer than one.
func (b box) within(o box) (offset int, whole bool) {
	inner := true
	for i := range b.from {
		if b.from[i] < o.from[i] || b.to[i] > o.to[i] {
			return 0, false
		}
		offset = offset*(o.to[i]-o.from[i]) + b.from[i] - o.from[i]
		inner = inner && b.to[i]-b.from[i] == 1
		if !inner && i+1 < len(b.from) && (b.from[i+1] != o.from[i+1] || b.to[i+1] != o.to[i+1]) {
			return 0, false
		}
	}
	return offset, true
}

// copyTo copies what b has of o from src, which is b, to dst, which is o. Numbers are of
// width bytes.
func (b box) copyTo(o box, src, dst []byte, width int) {
	rank := len(b.from)
	at := make([]int, rank)
	for i := range at {
		at[i] = max(b.from[i], o.from[i])
	}
	last := rank - 1
	run := (min(b.to[last], o.to[last]) - at[last]) * width
	for {
		from, to := 0, 0
		for i := range at {
			from = from*(b.to[i]-b.from[i]) + at[i] - b.from[i]
			to = to*(o.to[i]-o.from[i]) + at[i] - o.from[i]
		}
		copy(dst[to*width:to*width+run], src[from*width:])
		i := last - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < min(b.to[i], o.to[i]) {
				break
			}
			at[i] = max(b.from[i], o.from[i])
		}
		if i < 0 {
			return
		}
	}
}
