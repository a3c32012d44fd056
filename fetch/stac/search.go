package stac

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// pageBytes bounds a page of results: items of a few kilobytes, a hundred or a
// thousand at a time.
const pageBytes = 64 << 20

// listing is one listing of the archive under way.
type listing struct {
	archive *Archive
	auth    auth
	scope   fetch.Scope
	bound   *fetch.Bound
	found   map[string]sighting
	unread  fetch.Unread
}

// link is a link of a page of results.
type link struct {
	Rel    string          `json:"rel"`
	Href   string          `json:"href"`
	Method string          `json:"method"`
	Body   json.RawMessage `json:"body"`
	Merge  bool            `json:"merge"` // the body is added to that of the page before
}

// query is a request for a page.
type query struct {
	url    *url.URL
	method string
	body   map[string]json.RawMessage
}

// search goes through the pages of the search.
func (l *listing) search(ctx context.Context) error {
	q := l.first()
	asked := map[string]bool{}
	for {
		text, err := json.Marshal(q.body)
		if err != nil {
			return err
		}
		if key := q.method + q.url.String() + string(text); asked[key] {
			return fmt.Errorf("%w: the pages of the search go in a circle at %s", fetch.ErrUnacceptable, web.Shown(q.url))
		} else if asked[key] = true; len(asked) > 1 {
			if err := l.bound.Entry(); err != nil { // so that pages without items end too
				return err
			}
		}
		next, err := l.page(ctx, q, text)
		if err != nil || next == nil {
			return err
		}
		if q, err = l.follow(q, *next); err != nil {
			return err
		}
	}
}

// first returns the request for the first page.
func (l *listing) first() query {
	cfg := l.archive.cfg
	u := l.archive.root
	u.Path += "/search"
	values := url.Values{"collections": {strings.Join(cfg.Collections, ",")}, "limit": {strconv.Itoa(cfg.PageSize)}}
	if !cfg.Box.IsZero() {
		values.Set("bbox", cfg.Box.String())
	}
	if !l.scope.Since.IsZero() {
		values.Set("datetime", l.scope.Since.UTC().Truncate(24*time.Hour).Format(time.RFC3339)+"/..")
	}
	u.RawQuery = values.Encode()
	return query{url: &u, method: http.MethodGet}
}

// follow returns the request of a link to the next page.
func (l *listing) follow(q query, next link) (query, error) {
	to, err := q.url.Parse(next.Href)
	if err != nil {
		return query{}, fmt.Errorf("%w: the link to the next page cannot be read", fetch.ErrUnacceptable)
	}
	if !web.SameOrigin(&l.archive.root, to) {
		return query{}, fmt.Errorf("%w: the next page of the search is on another host, %s; set url to that address", fetch.ErrUnacceptable, web.Shown(to))
	}
	out := query{url: to, method: http.MethodGet}
	if !strings.EqualFold(next.Method, http.MethodPost) {
		return out, nil
	}
	out.method, out.body = http.MethodPost, map[string]json.RawMessage{}
	if next.Merge {
		for k, v := range q.body {
			out.body[k] = v
		}
	}
	if len(next.Body) > 0 {
		if err := json.Unmarshal(next.Body, &out.body); err != nil {
			return query{}, fmt.Errorf("%w: the body of the link to the next page is no object", fetch.ErrUnacceptable)
		}
	}
	return out, nil
}

// page reads a page, takes its items, and returns the link to the next.
func (l *listing) page(ctx context.Context, q query, body []byte) (*link, error) {
	resp, err := l.ask(ctx, q, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	src := io.LimitReader(resp.Body, pageBytes)
	next, err := l.features(src, resp.Request.URL)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if src.(*io.LimitedReader).N <= 0 {
			return nil, fmt.Errorf("%w: a page of the search has more than %d MiB; lower page_size", fetch.ErrUnacceptable, pageBytes>>20)
		}
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", web.Shown(q.url), err)
	}
	return next, nil
}

func (l *listing) ask(ctx context.Context, q query, body []byte) (*http.Response, error) {
	var payload io.Reader
	if q.method == http.MethodPost {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, q.url.String(), payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/geo+json, application/json")
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	l.auth.sign(req)
	resp, err := l.archive.client.Do(req, l.auth.secrets()...)
	var status *web.StatusError
	switch {
	case errors.As(err, &status) && status.Code == http.StatusForbidden:
		return nil, fmt.Errorf("%w: %w; ask for access, or correct url or token", fetch.ErrPermanent, err)
	case errors.As(err, &status) && status.Code == http.StatusNotFound:
		return nil, fmt.Errorf("%w: is url the landing page of a STAC API with item search?", plainStatus{status})
	case err != nil:
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		resp.Body.Close()
		return nil, fmt.Errorf("search %s: it answered with a web page, not a list of items; set url to the landing page of the API", web.Shown(q.url))
	}
	return resp, nil
}

// plainStatus is a status without its meaning: that the search is not there
// does not mean that there are no items.
type plainStatus struct{ status *web.StatusError }

func (p plainStatus) Error() string { return p.status.Error() }

// features reads a GeoJSON feature collection item by item.
func (l *listing) features(src io.Reader, at *url.URL) (*link, error) {
	dec := json.NewDecoder(src)
	if err := delim(dec, '{'); err != nil {
		return nil, err
	}
	var next *link
	items := false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "features":
			items = true
			err = l.items(dec, at)
		case "links":
			var links []link
			if err = dec.Decode(&links); err == nil {
				next = nextOf(links)
			}
		default:
			err = skip(dec)
		}
		if err != nil {
			return nil, err
		}
	}
	if !items {
		return nil, errors.New("it has no features, so it is no answer of a STAC API; correct url")
	}
	return next, delim(dec, '}')
}

func nextOf(links []link) *link {
	for i := range links {
		if links[i].Rel == "next" {
			return &links[i]
		}
	}
	return nil
}

func (l *listing) items(dec *json.Decoder, at *url.URL) error {
	if err := delim(dec, '['); err != nil {
		return err
	}
	for dec.More() {
		if err := l.bound.Entry(); err != nil {
			return err
		}
		var it item
		if err := dec.Decode(&it); err != nil {
			return err
		}
		l.take(it, at)
	}
	return delim(dec, ']')
}

// delim reads a bracket.
func delim(dec *json.Decoder, want json.Delim) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%.40q stands where %q should", fmt.Sprint(token), want)
	}
	return nil
}

// skip reads over a value without keeping it.
func skip(dec *json.Decoder) error {
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
