package cmems

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lacuna/fetch"
)

func TestCatalogueOfEndlessVersionsIsBounded(t *testing.T) {
	s := newService(t)
	var many []release
	for i := range 10_000 {
		many = append(many, release{label: fmt.Sprintf("%d%02d", 1000+i/12%1000, 1+i%12)})
	}
	s.releases["waw4"], s.releases["waw3"] = many, many
	_, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{})
	if !errors.Is(err, fetch.ErrUnacceptable) {
		t.Errorf("List() = %v, want that there are too many versions", err)
	}
	if asked := len(s.requests()); asked > 2*maxItems+10 {
		t.Errorf("%d requests, want about %d for each catalogue", asked, maxItems)
	}
}

func TestDocumentWithoutEndIsCut(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := strings.Repeat(`{"stacRoot":"https://example.org"},`, 1000)
		fmt.Fprint(w, `{"catalogues":[`)
		for range 10_000 {
			n, err := fmt.Fprint(w, block)
			if sent += n; err != nil {
				return // nobody reads on
			}
		}
	}))
	defer server.Close()
	cfg := newService(t).config(t)
	cfg.ConfigURLs, cfg.Login = []string{server.URL}, false
	if _, err := open(t, cfg).List(t.Context(), fetch.Scope{}); err == nil {
		t.Error("List() with a configuration without end came through")
	}
	server.Close()
	if sent > 4*maxDocumentBytes { // with the buffers on the way
		t.Errorf("%d bytes were taken of a document that may have %d", sent, maxDocumentBytes)
	}
}
