package netcdf

/*
#cgo pkg-config: netcdf
#include <malloc.h>
#include <stdlib.h>
#include <netcdf.h>

// One thread at a time is in the library, another one each time. glibc gives each a heap of
// its own, and what one leaves half free no other one fills: a service grew by 2 KiB a
// product.
__attribute__((constructor)) static void one_heap(void) {
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	nc "github.com/fhs/go-netcdf/netcdf"

	"lacuna/internal/cdl"
)

// This file has the calls of netCDF-C that the Go binding lacks: chunk sizes,
// attributes of any type and length, data as bytes. The caller holds the lock.

// global is the variable id under which global attributes are kept.
const global = int(C.NC_GLOBAL)

// libraryType returns the library's name of a type that cdl.SizeOf knows.
func libraryType(typ string) nc.Type {
	return map[string]nc.Type{
		"byte": nc.BYTE, "char": nc.CHAR, "short": nc.SHORT, "int": nc.INT,
		"float": nc.FLOAT, "double": nc.DOUBLE, "ubyte": nc.UBYTE, "ushort": nc.USHORT,
		"uint": nc.UINT, "int64": nc.INT64, "uint64": nc.UINT64,
	}[typ]
}

// putAttr sets an attribute of variable id.
func putAttr(ds nc.Dataset, id int, a Attr) error {
	typ := cdl.TypeOf(a.Value)
	raw, err := rawAttr(a.Value)
	if err != nil {
		return err
	}
	name := C.CString(a.Name)
	defer C.free(unsafe.Pointer(name))
	return check(C.nc_put_att(C.int(ds), C.int(id), name, C.nc_type(libraryType(typ)),
		C.size_t(len(raw)/cdl.SizeOf(typ)), unsafe.Pointer(unsafe.SliceData(raw))))
}

// rawAttr returns the bytes of an attribute value, as the library wants them.
func rawAttr(value any) ([]byte, error) {
	if text, ok := value.(string); ok {
		return []byte(text), nil
	}
	raw, err := binary.Append(nil, binary.NativeEndian, value)
	if err != nil {
		return nil, fmt.Errorf("value of type %T: %w", value, err)
	}
	return raw, nil
}

// setChunks stores variable id in chunks of the given lengths.
func setChunks(ds nc.Dataset, id int, lengths []int) error {
	c := make([]C.size_t, len(lengths))
	for i, n := range lengths {
		c[i] = C.size_t(n)
	}
	return check(C.nc_def_var_chunking(C.int(ds), C.int(id), C.NC_CHUNKED, unsafe.SliceData(c)))
}

// putData writes all data of variable id. It names the shape because the
// library would write no records of a variable that has none yet.
func putData(ds nc.Dataset, id int, shape []int, raw []byte) error {
	start := make([]C.size_t, len(shape)+1) // one more, so that a scalar has an address too
	count := make([]C.size_t, len(shape)+1)
	for i, n := range shape {
		count[i] = C.size_t(n)
	}
	return check(C.nc_put_vara(C.int(ds), C.int(id), &start[0], &count[0], unsafe.Pointer(unsafe.SliceData(raw))))
}

func check(status C.int) error {
	if status == C.NC_NOERR {
		return nil
	}
	return nc.Error(status)
}
