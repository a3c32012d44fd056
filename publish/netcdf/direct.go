package netcdf

// #cgo pkg-config: hdf5
// #include <hdf5.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// quiet keeps HDF5 from printing its stack of errors: they are returned. The
// setting is per thread, and the caller is bound to its thread.
func quiet() { C.H5Eset_auto2(C.H5E_DEFAULT, nil, nil) }

// newest returns a number that HDF5 has given to a property list: it counts them.
func newest() C.hid_t {
	list := C.H5Pcreate(C.H5P_CLS_DATASET_XFER_ID_g)
	C.H5Pclose(list)
	return list
}

// closeLists closes the property lists that were made after one and are still there, and
// returns how many there were: netCDF-C 4.9.0 leaves one, of 2 KiB, of every file that it
// opens. The caller has held the lock since, and has no file open, so that they are
// nobody's.
func closeLists(after C.hid_t) (left int) {
	last := newest()
	for id := after + 1; after > 0 && id < last; id++ {
		if C.H5Iis_valid(id) > 0 {
			C.H5Pclose(id)
			left++
		}
	}
	return left
}

// field is a variable whose data goes into a file as finished chunks.
type field struct {
	name   string
	shape  []int
	chunks []chunk
}

// insert puts the chunks of fields into a file of netCDF-C in which the fields
// are defined but empty. netCDF-C cannot take compressed chunks; the HDF5
// beneath it can. The caller holds the lock.
func insert(path string, fields []field) (err error) {
	file, err := open(path)
	if err != nil {
		return err
	}
	defer func() {
		if C.H5Fclose(file) < 0 {
			err = errors.Join(err, errors.New("close file"))
		}
	}()
	for _, f := range fields {
		if err := f.insert(file); err != nil {
			return fmt.Errorf("write variable %s: %w", f.name, err)
		}
	}
	return nil
}

// open opens a file for writing without a lock: that of netCDF-C may live on
// in a child process that was started meanwhile.
func open(path string) (C.hid_t, error) {
	if C.H5open() < 0 {
		return 0, errors.New("start HDF5")
	}
	access := C.H5Pcreate(C.H5P_CLS_FILE_ACCESS_ID_g)
	defer C.H5Pclose(access)
	if C.H5Pset_file_locking(access, false, true) < 0 {
		return 0, errors.New("do without a lock")
	}
	name := append([]byte(path), 0)
	file := C.H5Fopen((*C.char)(unsafe.Pointer(&name[0])), C.H5F_ACC_RDWR, access)
	if file < 0 {
		return 0, errors.New("open file for its fields")
	}
	return file, nil
}

func (f field) insert(file C.hid_t) error {
	name := append([]byte(f.name), 0)
	set := C.H5Dopen2(file, (*C.char)(unsafe.Pointer(&name[0])), C.H5P_DEFAULT)
	if set < 0 {
		return errors.New("open data set")
	}
	defer C.H5Dclose(set)
	extent := sizes(f.shape)
	if C.H5Dset_extent(set, &extent[0]) < 0 { // the extent of a record variable is 0 until now
		return errors.New("set extent")
	}
	for _, c := range f.chunks {
		at := sizes(c.at)
		if C.H5Dwrite_chunk(set, C.H5P_DEFAULT, 0, &at[0], C.size_t(len(c.raw)), unsafe.Pointer(&c.raw[0])) < 0 {
			return fmt.Errorf("write chunk at %v", c.at)
		}
	}
	return nil
}

func sizes(n []int) []C.hsize_t {
	out := make([]C.hsize_t, len(n))
	for i, x := range n {
		out[i] = C.hsize_t(x)
	}
	return out
}
