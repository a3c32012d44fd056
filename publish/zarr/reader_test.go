package zarr

import (
	"bytes"
	"path/filepath"
	"testing"

	"lacuna/internal/zarr"
	"lacuna/publish"
)

// A store that Lacuna writes is one that Lacuna reads: products of one service can
// be the archive of another. 300 by 310 cells do not fill the chunks of a shard.
func TestTheReaderOfArchivesFindsWhatIsInTheFiles(t *testing.T) {
	t.Parallel()
	dir, wide := t.TempDir(), sea{300, 310}
	all := []publish.Product{wide.product(t, 0, 1), wide.product(t, 1, 1), wide.product(t, 3, 1)}
	publishAll(t, InFolder(dir), all...)
	store, err := zarr.OpenFolder(filepath.Join(dir, "sea.zarr"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	g, err := zarr.Open(t.Context(), store, "")
	if err != nil {
		t.Fatal(err)
	}
	arrays := map[string]*zarr.Array{}
	for _, a := range g.Arrays {
		arrays[a.Name] = a
	}
	for slot, p := range map[int]publish.Product{0: all[0], 1: all[1], 3: all[2]} {
		compared := 0
		for _, v := range fileOf(t, p).Vars {
			a := arrays[v.Name]
			if len(v.Dims) != 3 || a == nil {
				continue
			}
			raw, err := a.Read(t.Context(), []int{slot, 0, 0}, []int{1, wide.rows, wide.cols}, 1<<24)
			if err != nil || a.Type != v.Type || !bytes.Equal(raw, v.Raw) {
				t.Errorf("%s of slot %d is not that of its product: type %s, %d bytes, %v; %s", v.Name, slot, a.Type, len(raw), err, a.Unusable)
			}
			compared++
		}
		if compared == 0 {
			t.Errorf("slot %d has no map of its product", slot)
		}
	}
}
