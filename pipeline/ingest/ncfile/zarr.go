package ncfile

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"lacuna/internal/cdf"
	"lacuna/internal/zarr"
)

// LargeStore is the remedy for a store that does not fit into memory as a whole.
const LargeStore = "name it as an archive of type zarr, of which one map at a time is read, or raise memory_mib"

// zipMagic begins a ZIP file.
const zipMagic = "PK\x03\x04"

// Packed reports whether the file is a ZIP file, which may hold a Zarr store.
func (m *Image) Packed() bool { return bytes.HasPrefix(m.bytes, []byte(zipMagic)) }

// Unpack returns a group of the Zarr store in a ZIP file as a NetCDF file in memory,
// made in memoryBytes.
func (m *Image) Unpack(group string, memoryBytes int64) (*Image, error) {
	files, err := zarr.OpenZip(bytes.NewReader(m.bytes), int64(len(m.bytes)))
	if err != nil {
		return nil, Bad("it is a ZIP file that cannot be read as a Zarr store: "+err.Error(), Again)
	}
	groups, err := openGroups(files, strings.Trim(group, "/"))
	if err != nil {
		return nil, Bad("it is a Zarr store that cannot be read: "+err.Error(), Again)
	}
	last := groups[len(groups)-1]
	if len(last.Arrays) == 0 {
		return nil, Bad("it is a Zarr store without arrays at "+fmt.Sprintf("%q", group), "set group to one of "+List(last.Groups))
	}
	const copies = 4 // of the numbers in the memory of the child: as read, as a file, as an image, and room
	file, err := zarr.File(context.Background(), groups, memoryBytes/copies)
	if err != nil {
		return nil, Bad("it is a Zarr store that cannot be read: "+err.Error(), "if it is large, "+LargeStore+"; else "+Again)
	}
	content, err := cdf.Encode(file)
	if err != nil {
		return nil, Bad("it is a Zarr store that has no form in NetCDF: "+err.Error(), Again)
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
func copyBytes(content []byte) (*Image, error) {
	b, err := unix.Mmap(-1, 0, len(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("room for the store: %w", err)
	}
	copy(b, content)
	return &Image{bytes: b}, nil
}
