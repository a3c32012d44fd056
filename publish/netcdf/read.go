package netcdf

// #cgo pkg-config: netcdf
// #include <stdlib.h>
// #include <netcdf.h>
// #include <netcdf_mem.h>
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	nc "github.com/fhs/go-netcdf/netcdf"

	"lacuna/internal/cdl"
)

// Read describes the file whose bytes are image: the inverse of Write, for sinks
// that keep products in another form. It is for files of Write only, whose hash
// the caller has checked; granules from outside are decoded behind a process
// boundary, elsewhere.
func Read(image []byte) (File, error) {
	if len(image) == 0 {
		return File{}, errors.New("read product: the file is empty")
	}
	library.Lock()
	defer library.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	quiet()
	// The library keeps the address, which must not be one of Go's.
	memory := C.CBytes(image)
	defer C.free(memory)
	name := C.CString("product.nc")
	defer C.free(unsafe.Pointer(name))
	defer closeLists(newest())
	var id C.int
	if err := check(C.nc_open_mem(name, C.NC_NOWRITE, C.size_t(len(image)), memory, &id)); err != nil {
		return File{}, fmt.Errorf("read product: %w", err)
	}
	f, err := readFile(id)
	if err := errors.Join(err, check(C.nc_close(id))); err != nil {
		return File{}, fmt.Errorf("read product: %w", err)
	}
	return f, nil
}

func readFile(id C.int) (f File, err error) {
	var dims, vars, attrs, record C.int
	if err := check(C.nc_inq(id, &dims, &vars, &attrs, &record)); err != nil {
		return File{}, err
	}
	for i := range dims {
		var name [C.NC_MAX_NAME + 1]C.char
		var length C.size_t
		if err := check(C.nc_inq_dim(id, i, &name[0], &length)); err != nil {
			return File{}, err
		}
		f.Dims = append(f.Dims, Dim{Name: C.GoString(&name[0]), Len: int(length), Unlimited: i == record})
	}
	for i := range vars {
		v, err := readVariable(id, i, f)
		if err != nil {
			return File{}, fmt.Errorf("variable %d: %w", i, err)
		}
		f.Vars = append(f.Vars, v)
	}
	f.Attrs, err = readAttrs(id, C.NC_GLOBAL, attrs)
	return f, err
}

func readVariable(id, i C.int, f File) (v Var, err error) {
	var name [C.NC_MAX_NAME + 1]C.char
	var dims [C.NC_MAX_VAR_DIMS]C.int
	var typ C.nc_type
	var rank, attrs C.int
	if err := check(C.nc_inq_var(id, i, &name[0], &typ, &rank, &dims[0], &attrs)); err != nil {
		return Var{}, err
	}
	v.Name = C.GoString(&name[0])
	if v.Type, err = typeName(typ); err != nil {
		return Var{}, err
	}
	for _, d := range dims[:rank] {
		v.Dims = append(v.Dims, f.Dims[d].Name)
	}
	if v.Attrs, err = readAttrs(id, i, attrs); err != nil {
		return Var{}, err
	}
	size := cdl.SizeOf(v.Type)
	for _, n := range f.shape(v) {
		size *= n
	}
	v.Raw = make([]byte, size)
	if size == 0 {
		return v, nil
	}
	return v, check(C.nc_get_var(id, i, unsafe.Pointer(&v.Raw[0])))
}

func readAttrs(id, variable, n C.int) (attrs []Attr, err error) {
	for i := range n {
		var name [C.NC_MAX_NAME + 1]C.char
		var typ C.nc_type
		var length C.size_t
		if err := errors.Join(check(C.nc_inq_attname(id, variable, i, &name[0])), check(C.nc_inq_att(id, variable, &name[0], &typ, &length))); err != nil {
			return nil, err
		}
		word, err := typeName(typ)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", C.GoString(&name[0]), err)
		}
		raw := make([]byte, max(1, int(length)*cdl.SizeOf(word)))
		if err := check(C.nc_get_att(id, variable, &name[0], unsafe.Pointer(&raw[0]))); err != nil {
			return nil, err
		}
		attrs = append(attrs, Attr{Name: C.GoString(&name[0]), Value: attrFromRaw(raw[:int(length)*cdl.SizeOf(word)], word)})
	}
	return attrs, nil
}

// typeName is the inverse of libraryType.
func typeName(typ C.nc_type) (string, error) {
	all := []string{"byte", "char", "short", "int", "float", "double", "ubyte", "ushort", "uint", "int64", "uint64"}
	i := slices.IndexFunc(all, func(name string) bool { return libraryType(name) == nc.Type(typ) })
	if i < 0 || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return "", fmt.Errorf("numbers of type %d are not read on this machine", int(typ))
	}
	return all[i], nil
}
