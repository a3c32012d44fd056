package zarr_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/internal/zarr"
)

// memory is a store in memory.
type memory map[string][]byte

func (m memory) Get(_ context.Context, key string, most int64) ([]byte, error) {
	b, ok := m[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return zarr.ReadAtMost(bytes.NewReader(b), key, most)
}

// sound returns a store of version 3 with one array of 4 by 6 floats in two
// chunks, the second of which is not stored.
func sound(t testing.TB, edit func(*zarr.ArrayV3)) memory {
	t.Helper()
	codecs := []zarr.NamedCodec{{Name: "bytes", Configuration: []byte(`{"endian":"little"}`)}, {Name: "zstd", Configuration: []byte(`{"level":3}`)}, {Name: "crc32c"}}
	doc := zarr.ArrayV3{
		Format: 3, NodeType: "array", Shape: []int{4, 6}, DataType: []byte(`"float32"`),
		ChunkGrid:        zarr.NamedCodec{Name: "regular", Configuration: []byte(`{"chunk_shape":[2,6]}`)},
		ChunkKeyEncoding: zarr.NamedCodec{Name: "default", Configuration: []byte(`{"separator":"/"}`)},
		FillValue:        []byte(`-1.5`), Codecs: codecs, DimensionNames: []string{"lat", "lon"},
	}
	chunk, err := zarr.EncodeChunk(codecs, make([]byte, 48))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&doc)
	}
	return memory{
		"zarr.json":   []byte(`{"zarr_format":3,"node_type":"group","attributes":{"valid":NaN,"title":"NaN in \"text\""}}`),
		"x/zarr.json": encoded(t, doc),
		"x/c/0/0":     chunk,
	}
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(store zarr.Store, shape ...int) ([]byte, error) {
	g, err := zarr.Open(context.Background(), store, "", "x")
	if err != nil {
		return nil, err
	}
	if len(g.Arrays) != 1 {
		return nil, fmt.Errorf("%d arrays", len(g.Arrays))
	}
	return g.Arrays[0].Read(context.Background(), make([]int, len(shape)), shape, 1<<20)
}

func TestAMissingChunkIsTheFillValue(t *testing.T) {
	raw, err := read(sound(t, nil), 4, 6)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range numbers(t, "float", raw) {
		if want := map[bool]float64{true: 0, false: -1.5}[i < 12]; got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

func TestHostileStoresAreRefusedWithAReason(t *testing.T) {
	damaged := sound(t, nil)
	damaged["x/c/0/0"][3] ^= 1
	short := sound(t, nil)
	var err error
	if short["x/c/0/0"], err = zarr.EncodeChunk([]zarr.NamedCodec{{Name: "zstd"}, {Name: "crc32c"}}, make([]byte, 40)); err != nil {
		t.Fatal(err)
	}
	bomb := sound(t, nil)
	if bomb["x/c/0/0"], err = zarr.EncodeChunk([]zarr.NamedCodec{{Name: "zstd"}, {Name: "crc32c"}}, make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	page := sound(t, nil)
	page["zarr.json"] = []byte("<html>log in</html>")
	climbing := sound(t, nil)
	climbing["zarr.json"] = []byte(`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":{"../../etc":{"node_type":"array"}}}}`)
	for _, tt := range []struct {
		name  string
		store memory
		want  string
	}{
		{"a damaged chunk", damaged, "checksum"},
		{"a short chunk", short, "40 bytes"},
		{"a bomb", bomb, "inflates"},
		{"a web page", page, "web page"},
		{"a node above the store", climbing, "leads out"},
		{"a shape beyond all bounds", sound(t, func(a *zarr.ArrayV3) { a.Shape = []int{1 << 41, 6} }), "which no array has"},
		{"a negative shape", sound(t, func(a *zarr.ArrayV3) { a.Shape = []int{-4, 6} }), "which no array has"},
		{"too many dimensions", sound(t, func(a *zarr.ArrayV3) { a.Shape = make([]int, 99) }), "99 dimensions"},
		{"no chunks", sound(t, func(a *zarr.ArrayV3) { a.ChunkGrid.Configuration = []byte(`{"chunk_shape":[0,6]}`) }), "chunks"},
		{"chunks of a terabyte", sound(t, func(a *zarr.ArrayV3) {
			a.ChunkGrid.Configuration = []byte(`{"chunk_shape":[1048576,1048576]}`)
		}), "more than 512 MiB"},
		{"chunks of fewer dimensions", sound(t, func(a *zarr.ArrayV3) { a.ChunkGrid.Configuration = []byte(`{"chunk_shape":[6]}`) }), "its chunks 1"},
		{"a codec of tomorrow", sound(t, func(a *zarr.ArrayV3) { a.Codecs = append(a.Codecs, zarr.NamedCodec{Name: "pcodec"}) }), "coded with pcodec"},
		{"a box larger than allowed", sound(t, func(a *zarr.ArrayV3) { a.Shape = []int{1 << 30, 6} }), "more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shape := []int{4, 6}
			if strings.Contains(tt.name, "box") {
				shape[0] = 1 << 30
			}
			if _, err := read(tt.store, shape...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestAFolderIsNotLeft(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	store, err := zarr.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, key := range []string{"link", "../secret", "/etc/passwd", "a/../../b"} {
		if b, err := store.Get(t.Context(), key, 1<<20); err == nil {
			t.Errorf("Get(%q) = %q, want an error", key, b)
		}
	}
	if _, err := store.Get(t.Context(), "nothing", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of nothing: %v, want fs.ErrNotExist", err)
	}
}

func TestAZipWithAWayOutIsRefused(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range []string{"zarr.json", "../evil"} {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := zarr.OpenZip(bytes.NewReader(buf.Bytes()), int64(buf.Len())); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("OpenZip: %v, want a refusal", err)
	}
}

// FuzzOpen opens stores whose documents and chunk are made up. Whatever they
// are, the reader must neither panic nor take memory beyond its bounds, and a
// box that it does return must have the length of the box.
func FuzzOpen(f *testing.F) {
	good := sound(f, nil)
	f.Add(good["zarr.json"], good["x/zarr.json"], good["x/c/0/0"])
	f.Add([]byte(`{"zarr_format":2}`), []byte(`{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i2","compressor":{"id":"blosc"},"fill_value":null,"order":"F","filters":null}`),
		[]byte("\x02\x01\x01\x02\x04\x00\x00\x00\x04\x00\x00\x00\x14\x00\x00\x00abcd"))
	f.Fuzz(func(t *testing.T, group, array, chunk []byte) {
		for _, store := range []memory{
			{"zarr.json": group, "x/zarr.json": array, "x/c/0/0": chunk, "x/c/0": chunk},
			{".zgroup": group, "x/.zarray": array, "x/0": chunk, "x/0.0": chunk},
		} {
			g, err := zarr.Open(t.Context(), store, "", "x")
			if err != nil {
				continue
			}
			for _, a := range g.Arrays {
				count := make([]int, len(a.Shape))
				n := 1
				for i, extent := range a.Shape {
					count[i] = min(extent, 3)
					n *= count[i]
				}
				if chunk := product(a.Chunks); chunk > 1<<20 {
					continue // sound, and too slow for a fuzzer
				}
				raw, err := a.Read(t.Context(), make([]int, len(count)), count, 1<<20)
				if err == nil && len(raw) != n*len(a.Fill) {
					t.Errorf("a box of %v has %d bytes of elements of %d", count, len(raw), len(a.Fill))
				}
				_ = a.Attributes()
			}
		}
	})
}

func product(shape []int) int {
	n := 1
	for _, extent := range shape {
		if n > 1<<30 || extent > 1<<30 {
			return 1 << 30
		}
		n *= extent
	}
	return n
}

func TestAGroupBelowTheRootIsFoundInTheMetadataOfTheRoot(t *testing.T) {
	store := sound(t, nil)
	deep := memory{
		"zarr.json": []byte(`{"zarr_format":3,"node_type":"group","attributes":{},"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{
"near":{"zarr_format":3,"node_type":"group","attributes":{}},"near/x":` + string(store["x/zarr.json"]) + `}}}`),
		"near/zarr.json": []byte(`{"zarr_format":3,"node_type":"group","attributes":{"title":"near"}}`),
		"near/x/c/0/0":   store["x/c/0/0"],
	}
	root, err := zarr.Open(t.Context(), deep, "")
	if err != nil || len(root.Arrays) != 0 || len(root.Groups) != 1 || root.Groups[0] != "near" {
		t.Fatalf("the root: %+v, %v", root, err)
	}
	g, err := zarr.Open(t.Context(), deep, "near")
	if err != nil || len(g.Arrays) != 1 || g.Arrays[0].Name != "near/x" {
		t.Fatalf("the group: %+v, %v", g, err)
	}
	raw, err := g.Arrays[0].Read(t.Context(), []int{0, 0}, []int{4, 6}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, "float", raw); got[0] != 0 || got[23] != -1.5 {
		t.Errorf("it reads as %v", got)
	}
}
