package ncfile

// #include <stdlib.h>
// #include <hdf5.h>
// #include <netcdf.h>
// #include <netcdf_mem.h>
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/fhs/go-netcdf/netcdf"

	"lacuna/internal/cdl"
)

// A Library is a file that netCDF-C has open. Only the child uses it: netCDF-C
// and HDF5 may crash on a hostile file.
//
// The Go binding cannot open a file in memory, nor read strings, groups or the
// stored numbers of any type as bytes, so those calls are made here; closing is
// left to the binding.
type Library struct {
	ds     netcdf.Dataset
	dimIDs []C.int // dimensions, in the order of the header
	places []place // variables, in the order of the header
	buf    unsafe.Pointer
	format string // of the image, where that is not what netCDF-C says

	image []byte          // the file
	tried bool            // to open it for HDF5
	hdf5  C.hid_t         // that, where it worked
	known map[int]*stored // how variables are stored; nil: in another way
}

// place is where netCDF-C has a variable.
type place struct {
	group, id C.int
}

// Open opens a file in memory, which must stay until Close.
func Open(m *Image) (*Library, error) {
	name := C.CString("granule") // for messages of netCDF-C; nothing is opened by it
	defer C.free(unsafe.Pointer(name))
	memory := C.NC_memio{size: C.size_t(len(m.bytes)), memory: unsafe.Pointer(unsafe.SliceData(m.bytes)), flags: C.NC_MEMIO_LOCKED}
	var id C.int
	if err := status(C.nc_open_memio(name, C.NC_NOWRITE, &memory, &id)); err != nil {
		return nil, libraryError("cannot be opened as NetCDF", err)
	}
	return &Library{ds: netcdf.Dataset(id), format: m.format, image: m.bytes, known: map[int]*stored{}}, nil
}

// Close lets go of the file.
func (l *Library) Close() error {
	C.free(l.buf)
	l.buf = nil
	if l.tried && l.hdf5 >= 0 {
		C.H5Fclose(l.hdf5)
	}
	return l.ds.Close()
}

// libraryError turns a complaint of netCDF-C into a *BadGranule.
func libraryError(what string, err error) error {
	return Bad(fmt.Sprintf("it %s (%v)", what, err), "the file is probably damaged: "+Again)
}

func status(code C.int) error {
	if code == C.NC_NOERR {
		return nil
	}
	return netcdf.Error(code)
}

// Limits of a header that is worth reading. Real files have up to a few
// hundred variables, and histories of some kilobytes.
const (
	maxVars      = 4096
	maxDims      = 1024
	maxAttrs     = 1024
	maxAttrBytes = 1 << 20
)

// Header reads everything but the numbers: of the root, and of the groups, whose
// variables are taken as if they stood there. With a group, of that one alone and
// of those above it.
func (l *Library) Header(group string) (*Header, error) {
	h, err := l.readHeader(group)
	if err != nil {
		if b := (*BadGranule)(nil); errors.As(err, &b) {
			return nil, err
		}
		return nil, libraryError("has a header that cannot be read", err)
	}
	if l.format != "" {
		h.Format = l.format
	}
	return h, nil
}

func (l *Library) readHeader(group string) (*Header, error) {
	id := C.int(l.ds)
	var format, attrs C.int
	if err := errors.Join(status(C.nc_inq_format(id, &format)), status(C.nc_inq_natts(id, &attrs))); err != nil {
		return nil, err
	}
	h := &Header{Format: formatName(format)}
	var err error
	if h.Attrs, err = l.attrs(id, C.NC_GLOBAL, attrs); err != nil {
		return nil, err
	}
	group = strings.Trim(group, "/")
	if err := l.addGroup(h, id, "", group); err != nil {
		return nil, err
	}
	found, err := l.addGroups(h, id, "", group)
	switch {
	case err != nil:
		return nil, err
	case group != "" && !found:
		return nil, Bad(fmt.Sprintf("it has no group %q", group), "set group to one of "+List(l.groups()))
	}
	return h, nil
}

// maxGroups bounds the groups of a file, in all and below one another.
const maxGroups = 64

// addGroups adds the groups below one: all, or those on the way to a wanted path
// and below it. It reports whether it came to the wanted one.
func (l *Library) addGroups(h *Header, id C.int, at, wanted string) (found bool, err error) {
	ids, err := l.below(id)
	if err != nil {
		return false, err
	}
	for _, g := range ids {
		var name [C.NC_MAX_NAME + 1]C.char
		if err := status(C.nc_inq_grpname(g, &name[0])); err != nil {
			return false, err
		}
		path := strings.TrimPrefix(at+"/"+C.GoString(&name[0]), "/")
		if wanted != "" && path != wanted && !strings.HasPrefix(wanted, path+"/") && !strings.HasPrefix(path, wanted+"/") {
			continue
		}
		if len(h.Groups) >= maxGroups {
			return false, Bad(fmt.Sprintf("it has more than %d groups", maxGroups), "set group to one of them")
		}
		h.Groups = append(h.Groups, path)
		if err := l.addGroup(h, g, path, wanted); err != nil {
			return false, err
		}
		deeper, err := l.addGroups(h, g, path, wanted)
		if err != nil {
			return false, err
		}
		found = found || path == wanted || deeper
	}
	return found, nil
}

// addGroup adds the dimensions and variables of one group. A variable of the
// wanted one takes the place of one of that name above it.
func (l *Library) addGroup(h *Header, id C.int, path, wanted string) error {
	var dims, vars C.int
	if err := errors.Join(status(C.nc_inq_ndims(id, &dims)), status(C.nc_inq_nvars(id, &vars))); err != nil {
		return err
	}
	if int(vars)+len(h.Vars) > maxVars || int(dims)+len(h.Dims) > maxDims {
		return Bad(fmt.Sprintf("it has %d variables and %d dimensions, more than a map can need", int(vars)+len(h.Vars), int(dims)+len(h.Dims)), "leave it out")
	}
	if err := l.dims(h, id, path, dims); err != nil {
		return err
	}
	for v := range vars {
		x, err := l.variable(id, v)
		if err != nil {
			return err
		}
		x.Aside = path != wanted && (wanted == "" || !strings.HasPrefix(path, wanted+"/"))
		if i := h.Find(x.Name); wanted != "" && i >= 0 && h.Vars[i].Aside && !x.Aside {
			h.Vars[i], l.places[i] = x, place{group: id, id: v}
			continue
		}
		x.Name = unique(x.Name, path, func(name string) bool { return h.Find(name) >= 0 })
		h.Vars = append(h.Vars, x)
		l.places = append(l.places, place{group: id, id: v})
	}
	return nil
}

// unique returns a name of a group that is not taken at the root: with that of
// the group before it where it is.
func unique(name, path string, taken func(string) bool) string {
	for range maxGroups {
		if !taken(name) {
			break
		}
		name = strings.ReplaceAll(path, "/", "_") + "_" + name
	}
	return name
}

func formatName(format C.int) string {
	switch format {
	case C.NC_FORMAT_CLASSIC:
		return "NetCDF-3 classic"
	case C.NC_FORMAT_64BIT_OFFSET:
		return "NetCDF-3 64-bit offset"
	case C.NC_FORMAT_64BIT_DATA:
		return "NetCDF-3 64-bit data"
	case C.NC_FORMAT_NETCDF4_CLASSIC:
		return "NetCDF-4 classic model"
	}
	return "NetCDF-4"
}

// dims adds the dimensions of a group, n at most.
func (l *Library) dims(h *Header, id C.int, path string, n C.int) error {
	ids := make([]C.int, n+1) // never empty, so that it has an address
	if err := status(C.nc_inq_dimids(id, &n, &ids[0], 0)); err != nil {
		return err
	}
	open := make([]C.int, n+1)
	var unlimited C.int
	if err := status(C.nc_inq_unlimdims(id, &unlimited, &open[0])); err != nil {
		return err
	}
	for _, d := range ids[:n] {
		var name [C.NC_MAX_NAME + 1]C.char
		var length C.size_t
		if err := status(C.nc_inq_dim(id, d, &name[0], &length)); err != nil {
			return err
		}
		own := unique(C.GoString(&name[0]), path, func(name string) bool {
			return slices.ContainsFunc(h.Dims, func(d cdl.Dim) bool { return d.Name == name })
		})
		l.dimIDs = append(l.dimIDs, d)
		h.Dims = append(h.Dims, cdl.Dim{Name: own, Len: int(length), Unlimited: slices.Contains(open[:unlimited], d)})
	}
	return nil
}

func (l *Library) variable(id, v C.int) (Var, error) {
	var name [C.NC_MAX_NAME + 1]C.char
	var typ C.nc_type
	var rank, attrs C.int
	var dims [C.NC_MAX_VAR_DIMS]C.int
	if err := status(C.nc_inq_var(id, v, &name[0], &typ, &rank, &dims[0], &attrs)); err != nil {
		return Var{}, err
	}
	out := Var{Name: C.GoString(&name[0]), Type: typeName(typ)}
	for _, d := range dims[:rank] {
		out.Dims = append(out.Dims, slices.Index(l.dimIDs, d))
	}
	var err error
	out.Attrs, err = l.attrs(id, v, attrs)
	return out, err
}

func typeName(typ C.nc_type) string {
	names := [...]string{
		C.NC_BYTE: "byte", C.NC_CHAR: "char", C.NC_SHORT: "short", C.NC_INT: "int", C.NC_FLOAT: "float", C.NC_DOUBLE: "double",
		C.NC_UBYTE: "ubyte", C.NC_USHORT: "ushort", C.NC_UINT: "uint", C.NC_INT64: "int64", C.NC_UINT64: "uint64",
	}
	if typ < 0 || int(typ) >= len(names) {
		return ""
	}
	return names[typ]
}

// attrs returns the attributes of a variable, without those of user types.
func (l *Library) attrs(id, v, n C.int) ([]Attr, error) {
	if n > maxAttrs {
		return nil, Bad(fmt.Sprintf("it has %d attributes on one variable", n), "leave it out")
	}
	out := make([]Attr, 0, n)
	for i := range n {
		var name [C.NC_MAX_NAME + 1]C.char
		var typ C.nc_type
		var length C.size_t
		if err := status(C.nc_inq_attname(id, v, i, &name[0])); err != nil {
			return nil, err
		}
		if err := status(C.nc_inq_att(id, v, &name[0], &typ, &length)); err != nil {
			return nil, err
		}
		a := Attr{Name: C.GoString(&name[0]), Type: typeName(typ)}
		var err error
		switch size := C.size_t(cdl.SizeOf(a.Type)); {
		case typ == C.NC_STRING && length <= maxAttrs:
			a.Type = "char"
			a.Data, err = l.strings(id, v, &name[0], length)
		case size == 0 || length > maxAttrBytes/size:
			continue
		case length > 0:
			a.Data = make([]byte, length*size)
			err = status(C.nc_get_att(id, v, &name[0], unsafe.Pointer(&a.Data[0])))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// strings returns a string attribute as text, several joined by spaces, as
// the words of flag_meanings are.
func (l *Library) strings(id, v C.int, name *C.char, n C.size_t) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	ptrs := (*[maxAttrs]*C.char)(C.calloc(maxAttrs, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(ptrs))
	if err := status(C.nc_get_att_string(id, v, name, &ptrs[0])); err != nil {
		return nil, err
	}
	defer C.nc_free_string(n, &ptrs[0])
	words := make([][]byte, n)
	for i := range words {
		if ptrs[i] != nil {
			words[i] = []byte(C.GoString(ptrs[i]))
		}
	}
	return bytes.Join(words, []byte(" ")), nil
}

// below returns the groups below one: none for the formats that know no groups.
func (l *Library) below(id C.int) ([]C.int, error) {
	var n C.int
	if status(C.nc_inq_grps(id, &n, nil)) != nil || n <= 0 {
		return nil, nil
	}
	if n > maxVars {
		return nil, Bad(fmt.Sprintf("it has %d groups", n), "leave it out")
	}
	ids := make([]C.int, n)
	return ids, status(C.nc_inq_grps(id, &n, &ids[0]))
}

// groups returns the names of the groups below the root.
func (l *Library) groups() []string {
	ids, err := l.below(C.int(l.ds))
	if err != nil {
		return nil
	}
	var out []string
	for _, g := range ids {
		var name [C.NC_MAX_NAME + 1]C.char
		if status(C.nc_inq_grpname(g, &name[0])) == nil {
			out = append(out, C.GoString(&name[0]))
		}
	}
	return out
}

// Read fills dst with the stored numbers of rows first to first+rows along the
// first dimension of variable v; dst must have room for exactly those.
func (l *Library) Read(v int, shape []int, first, rows int, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	s, known := l.known[v]
	if !known {
		s = l.stored(v, shape)
		l.known[v] = s
	}
	if s != nil && s.read(first, rows, dst) {
		return nil
	}
	start, count := make([]C.size_t, len(shape)+1), make([]C.size_t, len(shape)+1)
	for i, n := range shape {
		count[i] = C.size_t(n)
	}
	if len(shape) > 0 {
		start[0], count[0] = C.size_t(first), C.size_t(rows)
	}
	if err := status(C.nc_get_vara(l.places[v].group, l.places[v].id, &start[0], &count[0], unsafe.Pointer(&dst[0]))); err != nil {
		return libraryError("has numbers that cannot be read", err)
	}
	return nil
}

// Slab returns a buffer of n > 0 bytes, valid until the next call or Close. It comes
// from the allocator that warmUp has filled.
func (l *Library) Slab(n int) []byte {
	C.free(l.buf)
	l.buf = C.malloc(C.size_t(n))
	return unsafe.Slice((*byte)(l.buf), n)
}

// ChunkRows returns the number of rows along the first dimension that one chunk
// holds: reading fewer at a time would inflate the chunk Again and Again.
func (l *Library) ChunkRows(v int) int {
	var storage C.int
	var sizes [C.NC_MAX_VAR_DIMS]C.size_t
	if status(C.nc_inq_var_chunking(l.places[v].group, l.places[v].id, &storage, &sizes[0])) != nil || storage != C.NC_CHUNKED {
		return 1
	}
	return max(1, int(sizes[0]))
}
