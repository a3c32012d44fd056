package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/pipeline/ingest/ncfile"

	"golang.org/x/sync/errgroup"
)

// smallHeader is the header of testdata/plankton.cdl in short.
func smallHeader() *header {
	return &header{
		Dims: []Dim{{Name: "time", Len: 1}, {Name: "lat", Len: 2}, {Name: "lon", Len: 2}},
		Vars: []headerVar{
			{Name: "time", Type: "int", Dims: []int{0}, Attrs: []rawAttr{text("units", "days since 1981-01-01")}},
			{Name: "lat", Type: "float", Dims: []int{1}, Attrs: []rawAttr{text("standard_name", "latitude"), text("bounds", "lat")}},
			{Name: "lon", Type: "float", Dims: []int{2}, Attrs: []rawAttr{text("axis", "X")}},
			{Name: "CHL", Type: "short", Dims: []int{0, 1, 2}, Attrs: []rawAttr{
				text("units", "mg m-3"),
				{Name: "_FillValue", Type: "short", Data: []byte{1, 0}},
				{Name: "scale_factor", Type: "double", Data: le(0.5)},
				text("_Unsigned", "true"), text("grid_mapping", "crs: lat lon"),
			}},
			{Name: "QC", Type: "ubyte", Dims: []int{1, 2}},
			{Name: "mask", Type: "byte", Dims: []int{1, 2}, Attrs: []rawAttr{text("flag_meanings", "land sea"), {Name: "flag_masks", Type: "byte", Data: []byte{1, 2}}}},
		},
	}
}

// planeHeader is smallHeader with coordinates that are maps, as many files have.
func planeHeader() *header {
	h := smallHeader()
	h.Vars[1].Dims, h.Vars[2].Dims = []int{1, 2}, []int{0, 1, 2}
	return h
}

// FuzzDecode feeds headers and numbers through all of the CF logic, as a
// child that netCDF-C has corrupted might send them.
func FuzzDecode(f *testing.F) {
	seed, err := json.Marshal(smallHeader())
	must(f, err)
	f.Add(seed, []byte{1, 0, 0, 0, 0x80, 0x3f}, "QC & 1 == 0", "20240326.nc")
	f.Add(bytes.ReplaceAll(seed, []byte("short"), []byte("float")), []byte{0, 0, 0x80, 0x7f}, "QC < 3", "A2018213.nc")
	plane, err := json.Marshal(planeHeader())
	must(f, err)
	f.Add(plane, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x30, 0x43, 0, 0, 0x34, 0xc3}, "", "20240326.nc")
	f.Add(bytes.ReplaceAll(seed, []byte(`"Name":"time"`), []byte(`"Name":"t2"`)), []byte{}, "", "x")
	f.Fuzz(func(t *testing.T, head, numbers []byte, rule, name string) {
		h := new(header)
		if json.Unmarshal(head, h) != nil {
			return
		}
		opt := Options{}
		if _, err := parseRule(rule); err == nil {
			opt.Quality = []string{rule}
		}
		for _, want := range []string{wantGranule, wantSea, wantPoints} {
			req := request{Want: want, Name: name, Options: opt, FileBytes: 1 << 20, MemoryBytes: 1 << 20}
			p, err := req.plan(h)
			if err != nil {
				continue
			}
			x := &extract{header: h, plan: p, raw: make(map[int][]byte)}
			for _, v := range p.reads {
				x.raw[v] = make([]byte, int(h.Bytes(v)))
				for i := range x.raw[v] {
					if len(numbers) > 0 {
						x.raw[v][i] = numbers[i%len(numbers)]
					}
				}
			}
			if want == wantPoints {
				for _, v := range x.points().Vars {
					if v.Type == "" || len(v.Dims) > 2 {
						t.Fatalf("%+v is no table", v)
					}
				}
				continue
			}
			if want == wantSea {
				if grid, err := x.grid(); err == nil {
					_, _ = x.sea(grid)
				}
				continue
			}
			g, err := x.granule(name, opt)
			if err == nil {
				checkInvariants(t, g)
			}
		}
	})
}

// checkInvariants checks the promises that hold for every granule.
func checkInvariants(t *testing.T, g Granule) {
	t.Helper()
	if len(g.Fields) == 0 || len(g.Fields) != len(g.Rejected) {
		t.Fatalf("%d fields and %d masks", len(g.Fields), len(g.Rejected))
	}
	for i, f := range g.Fields {
		if len(f.Values) != f.Grid.Len() || len(g.Rejected[i]) != f.Grid.Len() || f.Sea != nil && len(f.Sea) != f.Grid.Len() {
			t.Fatalf("field %d: lengths differ from the grid", i)
		}
		for j, v := range f.Values {
			if v-v != 0 && v == v {
				t.Fatalf("field %d: cell %d is %v", i, j, v)
			}
			if v == v && g.Rejected[i][j] {
				t.Fatalf("field %d: cell %d is rejected and has a value", i, j)
			}
		}
	}
	if _, ok := g.Source.Var(g.Source.Variable); !ok {
		t.Fatalf("source has no %s", g.Source.Variable)
	}
}

// FuzzReceive feeds any bytes to the parent's side of the pipe.
func FuzzReceive(f *testing.F) {
	head, err := json.Marshal(smallHeader())
	must(f, err)
	var whole bytes.Buffer
	must(f, writeFrame(&whole, frameHeader, head))
	for _, n := range []int{4, 8, 8, 8, 4} {
		must(f, writeFrame(&whole, frameNumbers, make([]byte, n)))
	}
	must(f, writeFrame(&whole, frameEnd, nil))
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:len(whole.Bytes())-20])
	f.Add([]byte("N\xff\xff\xff\xff\xff\xff\xff\x7f"))
	var failed bytes.Buffer
	must(f, writeFailure(&failed, bad("p", "r")))
	f.Add(failed.Bytes())
	f.Fuzz(func(t *testing.T, answer []byte) {
		x, err := receive(bytes.NewReader(answer), request{Want: wantGranule, FileBytes: 1 << 20, MemoryBytes: 1 << 20})
		if (x == nil) == (err == nil) {
			t.Fatalf("got %v and %v", x, err)
		}
	})
}

// FuzzSniff feeds any bytes to the check of a file's first bytes.
func FuzzSniff(f *testing.F) {
	f.Add(absurd())
	f.Add([]byte(hdf5Magic + "\x02\x08\x08\x00aaaaaaaabbbbbbbb\xff\x00\x00\x00\x00\x00\x00\x00dddddddd"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(_ *testing.T, file []byte) {
		_ = ncfile.Sniff(bytes.NewReader(file), int64(len(file)))
	})
}

// TestDamagedFilesNeverTakeTheParentDown flips bytes of small files and cuts
// them, and reads each through a real child. Any granule or error will do.
func TestDamagedFilesNeverTakeTheParentDown(t *testing.T) {
	mutations := 100 // per format; the seed is fixed
	if raceEnabled() {
		mutations = 20
	}
	dir := t.TempDir()
	r := reader(t, "decode", func(c *Config) { c.Timeout = 20 * time.Second })
	good, refused := 0, 0
	for _, kind := range []string{"classic", "nc4"} {
		whole, err := os.ReadFile(fixture(t, kind, "plankton"))
		must(t, err)
		rng := rand.New(rand.NewPCG(3, uint64(len(kind))))
		granules, errs := make([]Granule, mutations), make([]error, mutations)
		var g errgroup.Group
		g.SetLimit(2)
		for i := range mutations {
			path := filepath.Join(dir, fmt.Sprintf("%s_%03d.nc", kind, i))
			must(t, os.WriteFile(path, damage(rng, whole), 0o600))
			g.Go(func() error {
				granules[i], errs[i] = r.Read(t.Context(), path, Options{})
				return nil
			})
		}
		must(t, g.Wait())
		for i, err := range errs {
			if err != nil {
				refused++
				wantBad(t, err)
				continue
			}
			good++
			checkInvariants(t, granules[i])
		}
	}
	if good == 0 || refused == 0 {
		t.Errorf("%d read, %d refused: the damage must do both", good, refused)
	}
}

// damage returns a copy with one to eight bytes changed, mostly in the first
// kilobytes, where the structure is. Sizes stay, so that netCDF-C sees it.
func damage(rng *rand.Rand, whole []byte) []byte {
	out := bytes.Clone(whole)
	for range 1 + rng.IntN(8) {
		at := rng.IntN(len(out))
		if rng.IntN(3) > 0 {
			at = rng.IntN(min(len(out), 2048))
		}
		out[at] ^= byte(1 + rng.IntN(255))
	}
	return out
}
