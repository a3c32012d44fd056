package zarr

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
	"lacuna/internal/bbox"
	"lacuna/internal/zarr"
)

// basin is a store of version 3 with a series of maps, whose value at row y and
// column x is that of its day plus y + x/100. It is written as producers write:
// documents and chunks as objects of their own.
type basin struct {
	t        *testing.T
	lat, lon []float64
	put      func(key string, content []byte)

	mu   sync.Mutex // guards days
	days map[time.Time]float32
}

func codecs() []zarr.NamedCodec {
	return []zarr.NamedCodec{{Name: "bytes", Configuration: json.RawMessage(`{"endian":"little"}`)}, {Name: "crc32c"}}
}

func (b *basin) document(key string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	b.put(key, text)
}

// array writes the document and the chunks of an array; value gives the element
// at a place.
func (b *basin) array(name string, shape, chunks []int, dims []string, attrs map[string]any, value func(at []int) any) any {
	sample, err := binary.Append(nil, binary.LittleEndian, value(make([]int, len(shape))))
	if err != nil {
		b.t.Fatal(err)
	}
	raw := map[string]json.RawMessage{}
	for k, v := range attrs {
		raw[k], _ = json.Marshal(v)
	}
	grid, _ := json.Marshal(map[string]any{"chunk_shape": chunks})
	doc := zarr.ArrayV3{
		Format: 3, NodeType: "array", Shape: shape, DataType: json.RawMessage(map[int]string{4: `"float32"`, 8: `"float64"`}[len(sample)]),
		ChunkGrid: zarr.NamedCodec{Name: "regular", Configuration: grid}, ChunkKeyEncoding: zarr.NamedCodec{Name: "default"},
		FillValue: json.RawMessage(`0`), Codecs: codecs(), Attributes: raw, DimensionNames: dims,
	}
	b.document(name+"/zarr.json", doc)
	count := make([]int, len(shape))
	for i := range shape {
		count[i] = (shape[i] + chunks[i] - 1) / chunks[i]
	}
	each(count, func(chunk []int) {
		var numbers []byte
		each(chunks, func(within []int) {
			at := make([]int, len(shape))
			inside := true
			for i := range at {
				at[i] = chunk[i]*chunks[i] + within[i]
				inside = inside && at[i] < shape[i]
			}
			if !inside {
				at = make([]int, len(shape)) // padding may be anything
			}
			numbers, _ = binary.Append(numbers, binary.LittleEndian, value(at))
		})
		stored, err := zarr.EncodeChunk(codecs(), numbers)
		if err != nil {
			b.t.Fatal(err)
		}
		key := name + "/c"
		for _, n := range chunk {
			key += fmt.Sprintf("/%d", n)
		}
		b.put(key, stored)
	})
	return doc
}

// each calls f with every place of a box, in row-major order.
func each(shape []int, f func(at []int)) {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	for i := range n {
		at, rest := make([]int, len(shape)), i
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], rest = rest%shape[d], rest/shape[d]
		}
		f(at)
	}
}

// write writes the whole store.
func (b *basin) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	times := slices.SortedFunc(maps.Keys(b.days), time.Time.Compare)
	epoch := time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)
	documents := map[string]any{
		"time": b.array("time", []int{len(times)}, []int{16}, []string{"time"}, map[string]any{"units": "hours since 1981-01-01", "standard_name": "time"},
			func(at []int) any { return times[at[0]].Sub(epoch).Hours() }),
		"latitude": b.array("latitude", []int{len(b.lat)}, []int{4}, []string{"latitude"}, map[string]any{"units": "degrees_north"}, func(at []int) any { return b.lat[at[0]] }),
		"longitude": b.array("longitude", []int{len(b.lon)}, []int{len(b.lon)}, []string{"longitude"}, map[string]any{"units": "degrees_east", "valid_max": 9, "axis": "X"},
			func(at []int) any { return b.lon[at[0]] }),
		"CHL": b.array("CHL", []int{len(times), len(b.lat), len(b.lon)}, []int{1, 4, 5}, []string{"time", "latitude", "longitude"},
			map[string]any{"units": "mg m-3", "standard_name": "mass_concentration_of_chlorophyll_a_in_sea_water"},
			func(at []int) any { return b.days[times[at[0]]] + float32(at[1]) + float32(at[2])/100 }),
	}
	raw := map[string]json.RawMessage{}
	for name, doc := range documents {
		raw[name], _ = json.Marshal(doc)
	}
	b.document("zarr.json", zarr.GroupV3{
		Format: 3, NodeType: "group", Attributes: map[string]json.RawMessage{"title": json.RawMessage(`"basin"`), "history": json.RawMessage(`"yesterday"`)},
		Consolidated: &zarr.ConsolidatedV3{Kind: "inline", Metadata: raw},
	})
}

func (b *basin) set(at time.Time, value float32) {
	b.mu.Lock()
	b.days[at] = value
	b.mu.Unlock()
	b.write()
}

func newBasin(t *testing.T, put func(key string, content []byte)) *basin {
	written := map[string]string{} // only what is new is written
	b := &basin{t: t, days: map[time.Time]float32{archivetest.SeriesStart(): 0}, put: func(key string, content []byte) {
		if written[key] != string(content) {
			written[key] = string(content)
			put(key, content)
		}
	}}
	for y := range 9 {
		b.lat = append(b.lat, 40+float64(y)/2)
	}
	for x := range 12 {
		b.lon = append(b.lon, 27+float64(x)/2)
	}
	b.write()
	return b
}

func inFolder(t *testing.T, dir string) func(string, []byte) {
	return func(key string, content []byte) {
		file := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+"~", content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
}

// value returns what the map at the end of a file has in all cells, beside its
// pattern.
func value(content []byte) (float32, error) {
	numbers := content[len(content)-4*9*12:]
	at := func(i int) float32 { return math.Float32frombits(binary.BigEndian.Uint32(numbers[4*i:])) }
	for i := range 9 * 12 {
		if want := at(0) + float32(i/12) + float32(i%12)/100; math.Abs(float64(at(i)-want)) > 1e-4 {
			return 0, fmt.Errorf("cell %d has %v, want %v", i, at(i), want)
		}
	}
	return at(0), nil
}

func open(t *testing.T, cfg Config) fetch.Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestZarrConforms(t *testing.T) {
	// Each way to a store, with the function that takes it away and the one that
	// writes an object of it.
	ways := map[string]func(t *testing.T) (cfg Config, put func(string, []byte), sever func()){
		"folder": func(t *testing.T) (Config, func(string, []byte), func()) {
			dir := filepath.Join(t.TempDir(), "basin.zarr")
			cfg := DefaultConfig()
			cfg.Store = dir
			return cfg, inFolder(t, dir), func() { _ = os.Rename(dir, dir+".gone") }
		},
		"web": func(t *testing.T) (Config, func(string, []byte), func()) {
			dir := filepath.Join(t.TempDir(), "basin.zarr")
			server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(dir))))
			t.Cleanup(server.Close)
			cfg := DefaultConfig()
			cfg.Store = server.URL + "/basin.zarr/"
			return cfg, inFolder(t, dir), func() { _ = os.Rename(dir, dir+".gone") }
		},
		"s3": func(t *testing.T) (Config, func(string, []byte), func()) {
			backend := s3mem.New()
			if err := backend.CreateBucket("arco"); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
			t.Cleanup(server.Close)
			cfg := DefaultConfig()
			cfg.S3.Endpoint, cfg.S3.Bucket, cfg.S3.Prefix = server.URL, "arco", "seas/basin.zarr"
			put := func(key string, content []byte) {
				if _, err := backend.PutObject("arco", "seas/basin.zarr/"+key, nil, bytes.NewReader(content), int64(len(content)), nil); err != nil {
					t.Fatal(err)
				}
			}
			return cfg, put, server.Close
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			archivetest.RunSeries(t, func(t *testing.T) archivetest.SeriesFixture {
				cfg, put, sever := way(t)
				cfg.Variables = []string{"CHL"}
				b := newBasin(t, put)
				return archivetest.SeriesFixture{
					Archive: open(t, cfg),
					Put:     b.set,
					Remove: func(at time.Time) {
						b.mu.Lock()
						delete(b.days, at)
						b.mu.Unlock()
						b.write()
					},
					Sever: sever,
					Value: value,
				}
			})
		})
	}
}

func TestAMapIsCutToTheBoxAndOnlyItsChunksAreRead(t *testing.T) {
	dir := t.TempDir()
	b := newBasin(t, inFolder(t, filepath.Join(dir, "basin.zarr")))
	b.set(archivetest.SeriesStart().AddDate(0, 0, 1), 100)
	var asked []string
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, strings.TrimPrefix(r.URL.Path, "/basin.zarr/"))
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.Store, cfg.Variables = server.URL+"/basin.zarr", []string{"CHL"}
	cfg.Box = bbox.Box{West: 30, South: 42, East: 32, North: 43.2}
	a := open(t, cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 2 || objects[1].Name != "2024/05/basin_20240501T120000Z.nc" {
		t.Fatalf("List() = %+v, %v", objects, err)
	}
	asked = nil
	r, err := a.Open(t.Context(), objects[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	numbers := content[len(content)-4*3*5:] // rows 4 to 6, columns 6 to 10
	for i := range 15 {
		got := math.Float32frombits(binary.BigEndian.Uint32(numbers[4*i:]))
		if want := 100 + float32(4+i/5) + float32(6+i%5)/100; math.Abs(float64(got-want)) > 1e-4 {
			t.Errorf("cell %d is %v, want %v", i, got, want)
		}
	}
	slices.Sort(asked)
	if want := []string{"CHL/c/1/1/1", "CHL/c/1/1/2", "time/c/0"}; !slices.Equal(asked, want) {
		t.Errorf("read were %q, want %q", asked, want)
	}
	if bytes.Contains(content, []byte("yesterday")) || !bytes.Contains(content, []byte("basin")) {
		t.Error("the file has the history of the store, or lacks its title")
	}
}

func TestFaultsOfAStoreAreToldInASentence(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(dir string, cfg *Config)
		want string
	}{
		{"no store", func(_ string, c *Config) { c.Store += "x" }, "no such file"},
		{"no array", func(_ string, c *Config) { c.Variables = []string{"SST"} }, "set variables to some of"},
		{"no such group", func(_ string, c *Config) { c.Group = "deep" }, "no Zarr group"},
		{"a box elsewhere", func(_ string, c *Config) { c.Box = bbox.Box{West: -20, South: 40, East: -10, North: 45} }, "no longitude lies in the bbox"},
		{"a map too large", func(_ string, c *Config) { c.MaxMiB = 1; c.Variables = slices.Repeat([]string{"CHL"}, 2000) }, "raise max_mib"},
		{"a web page", func(dir string, _ *Config) {
			_ = os.WriteFile(filepath.Join(dir, "zarr.json"), []byte("<html>"), 0o600)
		}, "web page"},
		{"a damaged axis", func(dir string, _ *Config) {
			_ = os.WriteFile(filepath.Join(dir, "time/c/0"), []byte("garbage"), 0o600)
		}, "chunk time/c/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "basin.zarr")
			newBasin(t, inFolder(t, dir))
			cfg := DefaultConfig()
			cfg.Store, cfg.Variables = dir, []string{"CHL"}
			tt.edit(dir, &cfg)
			objects, err := open(t, cfg).List(t.Context(), fetch.Scope{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(objects) != 0 {
				t.Errorf("List() = %v, %v; want an error with %q", objects, err, tt.want)
			}
		})
	}
}

func TestAForbiddenChunkIsNoGap(t *testing.T) {
	dir := t.TempDir()
	newBasin(t, inFolder(t, filepath.Join(dir, "basin.zarr")))
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "CHL/c/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.Store, cfg.Variables = server.URL+"/basin.zarr", []string{"CHL"}
	a := open(t, cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 {
		t.Fatalf("List() = %v, %v", objects, err)
	}
	if _, err := a.Open(t.Context(), objects[0], 0); err == nil || errors.Is(err, fetch.ErrChanged) || !strings.Contains(err.Error(), "give s3 with keys") {
		t.Errorf("Open() = %v, want that the chunk is forbidden", err)
	}
}

func TestZarrConfigFaultsNameTheKey(t *testing.T) {
	good := DefaultConfig()
	good.Store, good.Variables = "https://arco.example.org/x.zarr", []string{"CHL"}
	archivetest.CheckConfigs(t, good, "hunter2", "zarr", func(c Config) error { _, err := New(c, fetch.Politeness{}); return err },
		[]archivetest.ConfigCase[Config]{
			{Name: "no store", Edit: func(c *Config) { c.Store = "" }, Key: "store"},
			{Name: "store and bucket", Edit: func(c *Config) { c.S3.Bucket = "b" }, Key: "store"},
			{Name: "a password in the address", Edit: func(c *Config) { c.Store = "https://u:hunter2@x.example" }, Key: "store"},
			{Name: "no variables", Edit: func(c *Config) { c.Variables = nil }, Key: "variables"},
			{Name: "a path as variable", Edit: func(c *Config) { c.Variables = []string{"../x"} }, Key: "variables"},
			{Name: "a way out as group", Edit: func(c *Config) { c.Group = "../x" }, Key: "group"},
			{Name: "reread", Edit: func(c *Config) { c.Reread = -1 }, Key: "reread"},
			{Name: "size", Edit: func(c *Config) { c.MaxMiB = 0 }, Key: "max_mib"},
			{Name: "objects", Edit: func(c *Config) { c.MaxObjects = 0 }, Key: "max_objects"},
		})
}

func TestTheExampleOfTheHandbookWorks(t *testing.T) {
	cfg := DefaultConfig()
	box, err := bbox.Of(archivetest.Example(t, "zarr", &cfg))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	newBasin(t, inFolder(t, filepath.Join(dir, "timeChunked.zarr")))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	cfg.Store, cfg.Box = server.URL+"/timeChunked.zarr", box // the store of our server
	a := open(t, cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 || objects[0].Name != "2024/04/timeChunked_20240430T120000Z.nc" {
		t.Fatalf("List() = %v, %v", objects, err)
	}
	r, err := a.Open(t.Context(), objects[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := value(content); err != nil || got != 0 {
		t.Errorf("the map has %v, %v", got, err)
	}
}
