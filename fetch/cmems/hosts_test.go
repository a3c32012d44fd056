package cmems

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"lacuna/fetch"
)

func TestCatalogueCannotSendUsToAnyHost(t *testing.T) {
	var asked atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(inner.Close)
	for name, change := range map[string]func(s *service){
		"place of the files": func(s *service) {
			for host := range s.releases {
				s.releases[host] = []release{{label: "202311", href: inner.URL + "/" + bucket + "/" + prefix("202311")}}
			}
		},
		"catalogue": func(s *service) { s.elsewhere = inner.URL },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.put(t, "202311", "a.nc", []byte("a"))
			change(s)
			_, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{})
			if !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "setting hosts") || !strings.Contains(err.Error(), inner.URL) {
				t.Errorf("List() = %v, want a refusal that names the address and the setting", err)
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("the host that nobody allowed was asked %d times", asked.Load())
	}
}

func TestPlaceThatIsNotAllowedIsPassedOverWhereThereIsAnother(t *testing.T) {
	s := newService(t)
	s.put(t, "202311", "a.nc", []byte("a"))
	s.releases["waw4"] = []release{{label: "202311", href: "http://127.0.0.2:1/latest/meta-data"}}
	a := open(t, s.config(t))
	if objects, err := a.List(t.Context(), fetch.Scope{}); err != nil || len(objects) != 1 {
		t.Errorf("List() = %v, %v; want the file from the other place", objects, err)
	}
	notices, err := a.Notices(t.Context())
	if err != nil || len(notices) != 1 || !strings.Contains(notices[0].Text, "127.0.0.2") {
		t.Errorf("Notices() = %v, %v; want the place that is not asked", notices, err)
	}
}

func TestHostsAreAllowedByNameAndOnlyOverHTTPS(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Hosts = append(cfg.Hosts, "mirror.example:8443", "http://127.0.0.1:9000")
	for address, want := range map[string]bool{
		"https://s3.waw3-1.cloudferro.com/mdl-native-14/native/P": true,
		"https://s3.waw4-1.cloudferro.com:443/x":                  true,
		"https://stac.marine.copernicus.eu/metadata":              true,
		"https://S3.WAW3-1.cloudferro.com/x":                      true,
		"https://mirror.example:8443/x":                           true,
		"http://127.0.0.1:9000/x":                                 true,
		"http://s3.waw3-1.cloudferro.com/mdl-native-14/native/P":  false,
		"https://s3.waw3-1.cloudferro.com.evil.example/x":         false,
		"https://s3.waw3-1.cloudferro.com@evil.example/x":         false,
		"https://s3.waw3-1.cloudferro.com:8443/x":                 false,
		"https://mirror.example/x":                                false,
		"https://127.0.0.1:9000/x":                                false,
		"http://127.0.0.1/x":                                      false,
		"file:///etc/passwd":                                      false,
	} {
		u, err := url.Parse(address)
		must(t, err)
		if got := cfg.allows(u) == nil; got != want {
			t.Errorf("allows(%s) = %v, want %v", address, got, want)
		}
	}
}
