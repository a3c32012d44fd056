package http

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func TestListingOfTenMillionEntriesIsBoundedWhileItIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		manifest string
		row      func(i int) string
		most     int
	}{
		"index page": {row: func(i int) string { return fmt.Sprintf("<a href=\"%d.nc\">%d.nc</a> 17-May-2024 12:00 5\n", i, i) }, most: 1000},
		"index page of folders": {
			row: func(i int) string { return fmt.Sprintf("<a href=\"%d/\">%d/</a>\n", i, i) }, most: 1000,
		},
		"index page of links that lead elsewhere": {row: func(i int) string { return fmt.Sprintf("<a href=\"/%d.nc\">x</a>\n", i) }, most: 1000},
		"one link and text without end": {row: func(i int) string {
			if i == 0 {
				return "<a href=\"a.nc\">"
			}
			return "<b>2024</b>"
		}, most: 1000},
		"manifest": {manifest: "MANIFEST", row: func(i int) string {
			return fmt.Sprintf(`{"name":"%d.nc","size":5,"mtime":"2024-05-17T12:00:00Z"}`+"\n", i)
		}, most: 1000},
		"manifest of lines that are none":  {manifest: "MANIFEST", row: func(int) string { return "{\n" }, most: 10_000},
		"manifest of unfinished files":     {manifest: "MANIFEST", row: func(i int) string { return fmt.Sprintf("%d.nc.tmp\n", i) }, most: 10_000},
		"manifest of the same line always": {manifest: "MANIFEST", row: func(int) string { return "a.nc\n" }, most: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodHead: // a question about a file
					w.Header().Set("Content-Length", "5")
					return
				case r.URL.Path != "/pub/" && r.URL.Path != "/pub/MANIFEST":
					fmt.Fprint(w, "<h1>Index of a folder</h1>")
					return
				}
				out := bufio.NewWriter(w)
				if tt.manifest == "" {
					fmt.Fprint(out, "<h1>Index of /pub</h1>")
				}
				for i := range archivetest.Many {
					if _, err := out.WriteString(tt.row(i)); err != nil {
						return // nobody reads on
					}
				}
				_ = out.Flush()
			}))
			defer server.Close()
			cfg := DefaultConfig()
			cfg.URL, cfg.Manifest, cfg.MaxObjects = server.URL+"/pub", tt.manifest, tt.most
			archivetest.CheckBounded(t, open(t, cfg), "max_objects", tt.most)
		})
	}
}

func TestPictureAndNameOfAFileAreOneEntry(t *testing.T) {
	page := `<h1>Index of /pub</h1><a href="a.nc"><img src="x.gif"></a> <a href="a.nc">a.nc</a> 2024-05-17 12:00
		<a href="b.nc"><img src="x.gif"></a> <a href="b.nc">b.nc</a> 2024-05-18 12:00`
	at, err := url.Parse("https://data.example/pub/")
	must(t, err)
	links, err := readIndex(strings.NewReader(page), at, fetch.Scope{}.Bound("max_objects", 2))
	if err != nil || len(links) != 2 || !strings.Contains(links[1].text, "2024-05-18") {
		t.Errorf("readIndex() = %+v, %v; want two files with their times", links, err)
	}
}

func TestHostWithNewNamesAtEveryPollIsNotRememberedForEver(t *testing.T) {
	poll := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("ETag", strings.Repeat("t", 16<<10))
			w.Header().Set("Content-Length", "5")
			return
		}
		poll++
		fmt.Fprint(w, "<h1>Index of /pub</h1>")
		for i := range 10 {
			fmt.Fprintf(w, "<a href=\"%d-%d.nc\">x</a> 17-May-2024 12:00", poll, i)
		}
	}))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.URL, cfg.MaxObjects = server.URL+"/pub", 10
	a := open(t, cfg)
	for range 20 {
		objects, err := a.List(t.Context(), fetch.Scope{Prefixes: []string{""}}) // part of the archive, so that no name is known to be gone
		if err != nil || len(objects) != 10 || objects[0].ETag != "" {
			t.Fatalf("List() = %d files, %v; want ten, without tags that are none", len(objects), err)
		}
	}
	if n := len(a.known); n > 3*cfg.MaxObjects {
		t.Errorf("%d names are remembered, of %d that there may be", n, cfg.MaxObjects)
	}
}
