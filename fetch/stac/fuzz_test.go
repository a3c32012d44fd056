package stac

import (
	"net/url"
	"strings"
	"testing"

	"lacuna/fetch"
)

// FuzzAnswer feeds arbitrary bytes to the reader of a search: objects have names
// that are asked for and addresses of the web, and the next page is one that may
// be asked.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"type":"FeatureCollection","features":[{"id":"a","collection":"chl","bbox":[27,40,42,47],"properties":{"datetime":"2024-05-17T00:00:00Z","updated":"2024-05-18T00:00:00Z"},"assets":{"data":{"href":"a.nc","type":"application/x-netcdf","roles":["data"],"file:size":5,"file:checksum":"1220` + strings.Repeat("ab", 32) + `"}}}],"links":[{"rel":"next","href":"https://api.example.org/search?page=2"}]}`))
	f.Add([]byte(`{"features":[{"id":"../b","bbox":[1,2,3,4,5,6],"assets":{"x":{"href":"ftp://u:p@elsewhere/b.nc"}}}],"links":[{"rel":"next","method":"POST","merge":true,"body":{"token":"n"},"href":"//elsewhere/search"}]}`))
	f.Add([]byte(`{"links":[[]],"features":[],"x":[[{}]]}`))
	const most = 3
	cfg := DefaultConfig()
	cfg.URL, cfg.Collections, cfg.MaxObjects = "https://api.example.org/stac/", []string{"chl"}, most
	a, err := New(cfg, fetch.Politeness{})
	if err != nil {
		f.Fatal(err)
	}
	at, err := url.Parse("https://api.example.org/stac/search")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		l := &listing{archive: a, bound: fetch.Scope{}.Bound("max_objects", most), found: map[string]sighting{}}
		next, err := l.features(strings.NewReader(string(answer)), at)
		if len(l.found) > most {
			t.Errorf("%d objects were read, at most %d are asked for", len(l.found), most)
		}
		for name, s := range l.found {
			if name == "" || s.object.Name != name || fetch.Unfinished(name) || s.href.Scheme != "http" && s.href.Scheme != "https" || s.href.User != nil {
				t.Errorf("the answer has %q at %v", name, s.href)
			}
		}
		if err != nil || next == nil {
			return
		}
		if q, err := l.follow(l.first(), *next); err == nil && a.allows(q.url) == nil && (!strings.EqualFold(q.url.Hostname(), at.Hostname()) || q.url.Scheme != at.Scheme) {
			t.Errorf("the next page is asked of %s", q.url.Host)
		}
	})
}
