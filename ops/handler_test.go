package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lacuna/internal/golden"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// example is a status with everything in it, and names that must be escaped.
func example() Status {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	return Status{
		Version: "0.1.0", Started: now.Add(-26 * time.Hour), Now: now, Ready: true,
		Datasets: []Dataset{
			{
				Name: "blk-chl", Title: "Black Sea chlorophyll, daily", Method: "optimal interpolation",
				LastGranule: "2024/05/20240519_chl.nc", LastDay: now.Add(-36 * time.Hour), LastArrival: now.Add(-90 * time.Second),
				States:  []StateCount{{"fetched", 2}, {"stored", 40}, {"quarantined", 1}},
				Problem: "archive not reachable since 11:40; mount it", Training: "not trained now: 12 of 90 days are there",
			},
			{Name: "med-sst"},
		},
		Products: []Product{{
			Dataset: "blk-chl", Granule: "2024/05/20240519_chl.nc", Revision: 2, Day: now.Add(-36 * time.Hour).Truncate(24 * time.Hour),
			Stored: now.Add(-time.Minute), File: "blk-chl/20240519 chl#2_l4.nc", QuickLook: "blk-chl/20240519 chl#2_l4.png",
			Method: "optimal interpolation", ObservedBefore: 0.4321, FilledAfter: 0.99996,
		}},
		Quarantine: []Quarantined{{
			Dataset: "blk-chl", Granule: `..\<script>alert(1)</script>.nc`,
			Reason: "name refused: has a backslash; rename the file on the archive", At: now.Add(-72 * time.Hour),
		}},
	}
}

func TestOverviewShowsTheStatus(t *testing.T) {
	r := get(t, handlerOf(t, ""), "/")
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("GET / = %d, %s", r.Code, r.Header().Get("Content-Type"))
	}
	golden.Compare(t, "overview.html", r.Body.Bytes())
}

func TestEmptyStatusIsAPage(t *testing.T) {
	h := showing(noStatus)
	body := get(t, h, "/").Body.String()
	for _, want := range []string{"not ready", "No dataset is configured", "None yet", "</html>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of a fresh service lacks %q", want)
		}
	}
}

func TestStatusJSONReadsBack(t *testing.T) {
	r := get(t, handlerOf(t, ""), "/status.json")
	var got Status
	must(t, json.Unmarshal(r.Body.Bytes(), &got))
	if diff := cmp.Diff(example(), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("status.json (-want +got):\n%s", diff)
	}
	if r.Header().Get("Content-Type") != "application/json" || r.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers of status.json: %v", r.Header())
	}
}

func TestStatusJSONHasEmptyListsAndNoNulls(t *testing.T) {
	fresh := func(context.Context) (Status, error) { return Status{Datasets: []Dataset{{Name: "blk-chl"}}}, nil }
	body := get(t, showing(fresh), "/status.json").Body.String()
	if strings.Contains(body, "null") || !strings.Contains(body, `"products": []`) || !strings.Contains(body, `"states": []`) {
		t.Errorf("status.json of a fresh service is %s", body)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	broken := func(context.Context) (Status, error) {
		return Status{}, errors.New("ledger: disk I/O error at /secret/place")
	}
	starting := func(context.Context) (Status, error) { return Status{Ready: false}, nil }
	ready := func(context.Context) (Status, error) { return Status{Ready: true}, nil }
	hung := func(context.Context) (Status, error) { return Status{Hung: "worker of sea"}, nil }
	stalled := func(context.Context) (Status, error) {
		return Status{Datasets: []Dataset{{Name: "sea", Stalled: true}}}, nil
	}
	for _, tt := range []struct {
		name   string
		status func(context.Context) (Status, error)
		path   string
		want   int
		says   string
	}{
		{"a starting service is healthy", starting, "/healthz", http.StatusOK, "ok"},
		{"a starting service is not ready", starting, "/readyz", http.StatusServiceUnavailable, "starting or stopping"},
		{"a running service is ready", ready, "/readyz", http.StatusOK, "ready"},
		{"a service with a stage that hangs is not ready", hung, "/readyz", http.StatusServiceUnavailable, "worker of sea"},
		{"a service with an intake that stands still is not ready", stalled, "/readyz", http.StatusServiceUnavailable, "intake of sea"},
		{"a service without status is not ready", broken, "/readyz", http.StatusServiceUnavailable, "log"},
		{"a service without status still answers", broken, "/healthz", http.StatusOK, "ok"},
		{"a service without status has no page", broken, "/", http.StatusServiceUnavailable, "log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := get(t, showing(tt.status), tt.path)
			if r.Code != tt.want || !strings.Contains(r.Body.String(), tt.says) {
				t.Errorf("GET %s = %d %s, want %d with %q", tt.path, r.Code, r.Body, tt.want, tt.says)
			}
			if strings.Contains(r.Body.String(), "secret") {
				t.Errorf("the answer shows the visitor a reason that is for the log: %s", r.Body)
			}
		})
	}
}

func TestProductsAreServedWithTheirTypes(t *testing.T) {
	folder := t.TempDir()
	server := httptest.NewServer(handlerOf(t, folder))
	defer server.Close()
	for name, kind := range map[string]string{
		"blk/2024 a#1.nc": "application/netcdf", "blk/a.png": "image/png", "manifest.json": "application/json",
	} {
		write(t, filepath.Join(folder, name), "content of "+name)
		r, err := http.Get(server.URL + ProductURL(name))
		must(t, err)
		var body bytes.Buffer
		body.ReadFrom(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != kind || body.String() != "content of "+name {
			t.Errorf("GET %s = %d, %s, %q", name, r.StatusCode, r.Header.Get("Content-Type"), body.String())
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/products/blk/a.png", nil)
	must(t, err)
	request.Header.Set("Range", "bytes=0-6")
	r, err := http.DefaultClient.Do(request)
	must(t, err)
	defer r.Body.Close()
	if r.StatusCode != http.StatusPartialContent || r.ContentLength != 7 {
		t.Errorf("a range of a product = %d with %d bytes, want 206 with 7", r.StatusCode, r.ContentLength)
	}
}

func TestNothingButProductsIsServed(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(outside, "products")
	write(t, filepath.Join(outside, "secret.nc"), "secret")
	write(t, filepath.Join(folder, "a.nc"), "product")
	write(t, filepath.Join(folder, ".hidden.nc"), "secret")
	write(t, filepath.Join(folder, ".staging/b.nc"), "secret")
	write(t, filepath.Join(folder, "notes.txt"), "secret")
	write(t, filepath.Join(folder, "page.html"), "secret")
	write(t, filepath.Join(folder, "folder.nc/inner.txt"), "secret")
	must(t, os.Symlink(filepath.Join(outside, "secret.nc"), filepath.Join(folder, "absolute.nc")))
	must(t, os.Symlink("../secret.nc", filepath.Join(folder, "relative.nc")))
	must(t, os.Symlink("..", filepath.Join(folder, "up")))
	must(t, syscall.Mkfifo(filepath.Join(folder, "pipe.nc"), 0o644))

	server := httptest.NewServer(handlerOf(t, folder))
	defer server.Close()
	for _, path := range []string{
		"../secret.nc", "%2e%2e/secret.nc", "..%2fsecret.nc", "%2e%2e%2fsecret.nc", "x/../../secret.nc", "..%5csecret.nc",
		"....//secret.nc", "%252e%252e/secret.nc", "a.nc%00", "a.nc%00.png", "/secret.nc", "%2fsecret.nc", "up/secret.nc", "absolute.nc", "relative.nc",
		".hidden.nc", ".staging/b.nc", "notes.txt", "page.html", "folder.nc", "folder.nc/", "pipe.nc", "", "up/", ".", "a.nc/", "a.nc/.",
	} {
		// Sent as it stands: a client that cleans the path would hide the fault.
		u, err := url.Parse(server.URL)
		must(t, err)
		u.Opaque = "//" + u.Host + "/products/" + path
		r, err := http.DefaultTransport.RoundTrip(&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}})
		must(t, err)
		var body bytes.Buffer
		body.ReadFrom(r.Body)
		r.Body.Close()
		if r.StatusCode == http.StatusOK || body.String() == "secret" {
			t.Errorf("GET /products/%s = %d, %q", path, r.StatusCode, body.String())
		}
	}
	if r := get(t, handlerOf(t, folder), "/products/a.nc"); r.Body.String() != "product" {
		t.Errorf("the product itself = %d, %q", r.Code, r.Body)
	}
}

func TestProductFolderMayNotExistYet(t *testing.T) {
	if r := get(t, handlerOf(t, filepath.Join(t.TempDir(), "absent")), "/products/a.nc"); r.Code != http.StatusNotFound {
		t.Errorf("GET from an absent folder = %d, want 404", r.Code)
	}
}

func handlerOf(t *testing.T, products string) http.Handler {
	t.Helper()
	return newHandler(Sources{Status: exampleStatus, Products: products}, "", slog.New(slog.DiscardHandler)).routes()
}

func exampleStatus(context.Context) (Status, error) { return example(), nil }

// showing returns a server that knows a status and nothing else.
func showing(status func(context.Context) (Status, error)) http.Handler {
	return newHandler(Sources{Status: status}, "", slog.New(slog.DiscardHandler)).routes()
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = "localhost:8087"
	h.ServeHTTP(r, request)
	return r
}
