package ops

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAPageFromElsewhereCannotPassForThisServer(t *testing.T) {
	cfg := Config{Listen: "status.example.org:8087", Hosts: []string{"lacuna.example.org", "Proxy.Example.ORG"}}
	must(t, cfg.Validate())
	s, err := New(cfg, Sources{Status: exampleStatus}, slog.New(slog.DiscardHandler))
	must(t, err)
	for host, own := range map[string]bool{
		"rebound.attacker.example:8087": false, "rebound.attacker.example": false, "localhost.attacker.example": false,
		"127.0.0.1.attacker.example": false, "notlocalhost": false, "example.org": false, "lacuna.example.org.attacker.example": false,
		"localhost:8087": true, "LOCALHOST": true, "lacuna.localhost:8087": true, "127.0.0.1:8087": true, "[::1]:8087": true, "192.0.2.7": true,
		"[fe80::1%25eth0]:8087": true, "": true, "status.example.org:8087": true, "lacuna.example.org": true, "lacuna.example.org.:443": true,
		"proxy.example.org": true,
	} {
		for _, path := range []string{"/", "/status.json", "/metrics", "/healthz", "/readyz", "/events", "/products/x.nc"} {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a stream of changes ends at once
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == own {
				t.Errorf("%s of host %q = %d", path, host, w.Code)
			}
			if !own && !strings.Contains(w.Body.String(), "web.hosts") {
				t.Errorf("%s of host %q says %q, without the remedy", path, host, w.Body)
			}
		}
	}
}

func TestAHostIsANameWithoutAPort(t *testing.T) {
	for host, good := range map[string]bool{
		"lacuna.example.org": true, "lacuna": true, "lacuna.example.org:443": false, "https://lacuna.example.org": false, "": false, "*.example.org": false, "a b": false,
	} {
		cfg := DefaultConfig()
		cfg.Hosts = []string{host}
		if err := cfg.Validate(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "hosts") {
			t.Errorf("hosts [%q]: %v", host, err)
		}
	}
}
