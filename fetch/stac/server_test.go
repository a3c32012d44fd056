package stac

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/fetch"
)

// catalogue is a STAC API with item search, and the host of its assets.
type catalogue struct {
	*httptest.Server
	full bool // items give size, checksum and time of their assets
	post bool // links to the next page are requests of POST

	mu      sync.Mutex // guards what follows
	files   map[string]file
	token   string // wanted of every request; empty: none
	severed bool
	seen    []*http.Request
	fault   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

type file struct {
	content []byte
	modTime time.Time
	box     []float64
	when    string // datetime of the item
}

func newCatalogue(t *testing.T, full, post bool) *catalogue {
	t.Helper()
	c := &catalogue{full: full, post: post, files: map[string]file{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *catalogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.seen = append(c.seen, r.Clone(r.Context()))
	token, severed, fault := c.token, c.severed, c.fault
	c.mu.Unlock()
	switch {
	case fault != nil && fault(w, r):
	case severed:
		http.NotFound(w, r)
	case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
	case r.URL.Path == "/stac/search":
		c.search(w, r)
	case strings.HasPrefix(r.URL.Path, "/data/"):
		c.asset(w, r, strings.TrimPrefix(r.URL.Path, "/data/"))
	default:
		http.NotFound(w, r)
	}
}

// search answers with pages of two items in the order of their ids.
func (c *catalogue) search(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && (r.URL.Query().Get("collections") != "chl" || r.URL.Query().Get("limit") == "") {
		http.Error(w, "no collections", http.StatusBadRequest)
		return
	}
	from, since := 0, ""
	if r.Method == http.MethodPost {
		var body struct {
			From        int    `json:"from"`
			Collections string `json:"collections"`
			Since       string `json:"since"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Collections != "chl" {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		from, since = body.From, body.Since
	} else {
		from, _ = strconv.Atoi(r.URL.Query().Get("from"))
		since, _, _ = strings.Cut(r.URL.Query().Get("datetime"), "/")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(c.files)) {
		if f := c.files[id]; f.when == "" || since == "" || f.when >= since {
			ids = append(ids, id)
		}
	}
	const page = 2
	end := min(from+page, len(ids))
	features := []any{}
	for _, id := range ids[min(from, end):end] {
		features = append(features, c.item(id))
	}
	links := []any{map[string]any{"rel": "self", "href": c.URL + "/stac/search"}}
	if end < len(ids) {
		next := map[string]any{"rel": "next", "href": fmt.Sprintf("%s/stac/search?collections=chl&limit=2&from=%d&datetime=%s/..", c.URL, end, since)}
		if c.post {
			next = map[string]any{
				"rel": "next", "method": "POST", "href": "/stac/search", "merge": true,
				"body": map[string]any{"from": end, "collections": "chl", "since": since},
			}
		}
		links = append(links, next)
	}
	w.Header().Set("Content-Type", "application/geo+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "FeatureCollection", "context": map[string]any{"deep": []any{1, map[string]any{}}}, "features": features, "links": links})
}

func (c *catalogue) item(id string) any {
	f := c.files[id]
	data := map[string]any{"href": c.URL + "/data/" + url.PathEscape(id), "type": "application/x-netcdf", "roles": []string{"data"}}
	properties := map[string]any{"datetime": nil}
	if f.when != "" {
		properties["datetime"] = f.when
	}
	if c.full {
		data["file:size"] = len(f.content)
		data["file:checksum"] = fmt.Sprintf("1220%x", sha256.Sum256(f.content))
		properties["updated"] = f.modTime.Format(time.RFC3339Nano)
	}
	assets := map[string]any{
		"data":      data,
		"s3":        map[string]any{"href": "s3://bucket/" + id, "type": "application/x-netcdf", "roles": []string{"data"}},
		"thumbnail": map[string]any{"href": c.URL + "/data/picture.png", "type": "image/png"},
	}
	return map[string]any{"type": "Feature", "id": id, "collection": "chl", "bbox": f.box, "properties": properties, "assets": assets}
}

func (c *catalogue) asset(w http.ResponseWriter, r *http.Request, id string) {
	c.mu.Lock()
	f, ok := c.files[id]
	c.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, f.modTime.Unix(), len(f.content)))
	http.ServeContent(w, r, "", f.modTime, strings.NewReader(string(f.content)))
}

func (c *catalogue) put(id string, f file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.modTime.IsZero() {
		f.modTime = time.Date(2024, 5, 2, 3, 0, 0, 0, time.UTC)
	}
	c.files[id] = f
}

func (c *catalogue) set(change func(c *catalogue)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// requests returns the requests since the last call.
func (c *catalogue) requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.seen = nil }()
	return c.seen
}

func (c *catalogue) config() Config {
	cfg := DefaultConfig()
	cfg.URL, cfg.Collections = c.URL+"/stac/", []string{"chl"}
	cfg.Web.Timeout = 5 * time.Second
	return cfg
}

func open(t *testing.T, cfg Config) *Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func read(t *testing.T, a *Archive, o fetch.Object) (string, error) {
	t.Helper()
	r, err := a.Open(t.Context(), o, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}
