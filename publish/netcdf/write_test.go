package netcdf

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	nc "github.com/fhs/go-netcdf/netcdf"

	"lacuna/internal/cdl"
)

func TestTheSameProductGivesTheSameBytesLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, p Product) [32]byte {
		t.Helper()
		if err := WriteProduct(filepath.Join(dir, name), p); err != nil {
			t.Fatal(err)
		}
		return sumOf(t, filepath.Join(dir, name))
	}
	first := map[string][32]byte{}
	for name, make := range fixtures {
		first[name] = write("first.nc", make())
	}
	time.Sleep(1100 * time.Millisecond) // HDF5 can stamp objects with the time in seconds
	for name, make := range fixtures {
		if write("second, under another name.nc", make()) != first[name] {
			t.Errorf("%s: bytes differ", name)
		}
	}
	p := blackSea()
	p.Seed++
	if write("other.nc", p) == first["cmems chlorophyll"] {
		t.Error("another seed gives the same bytes: the test proves nothing")
	}
}

func TestAFailedWriteLeavesTheOldFileAndNothingElse(t *testing.T) {
	bad := mustFile(t, smap())
	bad.Vars = append(bad.Vars, Var{Name: "a/b", Type: "byte", Raw: []byte{1}}) // the library refuses the name
	invalid := mustFile(t, smap())
	invalid.Vars[0].Raw = nil
	for name, f := range map[string]File{"refused by the library": bad, "refused before": invalid} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "p.nc")
			if err := WriteProduct(path, smap()); err != nil {
				t.Fatal(err)
			}
			before := sumOf(t, path)
			if err := Write(path, f); err == nil {
				t.Fatal("Write() = nil, want an error")
			}
			if sumOf(t, path) != before {
				t.Error("the old file has changed")
			}
			if names := list(t, dir); !slices.Equal(names, []string{"p.nc"}) {
				t.Errorf("folder holds %v", names)
			}
		})
	}
}

func TestAFailedRenameLeavesNoTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.nc") // a folder that is not empty cannot be replaced
	if err := os.MkdirAll(filepath.Join(path, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteProduct(path, smap()); err == nil {
		t.Error("WriteProduct() = nil, want an error")
	}
	if names := list(t, dir); !slices.Equal(names, []string{"p.nc"}) {
		t.Errorf("folder holds %v", names)
	}
	if err := WriteProduct(filepath.Join(dir, "absent", "p.nc"), smap()); err == nil {
		t.Error("a product was written into a folder that is not there")
	}
}

func TestAReaderSeesOneWholeFileOrTheOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.nc")
	var versions []File
	known := map[[32]byte]bool{}
	for seed := range uint64(2) {
		p := blackSea()
		p.Seed = seed
		f := mustFile(t, p)
		if err := Write(path, f); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, f)
		known[sumOf(t, path)] = true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 {
			if err := Write(path, versions[i%2]); err != nil {
				t.Error(err)
			}
		}
	}()
	for reads := 0; ; reads++ {
		if !known[sumOf(t, path)] {
			t.Fatalf("read %d found neither version", reads)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestManyWritersAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string][32]byte{}
	for name, make := range fixtures {
		path := filepath.Join(dir, "alone.nc")
		if err := WriteProduct(path, make()); err != nil {
			t.Fatal(err)
		}
		want[name] = sumOf(t, path)
	}
	var wg sync.WaitGroup
	for name, make := range fixtures {
		for i := range 4 {
			wg.Go(func() {
				path := filepath.Join(dir, fmt.Sprintf("%s %d.nc", name, i))
				if err := WriteProduct(path, make()); err != nil {
					t.Error(err)
				} else if sumOf(t, path) != want[name] {
					t.Errorf("%s: bytes differ from a write alone", name)
				}
			})
		}
	}
	wg.Wait()
}

// A child process started while HDF5 has a file open inherits its descriptor
// and the lock on it. No such lock may lie on a product.
func TestAProductCanBeReadWhateverChildrenAreAlive(t *testing.T) {
	dir := t.TempDir()
	written := make(chan string)
	go func() {
		defer close(written)
		f := mustFile(t, blackSea())
		for i := range 20 {
			path := filepath.Join(dir, fmt.Sprintf("%d.nc", i))
			if err := Write(path, f); err != nil {
				t.Error(err)
			}
			written <- path
		}
	}()
	for path := range written {
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { child.Process.Kill(); child.Wait() })
		if readBack(t, path)["CHL"] == nil {
			t.Errorf("%s cannot be read", path)
		}
	}
}

func TestPathsMeanOnlyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a#mode=zarr,file`, `b\c`, "http:")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`x\y.nc`, "x#mode=bytes.nc", "[log]x.nc", "file:x.nc", "é ø.nc"} {
		if err := WriteProduct(filepath.Join(dir, name), smap()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names := list(t, dir); len(names) != 5 || !slices.Contains(names, `x\y.nc`) {
		t.Errorf("folder holds %q", names)
	}
}

func TestFieldsAreChunkedAndCoordinatesAreNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.nc")
	if err := WriteProduct(path, gulfOfMaine()); err != nil {
		t.Fatal(err)
	}
	header := string(ncdump(t, "-hs", path))
	for _, want := range []string{
		`lat:_Storage = "contiguous"`, `time:_Storage = "contiguous"`,
		`SST:_ChunkSizes = 1, 6, 5`, `SST:_Shuffle = "true"`, `SST:_DeflateLevel = `,
		`SST_uncertainty:_ChunkSizes = 1, 6, 5`, `flags:_ChunkSizes = 1, 6, 5`,
	} {
		if !strings.Contains(header, want) {
			t.Errorf("header lacks %s", want)
		}
	}
	if strings.Contains(header, "lat:_DeflateLevel") {
		t.Error("a coordinate is compressed")
	}
}

func TestChunksCutTheGridEvenly(t *testing.T) {
	for n, want := range map[int]int{5: 5, 86: 86, 336: 336, 790: 264, 1101: 276, 1000: 250, 2000: 250} {
		if got := chunkLength(n); got != want {
			t.Errorf("chunkLength(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestRecordsAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.nc")
	p := gulfOfMaine()
	p.Source.Dims[0].Unlimited = true
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	if got := readBack(t, path)["time"]; !bytes.Equal(got, p.Source.Vars[0].Raw) {
		t.Errorf("time along the record dimension is %x", got)
	}
	if !strings.Contains(string(ncdump(t, "-h", path)), "time = UNLIMITED ; // (2 currently)") {
		t.Error("the record dimension is no longer one")
	}
}

// Chunks that we cut and compress must read back unchanged, also where they
// hang over the edges, and also for names that go through netCDF-C.
func TestFieldsOfManyChunksReadBack(t *testing.T) {
	const times, height, width = 2, 397, 500 // 2 x 2 chunks a time, some over the edge
	n := times * height * width
	for _, typ := range []string{"byte", "short", "double"} {
		for _, name := range []string{"field", "lat", "température"} {
			f := File{Dims: []Dim{{Name: "time", Len: times, Unlimited: true}, {Name: "lat", Len: height, Unlimited: false}, {Name: "lon", Len: width, Unlimited: false}}}
			data := make([]byte, n*cdl.SizeOf(typ))
			for i := range data {
				data[i] = byte(i*i/7) & 0x3f // no NaN
			}
			f.Vars = []Var{{Name: name, Type: typ, Dims: []string{"time", "lat", "lon"}, Raw: data}}
			path := filepath.Join(t.TempDir(), "f.nc")
			if err := Write(path, f); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(readBack(t, path)[name], data) {
				t.Errorf("%s of type %s does not read back", name, typ)
			}
			if header := string(ncdump(t, "-hs", path)); !strings.Contains(header, "_ChunkSizes = 1, 199, 250") {
				t.Errorf("%s is stored otherwise:\n%s", name, header)
			}
		}
	}
}

// Other tools list variables in the order of definition and may edit a product;
// HDF5 files made without an index of creation allow neither.
func TestOrderOfVariablesIsKeptAndFilesCanBeEdited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.nc")
	f := mustFile(t, blackSea())
	if err := Write(path, f); err != nil {
		t.Fatal(err)
	}
	header, at := string(ncdump(t, "-h", path)), 0
	for _, v := range f.Vars {
		i := strings.Index(header, v.Type+" "+v.Name)
		if i < at {
			t.Errorf("%s is out of order", v.Name)
		}
		at = i
	}
	library.Lock()
	defer library.Unlock()
	ds, err := nc.OpenFile(path, nc.WRITE)
	if err != nil {
		t.Fatalf("open for writing: %v", err)
	}
	if err := ds.Close(); err != nil {
		t.Error(err)
	}
}

func TestFilesOfTheSameNameAsTheImageAreLeftAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("product", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteProduct("p.nc", smap()); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile("product"); err != nil || string(content) != "mine" {
		t.Errorf("the file product holds %q, %v", content, err)
	}
}

func TestAttributesOfEveryTypeAndLengthAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.nc")
	f := File{Attrs: []Attr{
		{Name: "empty", Value: ""},
		{Name: "text", Value: "é\nline"},
		{Name: "b", Value: []int8{-1}},
		{Name: "ub", Value: []uint8{255}},
		{Name: "s", Value: []int16{1, 2}},
		{Name: "us", Value: []uint16{65535}},
		{Name: "i", Value: []int32{-7}},
		{Name: "ui", Value: []uint32{7}},
		{Name: "l", Value: []int64{-8}},
		{Name: "ul", Value: []uint64{18446744073709551615}},
		{Name: "f", Value: []float32{0.5}},
		{Name: "d", Value: []float64{}},
	}}
	if err := Write(path, f); err != nil {
		t.Fatal(err)
	}
	header := string(ncdump(t, "-h", path))
	for _, want := range []string{`:empty = "" ;`, `:text = "é\nline" ;`, ":b = -1b ;", ":ub = 255UB ;", ":s = 1s, 2s ;", ":ul = 18446744073709551615ULL ;", ":f = 0.5f ;"} {
		if !strings.Contains(header, want) {
			t.Errorf("header lacks %s:\n%s", want, header)
		}
	}
}

func sumOf(t *testing.T, path string) [32]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return sha256.Sum256(content)
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
