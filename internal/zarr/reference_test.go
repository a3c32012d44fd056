package zarr_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/internal/cdl"
	"lacuna/internal/zarr"
)

// written returns a folder of stores that the reference implementation wrote.
func written(t *testing.T) string {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.CommandContext(t.Context(), python, "-c", "import xarray, zarr").Run() != nil {
		t.Skip("LACUNA_PYTHON has no xarray and zarr; make test sets it")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/write.py", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("write.py: %v\n%s", err, out)
	}
	return dir
}

// value is element i of every array of write.py, in a type.
func value(i int, typ string) float64 {
	v := float64(7*i%251-100) / 2
	switch {
	case typ == "float" || typ == "double":
		return v
	case strings.HasPrefix(typ, "u"):
		v = max(v, 0)
	}
	return math.Trunc(v)
}

// numbers returns stored numbers as floats, by a way of its own.
func numbers(t *testing.T, typ string, raw []byte) []float64 {
	t.Helper()
	out := make([]float64, len(raw)/cdl.SizeOf(typ))
	for i := range out {
		switch size := cdl.SizeOf(typ); typ {
		case "float":
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i*size:])))
		case "double":
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[i*size:]))
		default:
			var b [8]byte
			n := copy(b[:], raw[i*size:(i+1)*size])
			if !strings.HasPrefix(typ, "u") && raw[i*size+size-1]&0x80 != 0 {
				for ; n < 8; n++ {
					b[n] = 0xff
				}
			}
			out[i] = float64(int64(binary.LittleEndian.Uint64(b[:])))
		}
	}
	return out
}

func TestStoresOfTheReferenceAreRead(t *testing.T) {
	dir := written(t)
	t.Run("in every codec, type and layout", func(t *testing.T) { checkCodecs(t, dir) })
	t.Run("with the dimensions, attributes and gaps of xarray", func(t *testing.T) { checkXarray(t, dir) })
}

func checkCodecs(t *testing.T, dir string) {
	t.Helper()
	stores, err := filepath.Glob(filepath.Join(dir, "v[23]-*"))
	if err != nil || len(stores) < 60 {
		t.Fatalf("%d stores, %v", len(stores), err)
	}
	for _, dir := range stores {
		name := filepath.Base(dir)
		g := open(t, dir, "")
		if len(g.Arrays) != 1 || g.Arrays[0].Unusable != "" {
			t.Errorf("%s: %d arrays, %+v", name, len(g.Arrays), g.Arrays)
			continue
		}
		a := g.Arrays[0]
		zero := make([]int, len(a.Shape))
		raw, err := a.Read(t.Context(), zero, a.Shape, 1<<24)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, got := range numbers(t, a.Type, raw) {
			want := value(i, a.Type)
			if strings.Contains(name, "type-b1") {
				want = min(math.Ceil(max(value(i, "double"), 0)), 1)
			}
			if got != want {
				t.Errorf("%s: element %d is %v, want %v", name, i, got, want)
				break
			}
		}
		checkBox(t, name, a)
	}
}

// checkBox reads a box across chunks and compares it with the formula.
func checkBox(t *testing.T, name string, a *zarr.Array) {
	t.Helper()
	if len(a.Shape) != 3 || a.Shape[0] == 1 || strings.Contains(name, "type-b1") {
		return
	}
	start, count := []int{1, 7, 11}, []int{3, 13, 29}
	raw, err := a.Read(t.Context(), start, count, 1<<20)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	got := numbers(t, a.Type, raw)
	for i := range got {
		z, y, x := i/(13*29), i/29%13, i%29
		if want := value(((start[0]+z)*a.Shape[1]+start[1]+y)*a.Shape[2]+start[2]+x, a.Type); got[i] != want {
			t.Errorf("%s: element %d of the box is %v, want %v", name, i, got[i], want)
			return
		}
	}
}

func open(t *testing.T, dir, group string) *zarr.Group {
	t.Helper()
	store, err := zarr.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return openStore(t, store, group)
}

func openStore(t *testing.T, store *zarr.Files, group string) *zarr.Group {
	t.Helper()
	nodes, err := store.Nodes(group)
	if err != nil {
		t.Fatal(err)
	}
	g, err := zarr.Open(t.Context(), store, group, nodes...)
	if err != nil {
		t.Fatalf("%v: %v", nodes, err)
	}
	return g
}

func checkXarray(t *testing.T, dir string) {
	t.Helper()
	groups := map[string]*zarr.Group{}
	for _, name := range []string{"xarray-v2", "xarray-v2-plain", "xarray-v3", "xarray-v3-plain"} {
		groups[name] = open(t, filepath.Join(dir, name), "")
	}
	for _, name := range []string{"xarray-v2.zip", "xarray-v3.zip"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		store, err := zarr.OpenZip(f, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		groups[name] = openStore(t, store, "")
	}
	for name, g := range groups {
		t.Run(name, func(t *testing.T) { checkSea(t.Context(), t, g) })
	}
}

func checkSea(ctx context.Context, t *testing.T, g *zarr.Group) {
	t.Helper()
	byName := map[string]*zarr.Array{}
	for _, a := range g.Arrays {
		byName[a.Name] = a
	}
	if got := zarr.Attributes(g.Attrs, ""); len(got) < 2 || got[len(got)-2].Value != "sea" || !slices.Equal(got[len(got)-1].Value.([]int32), []int32{3}) {
		t.Errorf("attributes of the group: %v", got)
	}
	chl := byName["CHL"]
	if !slices.Equal(chl.Dims, []string{"time", "lat", "lon"}) {
		t.Errorf("dimensions of CHL: %v", chl.Dims)
	}
	attrs := map[string]any{}
	for _, a := range chl.Attributes() {
		attrs[a.Name] = a.Value
	}
	if fill, ok := attrs["_FillValue"].([]float32); !ok || len(fill) != 1 || !math.IsNaN(float64(fill[0])) {
		t.Errorf("_FillValue of CHL: %v (%T)", attrs["_FillValue"], attrs["_FillValue"])
	}
	if least, ok := attrs["valid_min"].([]float32); !ok || least[0] != 0.01 {
		t.Errorf("valid_min of CHL: %v (%T), want a float like its variable", attrs["valid_min"], attrs["valid_min"])
	}
	raw, err := chl.Read(ctx, []int{1, 0, 0}, []int{1, 20, 30}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range numbers(t, "float", raw) {
		y, x := i/30, i%30
		if gap := y >= 2 && y < 5 && x >= 3 && x < 9; gap != math.IsNaN(got) || !gap && got != value(600+i, "float") {
			t.Fatalf("CHL at %d, %d of day 1 is %v, a gap is %v, want %v", y, x, got, gap, value(600+i, "float"))
		}
	}
	packed := byName["packed"]
	for _, a := range packed.Attributes() {
		attrs["packed "+a.Name] = a.Value
	}
	if fill, ok := attrs["packed _FillValue"].([]int16); !ok || fill[0] != -32768 || packed.Type != "short" {
		t.Errorf("_FillValue of packed: %v, type %s", attrs["packed _FillValue"], packed.Type)
	}
	if scale, ok := attrs["packed scale_factor"].([]float64); !ok || scale[0] != 0.5 {
		t.Errorf("scale_factor: %v", attrs["packed scale_factor"])
	}
	if label := byName["label"]; label == nil || label.Unusable == "" {
		t.Errorf("an array of strings should be told as unusable: %+v", label)
	}
}
