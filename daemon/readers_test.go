package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/publish/netcdf/compliance"
)

// readers have the products of a bench read by xarray and pystac.
type readers struct {
	Days      []string `json:"days"`
	Slots     int      `json:"slots"`
	Revisions []int    `json:"revisions"`
	Items     int      `json:"items"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Filled    float64  `json:"filled"`
}

// hasReaders tells whether a Python has the packages of readers.py. It is asked once: to
// import them takes as long as to read.
func hasReaders(python string) bool {
	readersOf.Do(func() {
		readersOf.there = exec.Command(python, "-c", "import xarray, dask, zarr, pystac, jsonschema").Run() == nil
	})
	return readersOf.there
}

var readersOf struct {
	sync.Once
	there bool
}

func (b *bench) read(t *testing.T, variable string) readers {
	t.Helper()
	return readSites(t, reading{b, variable})[0]
}

// reading is a bench whose products are to be read, by a variable.
type reading struct {
	*bench
	variable string
}

// readSites has the products of benches read in one process: most of its time goes into
// imports.
func readSites(t *testing.T, sites ...reading) (found []readers) {
	t.Helper()
	python := compliance.Python(t)
	if !hasReaders(python) {
		t.Skipf("%s has no xarray, zarr and pystac: pip install -r ops/setup/requirements-test.txt into it to run this test", python)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, filepath.Join("testdata", "readers.py"))
	for _, s := range sites {
		cmd.Args = append(cmd.Args, s.cfg.ProductsDir, s.cfg.Publish.Zarr.Dir, "sea", s.variable)
	}
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readers: %v\n%s", err, &stderr)
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var r readers
		if err := lines.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		found = append(found, r)
	}
	if len(found) != len(sites) {
		t.Fatalf("%d of %d sites were read: %s", len(found), len(sites), out)
	}
	return found
}

// A service with a folder of files and a store; a day that is missing at first, and
// comes later, and a day that is delivered anew.
func TestFilesStoreAndCatalogueOfADaemonSayTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("starts readers in Python; leave -short out to run it")
	}
	b := newBench(t)
	b.plain()
	b.cfg.Publish.Zarr = &outbox.Zarr{Dir: filepath.Join(t.TempDir(), "zarr")}
	w := world(t, 24, 32)
	days := firstVersions(w, 6)
	var want []string
	for i, d := range days {
		g := w.Granule(d)
		want = append(want, g.Seen.Time.UTC().Format(time.DateOnly))
		if i != 3 {
			put(t, b.archive(), g)
		}
	}
	b.once(t)
	first := b.read(t, "CHL")
	put(t, b.archive(), w.Granule(days[3]))
	changed := put(t, b.archive(), w.Granule(days[1]))
	spoil(t, changed)
	b.once(t)
	got := b.read(t, "CHL")
	for _, r := range []readers{first, got} {
		for _, day := range want {
			if !slices.Contains(r.Days, day) {
				t.Errorf("there is no product of %s: %v\n%s", day, r.Days, b.log)
			}
		}
		if r.Items != len(r.Days) || r.Slots != len(r.Days) || r.From != r.Days[0] || r.To != r.Days[len(r.Days)-1] || r.Filled < 0.3 {
			t.Errorf("the readers found %+v", r)
		}
	}
	at := slices.Index(got.Days, want[1])
	if got.Revisions[at] < 2 || got.Revisions[at] <= first.Revisions[at] {
		t.Errorf("the day that was delivered anew has revision %d, and had %d", got.Revisions[at], first.Revisions[at])
	}
	if strings.Contains(b.log.String(), "set aside") {
		t.Errorf("a delivery was set aside:\n%s", b.log)
	}
}

// spoil gives a granule other bytes and a later date, as a new delivery has.
func spoil(t *testing.T, path string) {
	t.Helper()
	at := time.Now().Add(time.Hour)
	w, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}
