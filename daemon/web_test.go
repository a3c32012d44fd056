package daemon

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMapServedIsWhatIsInTheFile(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 4)
	name := s.world.Granule(s.days[3]).Name
	query := url.Values{"dataset": {"black-sea"}, "name": {name}}.Encode()
	r, err := http.Get(s.at + "/map?" + query) // the client unpacks gzip
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("GET /map = %d, %v", r.StatusCode, err)
	}
	var head struct {
		Rows, Cols int
		Lat        []float64
		Units      string
		Log        bool
	}
	length := binary.LittleEndian.Uint32(body)
	if err := json.Unmarshal(body[4:4+length], &head); err != nil {
		t.Fatal(err)
	}
	planes, n := body[4+length:], head.Rows*head.Cols
	number := func(at, i int) float32 {
		bits := uint32(0)
		for k := range 4 {
			bits |= uint32(planes[at+k*n+i]) << (8 * k)
		}
		return math.Float32frombits(bits)
	}
	file := s.product(t, 3)
	values, sigmas, flags := read(t, file, "CHL"), read(t, file, "CHL_uncertainty"), raw(t, read(t, file, "flags"), "flags")
	if head.Units != "milligram m^-3" || !head.Log || n != len(flags) || head.Lat[0] < head.Lat[len(head.Lat)-1] {
		t.Errorf("header %+v", head)
	}
	turned := values.Fields[0].Grid.Lat[0] < values.Fields[0].Grid.Lat[1] // the map has north first
	for i := range n {
		cell := i
		if turned {
			cell = (head.Rows-1-i/head.Cols)*head.Cols + i%head.Cols
		}
		value, sigma := values.Fields[0].Values[cell], sigmas.Fields[0].Values[cell]
		if !same(number(0, i), value) || !same(number(4*n, i), sigma) || planes[8*n+i] != flags[cell] {
			t.Fatalf("cell %d is %v ± %v, flags %d, in the file %v ± %v, flags %d", i,
				number(0, i), number(4*n, i), planes[8*n+i], value, sigma, flags[cell])
		}
	}
}

func TestStoryAndFilesOfAGranuleAreOnItsPage(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 4)
	get := func(path string) (int, string) {
		r, err := http.Get(s.at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	_, page := get(s.day(3))
	file := s.product(t, 3)
	for _, want := range []string{
		filepath.Base(file), read(t, file, "CHL").SHA256, "near-real-time", "optimal interpolation", "Revision 1: ", "disk</strong> publish", `data-map="/map?`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, s.cfg.ProductsDir) {
		t.Error("the page tells where the products lie on the disk")
	}
	for _, path := range []string{
		"/granule?dataset=none&name=x", "/granule?dataset=black-sea&name=../../ledger.db", "/map?dataset=black-sea&name=..%2f..%2fledger.db",
		"/datasets/none", "/datasets/black-sea/2024-04-99",
	} {
		if code, _ := get(path); code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, code)
		}
	}
	missing := s.time(2).Format("2 January 2006") + ": no granule, filled from other days"
	aside := s.time(3).Add(24*time.Hour).Format("2 January 2006") + ": set aside"
	if _, calendar := get("/datasets/black-sea"); !strings.Contains(calendar, missing) || !strings.Contains(calendar, aside) {
		t.Errorf("the calendar lacks %q or %q", missing, aside)
	}
}
