package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lacuna/internal/cdf"
	"lacuna/internal/zarr"
)

// A Zarr store is a folder or a ZIP file. The child gets one descriptor, so the
// parent packs a folder, without a look at its content, into a ZIP file in
// memory; the child decodes either and goes on with it as NetCDF.

// openGranule opens what is at a path for a child: a file, or a Zarr store in a
// folder.
func (r *Reader) openGranule(ctx context.Context, place string) (f *os.File, size int64, err error) {
	if info, err := os.Stat(place); err != nil || !info.IsDir() || !zarr.IsStore(place) {
		return openRegular(place)
	}
	fd, err := unix.MemfdCreate("zarr", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, 0, fmt.Errorf("room for the store: %w", err)
	}
	f = os.NewFile(uintptr(fd), filepath.Base(place))
	limit := int64(r.cfg.MemoryMiB) << 20
	if err := zarr.Pack(ctx, place, f, limit); err != nil {
		_ = f.Close()
		if errors.Is(err, zarr.ErrTooLarge) {
			return nil, 0, bad(fmt.Sprintf("it has more than the limit of %d MiB", r.cfg.MemoryMiB), largeStore)
		}
		return nil, 0, fmt.Errorf("read the store: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// largeStore is the remedy for a store that does not fit into memory as a whole.
const largeStore = "name it as an archive of type zarr, of which one map at a time is read, or raise memory_mib"

// zipMagic begins a ZIP file.
const zipMagic = "PK\x03\x04"

// unzarred returns the Zarr store in a ZIP file as a NetCDF file in memory.
func unzarred(m *image, req request) (*image, error) {
	files, err := zarr.OpenZip(bytes.NewReader(m.bytes), int64(len(m.bytes)))
	if err != nil {
		return nil, bad("it is a ZIP file that cannot be read as a Zarr store: "+err.Error(), again)
	}
	groups, err := openGroups(files, strings.Trim(req.Options.Group, "/"))
	if err != nil {
		return nil, bad("it is a Zarr store that cannot be read: "+err.Error(), again)
	}
	last := groups[len(groups)-1]
	if len(last.Arrays) == 0 {
		return nil, bad("it is a Zarr store without arrays at "+fmt.Sprintf("%q", req.Options.Group), "set group to one of "+list(last.Groups))
	}
	const copies = 4 // of the numbers in the memory of the child: as read, as a file, as an image, and room
	file, err := zarr.File(context.Background(), groups, req.MemoryBytes/copies)
	if err != nil {
		return nil, bad("it is a Zarr store that cannot be read: "+err.Error(), "if it is large, "+largeStore+"; else "+again)
	}
	content, err := cdf.Encode(file)
	if err != nil {
		return nil, bad("it is a Zarr store that has no form in NetCDF: "+err.Error(), again)
	}
	out, err := copyBytes(content)
	if err != nil {
		return nil, err
	}
	out.format = fmt.Sprintf("Zarr %d", last.Version)
	return out, nil
}

// openGroups opens the group at a path and those above it: coordinates may lie
// there.
func openGroups(files *zarr.Files, at string) ([]*zarr.Group, error) {
	paths := []string{""}
	if at != "" {
		for i, part := range strings.Split(at, "/") {
			paths = append(paths, path.Join(paths[i], part))
		}
	}
	var groups []*zarr.Group
	for _, at := range paths {
		nodes, err := files.Nodes(at)
		if err != nil {
			return nil, err
		}
		g, err := zarr.Open(context.Background(), files, at, nodes...)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// copyBytes returns an image with a copy of bytes.
func copyBytes(content []byte) (*image, error) {
	b, err := unix.Mmap(-1, 0, len(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("room for the store: %w", err)
	}
	copy(b, content)
	return &image{bytes: b}, nil
}
