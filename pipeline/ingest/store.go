package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lacuna/internal/zarr"
	"lacuna/pipeline/ingest/ncfile"
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
			return nil, 0, bad(fmt.Sprintf("it has more than the limit of %d MiB", r.cfg.MemoryMiB), ncfile.LargeStore)
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
