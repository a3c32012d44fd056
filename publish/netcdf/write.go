package netcdf

import (
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	nc "github.com/fhs/go-netcdf/netcdf"

	"lacuna/internal/durable"
)

// library guards netCDF-C and HDF5, which keep state for the whole process
// and are not safe for concurrent use; hence one lock for the process.
var library sync.Mutex

const (
	// fileMode is wider than that of a temporary file: products are for others
	// to read.
	fileMode = 0o644

	// tempPattern starts with a dot to keep temporary files out of sight.
	tempPattern = ".lacuna-*.tmp"

	// deflateLevel is the quickest. For all variables of a chlorophyll product
	// of 790 x 1101 (14.8 MB raw), level 1 took 0.18 s of processor time and
	// 31 % of the bytes, level 4 0.33 s and 27 %, level 6 0.49 s and 26 %.
	deflateLevel = zlib.BestSpeed
)

// Write writes f to path, replacing any file there. Under path there is at any
// moment the old file, the new file or none; on error nothing is left behind.
// The folder of path must exist.
func Write(path string, f File) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("describe %s: %w", path, err)
	}
	image, err := encode(filepath.Dir(path), f)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), tempPattern)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = errors.Join(fillTemp(temp, image), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp.Name()))
	}
	if err := durable.Sync(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// fillTemp writes image into temp and onto the disk.
func fillTemp(temp *os.File, image []byte) error {
	if _, err := temp.Write(image); err != nil {
		return err
	}
	if err := temp.Chmod(fileMode); err != nil {
		return err
	}
	return temp.Sync()
}

// encode returns the bytes of the file that f describes; dir is for a temporary
// file. The libraries never see the product itself: netCDF-C would read meaning
// into backslashes, '#mode=' and colons in its path, and HDF5 would keep it
// locked under a descriptor that child processes inherit, so that readers of a
// finished product were refused for as long as such a child lives.
func encode(dir string, f File) (image []byte, err error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("numbers of a big-endian machine are not supported")
	}
	var fields []field
	for _, v := range f.Vars {
		if !f.isDirect(v) {
			continue
		}
		chunks, err := compress(v, f.shape(v), f.chunks(v))
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{v.Name, f.shape(v), chunks})
	}
	// The library's own files in memory would do, but they forget the order of
	// variables and cannot be opened for writing later.
	temp, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Close(), os.Remove(temp.Name())) }()
	if err := assemble(fmt.Sprintf("/proc/self/fd/%d", temp.Fd()), f, fields); err != nil {
		return nil, err
	}
	return os.ReadFile(temp.Name())
}

// assemble makes the file at path of f, whose direct fields are given.
func assemble(path string, f File, fields []field) error {
	library.Lock()
	defer library.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	quiet()
	ds, err := nc.CreateFile(path, nc.NETCDF4|nc.CLOBBER)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := errors.Join(putFrame(ds, f), ds.Close()); err != nil {
		return err
	}
	return insert(path, fields)
}

// putFrame writes everything but the data of direct fields.
func putFrame(ds nc.Dataset, f File) error {
	if err := define(ds, f); err != nil {
		return err
	}
	for id, v := range f.Vars {
		if f.isDirect(v) {
			continue
		}
		if err := putData(ds, id, f.shape(v), v.Raw); err != nil {
			return fmt.Errorf("write variable %s: %w", v.Name, err)
		}
	}
	return nil
}

// define lays out ds. The library numbers variables in the order of their
// definition, so the index in f.Vars is the id of a variable.
func define(ds nc.Dataset, f File) error {
	dims := make(map[string]nc.Dim, len(f.Dims))
	for _, d := range f.Dims {
		length := uint64(d.Len)
		if d.Unlimited {
			length = 0 // NC_UNLIMITED
		}
		dim, err := ds.AddDim(d.Name, length)
		if err != nil {
			return fmt.Errorf("define dimension %s: %w", d.Name, err)
		}
		dims[d.Name] = dim
	}
	for id, v := range f.Vars {
		if err := defineVar(ds, id, f, dims); err != nil {
			return fmt.Errorf("define variable %s: %w", v.Name, err)
		}
	}
	if err := putAttrs(ds, global, f.Attrs); err != nil {
		return err
	}
	return ds.EndDef()
}

func defineVar(ds nc.Dataset, id int, f File, dims map[string]nc.Dim) error {
	v := f.Vars[id]
	var own []nc.Dim
	for _, name := range v.Dims {
		own = append(own, dims[name])
	}
	defined, err := ds.AddVar(v.Name, libraryType(v.Type), own)
	if err != nil {
		return err
	}
	if chunks := f.chunks(v); chunks != nil {
		if err := setChunks(ds, id, chunks); err != nil {
			return err
		}
		if f.isField(v) {
			if err := defined.SetCompression(true, true, deflateLevel); err != nil {
				return err
			}
		}
	}
	return putAttrs(ds, id, v.Attrs)
}

func putAttrs(ds nc.Dataset, id int, attrs []Attr) error {
	for _, a := range attrs {
		if err := putAttr(ds, id, a); err != nil {
			return fmt.Errorf("write attribute %s: %w", a.Name, err)
		}
	}
	return nil
}
