package http

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"lacuna/fetch"
)

// FuzzIndex feeds arbitrary pages to the reader of indexes: links are names
// directly below the page, no more than are asked for.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`<html><title>Index of /chl/</title><a href="../">../</a><a href="2024/">2024/</a> 17-May-2024 12:00 - <a href="a%20b.nc">a b.nc</a> 17-May-2024 12:00 5</html>`))
	f.Add([]byte(`<a href="?C=N;O=D">Name</a><a href='//elsewhere/x.nc'>x</a><a href="/chl/y.nc#z">y</a><a href="%2e%2e/up.nc">up</a><img><a href=z.nc`))
	f.Add([]byte(`<!-- <a href="no.nc"> --><script><a href="s.nc"></script>`))
	const most = 3
	at, err := url.Parse("https://data.example.org/chl/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		rows, _ := readIndex(strings.NewReader(string(page)), at, fetch.Scope{}.Bound("max_objects", most))
		if len(rows) > most {
			t.Errorf("%d links were read, at most %d are asked for", len(rows), most)
		}
		for _, r := range rows {
			name := strings.TrimSuffix(r.name, "/")
			if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || path.Join("/chl", name) != "/chl/"+name {
				t.Errorf("the page has a link to %q", r.name)
			}
		}
	})
}

// FuzzManifestLine feeds arbitrary lines to the reader of manifests: a name that
// leads out of the root is refused here or by the watcher, and a hash is one.
func FuzzManifestLine(f *testing.F) {
	for _, line := range []string{
		"2024/a.nc", "d41d8cd98f00b204e9800998ecf8427e  a.nc", strings.Repeat("ab", 32) + " *./a.nc",
		`{"name":"a.nc","size":5,"mtime":"2024-05-17T12:00:00Z","md5":"d41d8cd98f00b204e9800998ecf8427e"}`, `{"name":"../a","sha256":"zz"}`, "{",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parseLine(line)
		if err != nil {
			return
		}
		if o.Name == "" || climbs(o.Name) && fetch.CheckName(o.Name) == nil {
			t.Errorf("%q is the object %q, which nobody refuses", line, o.Name)
		}
		if len(o.MD5) != 0 && len(o.MD5) != 32 || len(o.Digest) != 0 && len(o.Digest) != 64 {
			t.Errorf("%q has the hashes %q and %q", line, o.MD5, o.Digest)
		}
	})
}
