// Package zarrtest compares a Zarr store with the files of products, for tests of
// whole services. It does not know how the store came about.
package zarrtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"lacuna/internal/zarr"
	"lacuna/publish/netcdf"
)

// Holds returns nil where a slot of the store in a folder has every map of the file
// of a product, byte for byte. It looks at the last slots first.
func Holds(ctx context.Context, store, product string) (err error) {
	content, err := os.ReadFile(product)
	if err != nil {
		return err
	}
	file, err := netcdf.Read(content)
	if err != nil {
		return err
	}
	folder, err := zarr.OpenFolder(store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	group, err := zarr.Open(ctx, folder, "")
	if err != nil {
		return err
	}
	arrays := map[string]*zarr.Array{}
	for _, a := range group.Arrays {
		arrays[a.Name] = a
	}
	slots := 0
	for _, v := range file.Vars {
		if a := arrays[v.Name]; len(v.Dims) == 3 && a != nil {
			slots = max(slots, a.Shape[0])
		}
	}
	for slot := slots - 1; slot >= 0; slot-- {
		if same, err := sameMaps(ctx, file, arrays, slot); err != nil || same {
			return err
		}
	}
	return fmt.Errorf("none of %d slots holds its maps", slots)
}

// sameMaps reports whether a slot holds every map of a file.
func sameMaps(ctx context.Context, file netcdf.File, arrays map[string]*zarr.Array, slot int) (bool, error) {
	compared := 0
	for _, v := range file.Vars {
		a := arrays[v.Name]
		if len(v.Dims) != 3 || a == nil {
			continue
		}
		raw, err := a.Read(ctx, []int{slot, 0, 0}, []int{1, a.Shape[1], a.Shape[2]}, 1<<24)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(raw, v.Raw) {
			return false, nil
		}
		compared++
	}
	return compared > 0, nil
}
