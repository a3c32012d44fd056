package web

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/fetch"
)

// stop is a host on the way of a request. It redirects to the address of next
// and keeps the headers that it was sent.
type stop struct {
	*httptest.Server
	next func(r *http.Request) string // empty: here it ends

	mu   sync.Mutex // guards seen
	seen []http.Header
}

func newStop(t *testing.T, secure bool) *stop {
	t.Helper()
	s := &stop{next: func(*http.Request) string { return "" }}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Clone())
		s.mu.Unlock()
		if next := s.next(r); next != "" {
			http.Redirect(w, r, next, http.StatusTemporaryRedirect)
		}
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// last returns the headers of the last request; nil where there was none.
func (s *stop) last() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) == 0 {
		return nil
	}
	return s.seen[len(s.seen)-1]
}

// ask makes a request with every kind of credential, which begins at from.
func ask(t *testing.T, method, from, form string) error {
	t.Helper()
	authority := httptest.NewTLSServer(http.NotFoundHandler())
	defer authority.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw}), 0o644))
	req, err := http.NewRequestWithContext(t.Context(), method, from+"/a.nc?x-cop-user=planted", strings.NewReader(form))
	must(t, err)
	for _, name := range []string{"Authorization", "Cookie", "X-Amz-Security-Token", "X-Api-Key"} {
		req.Header.Set(name, "planted")
	}
	req.Header.Set("Range", "bytes=5-")
	client := New(Config{CAFile: file, Timeout: 5 * time.Second}, fetch.Politeness{UserAgent: "lacuna/test"})
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// holdsCredential reports whether a credential of ask is among the headers.
func holdsCredential(h http.Header) bool {
	for _, values := range h {
		if strings.Contains(strings.Join(values, " "), "planted") {
			return true
		}
	}
	return false
}

func TestNoCredentialFollowsARedirectToAnotherSchemeHostOrPort(t *testing.T) {
	for _, tt := range []struct {
		name         string
		secure, goal bool // https at the start, at the end
		rename       func(address string) string
	}{
		{name: "another port"},
		{name: "another port of https", secure: true, goal: true},
		{name: "another name of the host", rename: func(a string) string { return strings.Replace(a, "127.0.0.1", "localhost", 1) }},
		{name: "from http to https", goal: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start, end := newStop(t, tt.secure), newStop(t, tt.goal)
			target := end.URL
			if tt.rename != nil {
				end = start // the same server, by another name
				target = tt.rename(start.URL)
			}
			start.next = func(r *http.Request) string {
				if r.URL.Path == "/b.nc" {
					return ""
				}
				return target + "/b.nc"
			}
			must(t, ask(t, http.MethodGet, start.URL, ""))
			switch got := end.last(); {
			case holdsCredential(got):
				t.Errorf("the other place was sent %v", got)
			case got.Get("Range") != "bytes=5-" || got.Get("User-Agent") != "lacuna/test":
				t.Errorf("the other place was sent %v, want the range that was asked for", got)
			}
		})
	}
}

func TestCredentialsStayOnTheirHostAndAreNotLedBackToIt(t *testing.T) {
	home, foreign := newStop(t, false), newStop(t, false)
	home.next = func(r *http.Request) string {
		if r.URL.Path == "/a.nc" {
			return "/b.nc"
		}
		return ""
	}
	must(t, ask(t, http.MethodGet, home.URL, ""))
	if got := home.last(); !holdsCredential(got) {
		t.Errorf("a redirect within the host lost its credentials: %v", got)
	}
	home.next = func(r *http.Request) string {
		if r.URL.Path == "/a.nc" {
			return foreign.URL + "/b.nc"
		}
		return ""
	}
	foreign.next = func(*http.Request) string { return home.URL + "/chosen-by-a-stranger" }
	must(t, ask(t, http.MethodGet, home.URL, ""))
	if got := home.last(); holdsCredential(got) {
		t.Errorf("a stranger led the request to a path of his with %v", got)
	}
}

func TestRedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	secure, bare := newStop(t, true), newStop(t, false)
	secure.next = func(*http.Request) string { return bare.URL + "/b.nc" }
	err := ask(t, http.MethodGet, secure.URL, "")
	if !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "from https to "+bare.URL) {
		t.Errorf("%v, want a refusal that names both", err)
	}
	if got := bare.last(); got != nil {
		t.Errorf("the host was asked in clear, with %v", got)
	}
}

func TestFormIsNotRepeatedToAnotherHost(t *testing.T) {
	login, foreign := newStop(t, false), newStop(t, false)
	login.next = func(*http.Request) string { return foreign.URL + "/token" }
	if err := ask(t, http.MethodPost, login.URL, "password=planted"); !errors.Is(err, fetch.ErrUnacceptable) {
		t.Errorf("%v, want a refusal", err)
	}
	if foreign.last() != nil {
		t.Error("the form of the login was posted to another host")
	}
}

func TestRequestsAndRedirectsGoOnlyWhereTheyMay(t *testing.T) {
	home, inner := newStop(t, false), newStop(t, false)
	home.next = func(*http.Request) string { return inner.URL + "/metadata" }
	cfg := Config{Timeout: 5 * time.Second, Allow: func(u *url.URL) error {
		if "http://"+u.Host != home.URL {
			return fetch.ErrUnacceptable
		}
		return nil
	}}
	for _, from := range []string{home.URL, inner.URL} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, nil)
		must(t, err)
		if resp, err := New(cfg, fetch.Politeness{}).Do(req); !errors.Is(err, fetch.ErrUnacceptable) {
			t.Errorf("from %s: %v, want a refusal", from, err)
			resp.Body.Close()
		}
	}
	if inner.last() != nil {
		t.Error("a host that is not allowed was asked")
	}
}

func TestRingOfRedirectsEnds(t *testing.T) {
	ring := newStop(t, false)
	ring.next = func(r *http.Request) string { return r.URL.Path + "x" }
	if err := ask(t, http.MethodGet, ring.URL, ""); !errors.Is(err, fetch.ErrUnacceptable) {
		t.Errorf("%v, want an end", err)
	}
}
