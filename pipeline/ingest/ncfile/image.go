package ncfile

/*
#cgo pkg-config: netcdf hdf5
#cgo LDFLAGS: -lhdf5_hl
#include <stdlib.h>
#include <hdf5.h>
#include <hdf5_hl.h>

// Reasons to refuse a file, as the walk finds them.
enum {
	SELF_CONTAINED, EXTERNAL_STORAGE, EXTERNAL_LINK, FOREIGN_LINK, VIRTUAL, PLUGIN_FILTER, TOO_MANY, UNREADABLE
};

typedef struct {
	int reason;
	unsigned filter;  // number of the filter that needs a plug-in
	unsigned objects; // number of objects seen so far
	unsigned most;    // largest number of objects to visit
	char name[128];   // name of the refused object, cut to fit
} findings;

// The filters that HDF5 brings itself: deflate, shuffle, checksum, szip, n-bit
// and scale-offset have the numbers up to this one.
enum { LAST_BUILT_IN_FILTER = H5Z_FILTER_SCALEOFFSET };

static int storage(hid_t made, findings *f) {
	if (H5Pget_external_count(made) != 0) return EXTERNAL_STORAGE;
	if (H5Pget_layout(made) == H5D_VIRTUAL) return VIRTUAL;
	int n = H5Pget_nfilters(made);
	for (int i = 0; i < n; i++) {
		unsigned flags, config;
		size_t values = 0;
		H5Z_filter_t id = H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
		if (id < 0) return UNREADABLE;
		if (id > LAST_BUILT_IN_FILTER) {
			f->filter = (unsigned)id;
			return PLUGIN_FILTER;
		}
	}
	return n < 0 ? UNREADABLE : SELF_CONTAINED;
}

// look judges one link. Opening a data set reads its storage layout and none
// of its numbers.
static int look(hid_t group, const char *name, const H5L_info_t *link, findings *f) {
	if (++f->objects > f->most) return TOO_MANY;
	switch (link->type) {
	case H5L_TYPE_SOFT: return SELF_CONTAINED; // leads to another link of this file
	case H5L_TYPE_EXTERNAL: return EXTERNAL_LINK;
	case H5L_TYPE_HARD: break;
	default: return FOREIGN_LINK;
	}
	hid_t object = H5Oopen(group, name, H5P_DEFAULT);
	if (object < 0) return UNREADABLE;
	int reason = SELF_CONTAINED;
	if (H5Iget_type(object) == H5I_DATASET) {
		hid_t made = H5Dget_create_plist(object);
		reason = made < 0 ? UNREADABLE : storage(made, f);
		if (made >= 0) H5Pclose(made);
	}
	H5Oclose(object);
	return reason;
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *link, void *data) {
	findings *f = data;
	f->reason = look(group, name, link, f);
	if (f->reason == SELF_CONTAINED) return 0;
	snprintf(f->name, sizeof f->name, "%s", name);
	return 1; // one reason to refuse is enough
}

// walk visits every link and data set of a file in memory, and follows no link
// that leads out of it.
static int walk(void *bytes, size_t size, findings *f) {
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	hid_t file = H5LTopen_file_image(bytes, size, H5LT_FILE_IMAGE_DONT_COPY | H5LT_FILE_IMAGE_DONT_RELEASE);
	if (file < 0) return -1;
	herr_t end = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, f);
	if (end < 0) f->reason = UNREADABLE;
	H5Fclose(file);
	return 0;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Image is a file mapped into memory outside the Go heap. The decoders work
// on it, so no library ever opens anything, and a reference of the file to
// another one leads nowhere.
type Image struct {
	bytes  []byte
	format string // of the file, where that is not what netCDF-C says
}

// Map maps the regular file behind a descriptor. Its pages are read on
// demand and do not count towards the memory limit.
func Map(fd int, size int64) (*Image, error) {
	b, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if errors.Is(err, unix.ENODEV) { // some file systems cannot map
		b, err = copyFile(fd, size)
	}
	if err != nil {
		return nil, fmt.Errorf("map file: %w", err)
	}
	return &Image{bytes: b}, nil
}

// copyFile reads a file into anonymous memory.
func copyFile(fd int, size int64) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, errors.Join(err, unix.Munmap(b))
		}
		at += n
	}
	return b, nil
}

// Close unmaps the file.
func (m *Image) Close() error { return unix.Munmap(m.bytes) }

// maxLinks is how many links a file may have: netCDF-C follows each of them.
// Real files have up to a few hundred.
const maxLinks = 16 * maxVars

// rewrite is the remedy for a file that refers to data outside itself.
const rewrite = "ask its producer for one self-contained file, for example written by nccopy -4"

// SelfContained returns a *BadGranule for a file that refers to anything but
// itself: another file, a device, a plug-in that unpacks it. Such a file could
// make the daemon publish anything that it can read, and the sha256 would not
// cover the published values. Files that are not HDF5 are left to netCDF-C.
func (m *Image) SelfContained() error {
	f := C.findings{most: maxLinks}
	if C.walk(unsafe.Pointer(&m.bytes[0]), C.size_t(len(m.bytes)), &f) != 0 {
		return nil
	}
	name := fmt.Sprintf("%.80q", C.GoString(&f.name[0]))
	switch f.reason {
	case C.SELF_CONTAINED:
		return nil
	case C.EXTERNAL_STORAGE:
		return Bad("the numbers of "+name+" lie in another file", rewrite)
	case C.VIRTUAL:
		return Bad(name+" is a virtual data set: its numbers lie elsewhere", rewrite)
	case C.EXTERNAL_LINK:
		return Bad(name+" is a link to another file", rewrite)
	case C.FOREIGN_LINK:
		return Bad(name+" is a link of a kind that only a plug-in understands", rewrite)
	case C.PLUGIN_FILTER:
		return Bad(fmt.Sprintf("%s is packed by filter %d, which only a plug-in of HDF5 undoes", name, uint(f.filter)),
			"ask its producer for a file packed by deflate, for example by nccopy -F none and then nccopy -d 4")
	case C.TOO_MANY:
		return Bad(fmt.Sprintf("it has more than %d objects, more than a map can need", maxLinks), "leave it out")
	}
	return Bad("its object "+name+" cannot be opened", "the file is probably damaged: "+Again)
}
