package ops

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// keptMaps is the number of encoded maps in the cache: those of a visitor who
// goes back and forth between neighbouring days, some megabytes each.
const keptMaps = 8

// mapCache keeps the maps that were used last. Reading a product takes a
// process and its memory, so one is read at a time.
type mapCache struct {
	granules Granules
	turn     chan struct{} // held while a product is read

	mu   sync.Mutex // guards kept
	kept []keptMap  // the one that was used last is at the end
}

type keptMap struct {
	tag  string
	body []byte
}

func newMapCache(granules Granules) *mapCache {
	return &mapCache{granules: granules, turn: make(chan struct{}, 1)}
}

// serveMap answers with a field of a product, as encodeMap has it.
func (h *handler) serveMap(w http.ResponseWriter, r *http.Request) {
	id, field, err := granuleOf(r.URL.Query())
	if err != nil || h.src.Granules == nil {
		http.NotFound(w, r)
		return
	}
	g, err := h.src.Granules.Granule(r.Context(), id)
	if err == nil && (g.Product == nil || field >= g.Fields) {
		err = ErrNotFound
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	tag := `"` + g.Product.SHA256 + "-" + strconv.Itoa(field) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache") // ask, and get 304 while it is the same
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := h.maps.get(r.Context(), tag, g.ID, field)
	if err != nil {
		w.Header().Del("ETag")
		h.fail(w, r, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadLimit)) // as for a product
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Encoding", "gzip") // every browser takes it; programs take the product
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only where the client has left
	}
}

// get returns the encoded map of that tag.
func (s *mapCache) get(ctx context.Context, tag string, id GranuleID, field int) ([]byte, error) {
	if body, ok := s.find(tag); ok {
		return body, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if body, ok := s.find(tag); ok { // the request before asked for the same map
		return body, nil
	}
	m, err := s.granules.Map(ctx, id, field)
	if err != nil {
		return nil, err
	}
	body, err := encodeMap(m)
	if err != nil {
		return nil, err
	}
	s.keep(keptMap{tag: tag, body: body})
	return body, nil
}

func (s *mapCache) find(tag string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.kept, func(k keptMap) bool { return k.tag == tag })
	if at < 0 {
		return nil, false
	}
	found := s.kept[at]
	s.kept = append(slices.Delete(s.kept, at, at+1), found)
	return found.body, true
}

func (s *mapCache) keep(k keptMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, k)
	if len(s.kept) > keptMaps {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
}

// mapPath returns the path of the maps of a revision.
func mapPath(id GranuleID) string {
	return "/map?" + url.Values{"dataset": {id.Dataset}, "name": {id.Name}, "revision": {strconv.Itoa(id.Revision)}}.Encode()
}
