package daemon

import (
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/work"
	"lacuna/fetch/erddap/erddaptest"
	"lacuna/pipeline/ingest"
)

// productFiles returns the product files of a bench.
func productFiles(t *testing.T, b *bench) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(b.cfg.ProductsDir, func(path string, _ fs.DirEntry, err error) error {
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

func TestTheTimesOfAnERDDAPBecomeProductsOfTheBox(t *testing.T) {
	b := newBench(t)
	server := erddaptest.New(t, erddaptest.Axis(40, 0.25, 29), erddaptest.Axis(26, 0.25, 69)) // the Black Sea and more
	server.Clouds = true
	for day := 1; day <= 3; day++ {
		server.Put(time.Date(2024, 5, day, 12, 0, 0, 0, time.UTC), 1)
	}
	set := &b.cfg.Datasets[0]
	set.BBox = []float64{30, 42, 35, 44}
	set.Archive.Type = "erddap"
	set.Archive.ERDDAP.URL, set.Archive.ERDDAP.Dataset, set.Archive.ERDDAP.Variables = server.URL+"/erddap", "sea", []string{"chlorophyll"}
	if got := b.once(t); got.Products != 3 || got.SetAside != 0 {
		t.Fatalf("Once() = %+v, want three products\n%s", got, b.log)
	}
	if got := b.once(t); got != (work.Summary{}) {
		t.Errorf("the second Once() = %+v, want nothing to do", got)
	}
	for _, asked := range server.Asked {
		if strings.HasPrefix(asked, "sea.dods?chlorophyll") && !strings.Contains(asked, "[8:1:16][16:1:36]") {
			t.Errorf("asked was %q, more than the box", asked)
		}
	}
	files := productFiles(t, b)
	if len(files) != 3 {
		t.Fatalf("the products are %q", files)
	}
	g, err := b.daemon(t).reader.Read(t.Context(), files[0], ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := g.Fields[0]
	if f.Grid.Height() != 9 || f.Grid.Width() != 21 || f.Grid.Lat[0] != 42 || f.Grid.Lon[20] != 35 {
		t.Errorf("the grid of %s is %v", files[0], f.Grid)
	}
	if gaps := slices.ContainsFunc(f.Values, func(v float32) bool { return v != v }); gaps || len(f.Values) != 9*21 {
		t.Errorf("%s has gaps, or land in the middle of the sea", files[0])
	}
}

func TestAnERDDAPThatAnswersWebPagesLosesNothing(t *testing.T) {
	b := newBench(t)
	server := erddaptest.New(t, erddaptest.Axis(42, 0.25, 9), erddaptest.Axis(30, 0.25, 21))
	server.Put(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC), 1)
	server.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte("<!DOCTYPE html><html>ERDDAP is restarting</html>"))
		return true
	}
	set := &b.cfg.Datasets[0]
	set.Archive.Type = "erddap"
	set.Archive.ERDDAP.URL, set.Archive.ERDDAP.Dataset, set.Archive.ERDDAP.Variables = server.URL+"/erddap", "sea", []string{"chlorophyll"}
	b.cfg.Manners.Retry.Attempts = 1
	fetched, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Dataset: "sea"})
	said := fmt.Sprint(err, fetched) + b.log.String()
	if !strings.Contains(said, "it answered with a web page, not with data") {
		t.Errorf("Fetch() = %+v, %v; want that it answered with a web page", fetched, err)
	}
	server.Set(func(s *erddaptest.Server) { s.Fault = nil })
	if got := b.once(t); got.Products != 1 || got.SetAside != 0 {
		t.Errorf("Once() = %+v when the server is back, want the product\n%s", got, b.log)
	}
}
