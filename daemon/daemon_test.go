package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/work"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/ingesttest"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

// The test binary is its own decoding child.
func TestMain(m *testing.M) {
	ingesttest.Decode()
	os.Exit(m.Run())
}

// bench is a daemon on temporary folders with one dataset.
type bench struct {
	cfg Config
	log *bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root := t.TempDir()
	cfg := DefaultConfig()
	cfg.StateDir, cfg.ProductsDir = filepath.Join(root, "state"), filepath.Join(root, "products")
	cfg.Web.Listen = "127.0.0.1:0"
	cfg.Publish.QuickLook = false // to draw takes as long as to fill a small sea
	set := DefaultDataset()
	set.Name = "sea"
	set.Archive.Dir, set.Archive.PollInterval, set.Archive.Settle = filepath.Join(root, "archive"), 50*time.Millisecond, 0
	cfg.Datasets = []Dataset{set}
	if err := os.MkdirAll(set.Archive.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &bench{cfg: cfg, log: &bytes.Buffer{}}
}

func (b *bench) archive() string { return b.cfg.Datasets[0].Archive.Dir }

func (b *bench) daemon(t *testing.T) *Daemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(b.cfg, Parts{Log: slog.New(slog.NewTextHandler(b.log, nil)), Child: []string{self, "decode"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (b *bench) once(t *testing.T) work.Summary {
	t.Helper()
	s, err := b.daemon(t).Once(t.Context())
	if err != nil {
		t.Fatalf("Once() = %v\n%s", err, b.log)
	}
	return s
}

// worlds are the simulated oceans of the tests with their granules. A world does
// not change, and making it anew for every granule would take longer than filling
// it.
var worlds = struct {
	sync.Mutex
	made  map[[2]int]*simulate.World
	first map[*simulate.World][]simulate.Delivery
}{made: map[[2]int]*simulate.World{}, first: map[*simulate.World][]simulate.Delivery{}}

// world is a small ocean.
func world(t *testing.T, height, width int) *simulate.World {
	t.Helper()
	worlds.Lock()
	defer worlds.Unlock()
	if w := worlds.made[[2]int{height, width}]; w != nil {
		return w
	}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: height, Width: width, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	worlds.made[[2]int{height, width}] = w
	return w
}

// firstVersions returns the first deliveries of the first n days that have
// observations, by day.
func firstVersions(w *simulate.World, n int) []simulate.Delivery {
	worlds.Lock()
	defer worlds.Unlock()
	if all := worlds.first[w]; all != nil {
		return slices.Clone(all[:n])
	}
	var all []simulate.Delivery
	for _, d := range w.Schedule() {
		if d.Revision == 1 && w.Granule(d).Seen.ObservedMask().Count() > 0 {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b simulate.Delivery) int { return a.Day - b.Day })
	worlds.first[w] = all
	return slices.Clone(all[:n])
}

func put(t *testing.T, folder string, g simulate.Granule) string {
	t.Helper()
	path := filepath.Join(folder, g.Name)
	if err := feed.Write(path, g); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *bench) products(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(b.cfg.ProductsDir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".put-") {
			return filepath.SkipDir // the running daemon has just removed it
		}
		if strings.HasSuffix(path, ".nc") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path, variable string) ingest.Granule {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ingest.NewReader(ingest.DefaultConfig(), []string{self, "decode"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := r.Read(t.Context(), path, ingest.Options{Variable: variable})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func raw(t *testing.T, g ingest.Granule, name string) []byte {
	t.Helper()
	v, ok := g.Source.Var(name)
	if !ok {
		t.Fatalf("%s has no variable %s", g.Name, name)
	}
	return v.Raw
}

func TestFlagsMeanTheSameInAnalysisAndProduct(t *testing.T) {
	if infer.SeaIce != netcdf.SeaIce || infer.NeverObserved != netcdf.NeverObserved || infer.Land != netcdf.Land || infer.Interpolated != netcdf.Interpolated ||
		infer.NotReconstructible != netcdf.NotReconstructible || infer.Rejected != netcdf.Rejected || infer.OwnError != netcdf.OwnError {
		t.Error("the flag bits of packages infer and netcdf differ")
	}
}

func TestOnceFillsEverySeaPixelAndKeepsObservations(t *testing.T) {
	b := newBench(t)
	w := world(t, 40, 60)
	var inputs []string
	for _, d := range firstVersions(w, 4) {
		inputs = append(inputs, put(t, b.archive(), w.Granule(d)))
	}
	if s := b.once(t); s.Products != len(inputs) || s.SetAside != 0 {
		t.Fatalf("Once() = %+v, want %d products\n%s", s, len(inputs), b.log)
	}
	files := b.products(t)
	if len(files) != len(inputs) {
		t.Fatalf("%d product files, want %d", len(files), len(inputs))
	}
	sea := w.Sea()
	for i, file := range files {
		in, out := read(t, inputs[i], "CHL"), read(t, file, "CHL")
		before, after := raw(t, in, "CHL"), raw(t, out, "CHL")
		for c := range sea {
			cell := slice4(after, c)
			switch {
			case in.Fields[0].Observed(c):
				if !bytes.Equal(cell, slice4(before, c)) {
					t.Fatalf("%s: observed cell %d changed from %x to %x", file, c, slice4(before, c), cell)
				}
			case sea[c] && !out.Fields[0].Observed(c):
				t.Fatalf("%s: sea cell %d is not filled", file, c)
			case !sea[c] && out.Fields[0].Observed(c):
				t.Fatalf("%s: land cell %d is filled", file, c)
			}
		}
		for _, axis := range []string{"lat", "lon", "time"} {
			if !bytes.Equal(raw(t, in, axis), raw(t, out, axis)) {
				t.Errorf("%s: the bytes of %s changed", file, axis)
			}
		}
	}
	if s := b.once(t); s != (work.Summary{}) {
		t.Errorf("a second pass did %+v, want nothing", s)
	}
}

func slice4(b []byte, cell int) []byte { return b[4*cell : 4*cell+4] }

func TestTheFutureDoesNotReachANearRealTimeProduct(t *testing.T) {
	skipInShort(t)
	w := world(t, 24, 32)
	days := firstVersions(w, 5)
	product := func(n int) []byte {
		b := newBench(t)
		b.cfg.Datasets[0].Fill.FutureDays = 0 // near real time; else later days that are there already are to be seen
		now := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
		for _, d := range days[:n] {
			if err := os.Chtimes(put(t, b.archive(), w.Granule(d)), now, now); err != nil {
				t.Fatal(err)
			}
		}
		d := b.daemon(t)
		d.parts.Now = func() time.Time { return now }
		if _, err := d.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		bytes, err := os.ReadFile(b.products(t)[2])
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if !bytes.Equal(product(3), product(5)) {
		t.Error("later granules change the product of an earlier day")
	}
}

func TestBadGranulesAreSetAsideAndTheStreamGoesOn(t *testing.T) {
	b := newBench(t)
	w := world(t, 24, 32)
	days := firstVersions(w, 4)
	good := put(t, b.archive(), w.Granule(days[0]))
	bytesOf, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{
		"19990101_zero.nc":      {},
		"19990102_truncated.nc": bytesOf[:len(bytesOf)/2],
		"19990103_page.nc":      []byte("<!DOCTYPE html><html><body>503 Service Unavailable</body></html>"),
		"19990104_back\\way.nc": bytesOf,
		"19990105_bell\a.nc":    bytesOf,
	}
	for name, content := range bad {
		if err := os.WriteFile(filepath.Join(b.archive(), name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := world(t, 30, 32) // the grid changes from one day to the next
	g := other.Granule(firstVersions(other, 4)[1])
	put(t, b.archive(), g)
	put(t, b.archive(), w.Granule(days[2]))

	s := b.once(t)
	if s.Products != 2 || s.SetAside != 4 || s.Unfinished != 0 {
		t.Errorf("Once() = %+v, want 2 products and 4 set aside\n%s", s, b.log)
	}
	book, err := ledger.Open(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := book.Recent(t.Context(), 20, ledger.Quarantined)
	if err := errors.Join(err, book.Close()); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, row := range rows {
		reasons[row.Name] = row.Reason
		if strings.Contains(row.Reason, "\n") {
			t.Errorf("reason of %q is more than one line: %q", row.Name, row.Reason)
		}
	}
	for name, want := range map[string]string{
		"19990101_zero.nc": "empty", "19990102_truncated.nc": "truncated", "19990103_page.nc": "HTML",
		"19990104_back\\way.nc": "backslash", "19990105_bell\a.nc": "U+0007", g.Name: "grid",
	} {
		if !strings.Contains(reasons[name], want) {
			t.Errorf("%q: reason %q, want one with %q", name, reasons[name], want)
		}
	}
	if s := b.once(t); s != (work.Summary{}) {
		t.Errorf("a second pass did %+v, want nothing: what is set aside is said once", s)
	}
}

func TestAReplacedGranuleBecomesTheNextRevision(t *testing.T) {
	oneByOne(t)
	b := newBench(t)
	w := world(t, 24, 32)
	var first, second simulate.Delivery
	for _, d := range w.Schedule() {
		if d.Revision == 2 {
			second = d
		}
	}
	for _, d := range w.Schedule() {
		if d.Day == second.Day && d.Revision == 1 {
			first = d
		}
	}
	put(t, b.archive(), w.Granule(first))
	b.once(t)
	path := put(t, b.archive(), w.Granule(second))
	// A replacement within the same clock tick must not go unseen.
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	b.cfg.Datasets[0].Archive.Settle = 0
	if s := b.once(t); s.Products != 1 {
		t.Fatalf("the replacement made %d products, want 1\n%s", s.Products, b.log)
	}
	files := b.products(t)
	if len(files) != 1 {
		t.Fatalf("products = %v, want one file", files)
	}
	out := read(t, files[0], "CHL")
	for _, a := range out.Source.Attrs {
		if a.Name == "lacuna_revision" {
			if got := a.Value.([]int32)[0]; got != 2 {
				t.Errorf("lacuna_revision = %d, want 2", got)
			}
			return
		}
	}
	t.Error("the product has no lacuna_revision")
}

// book returns the ledger beside a daemon that may be running.
func (b *bench) book(t *testing.T) *ledger.Ledger {
	t.Helper()
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	return book
}
