package ops

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzHandlers sends arbitrary requests, as they come over the wire, to every
// handler: each is answered without a failure of ours, with the headers that
// protect, and with nothing that lies outside of the products.
func FuzzHandlers(f *testing.F) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /datasets/blk-chl/2024-05-17?x=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /granule?dataset=blk-chl&name=%3Cb%3E&revision=2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /map?dataset=blk-chl&name=%3Cb%3E&revision=-1&layer=sigma HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /products/blk-chl/..%2f..%2fsecret HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-0\r\n\r\n",
		"HEAD /products/blk-chl/latest HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /products/link HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /actions/retry HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 27\r\n\r\ndataset=blk-chl&name=x.nc&y",
		"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /models HTTP/1.1\r\nHost: [::1\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	const secret = "what lies beside the products"
	top := f.TempDir()
	products := filepath.Join(top, "products")
	if err := os.MkdirAll(filepath.Join(products, "blk-chl"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(products, "link")); err != nil {
		f.Fatal(err)
	}
	sources := &fakeSources{}
	src := Sources{Status: exampleStatus, Products: products, Days: sources, Granules: sources, Models: sources, Actions: sources}
	h := newHandler(src, "", slog.New(slog.DiscardHandler)).routes()
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // the server of the standard library answers that
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if strings.Contains(request.URL.Path, "events") {
			cancel() // it lasts as long as the request
		}
		r := httptest.NewRecorder()
		h.ServeHTTP(r, request.WithContext(ctx))
		if r.Code >= http.StatusInternalServerError && ctx.Err() == nil {
			t.Errorf("answered with %d: %.200s", r.Code, r.Body)
		}
		if strings.Contains(r.Body.String(), secret) {
			t.Errorf("a file beside the products was served for %q", request.URL)
		}
		if r.Header().Get("X-Content-Type-Options") != "nosniff" || r.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%d without the headers that protect: %v", r.Code, r.Header())
		}
	})
}
