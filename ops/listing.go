package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Catalogue knows the products that are there to be read.
type Catalogue interface {
	// Products returns the products of a dataset whose time lies from one through
	// another, the latest first, limit of them at most, and whether there are
	// more. An unknown dataset is ErrNotFound.
	Products(ctx context.Context, dataset string, from, to time.Time, limit int) (list []Listed, more bool, err error)
}

// Listed is a product in a listing. Files are paths of this server.
type Listed struct {
	Time      time.Time `json:"time"`
	File      string    `json:"href"`
	Item      string    `json:"item"` // its item of the STAC catalogue
	QuickLook string    `json:"quick_look,omitempty"`
	Members   string    `json:"members,omitempty"`
	Granule   string    `json:"granule"`
	Revision  int       `json:"revision"`
	Mode      string    `json:"mode"`
	Model     string    `json:"model"`
	Bytes     int64     `json:"bytes"`
	SHA256    string    `json:"sha256"`
}

// listing is the answer to a question for products.
type listing struct {
	Dataset  string    `json:"dataset"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Products []Listed  `json:"products"`
	Next     string    `json:"next,omitempty"` // path of the rest; empty: this is all
}

// Limits of a listing: a year a page, and as much as a program can ask for.
const (
	listedUsually = 366
	listedMost    = 10_000
)

// parseListing reads a question: ?from=DATE&to=DATE&limit=N, each with a default.
func parseListing(query url.Values) (from, to time.Time, limit int, err error) {
	date := func(name string, otherwise time.Time, last time.Duration) (time.Time, error) {
		text := query.Get(name)
		if text == "" {
			return otherwise, nil
		}
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return t.UTC(), nil
		}
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return t, fmt.Errorf("%s is %q, must be like 2024-04-30 or 2024-04-30T12:00:00Z", name, text)
		}
		return t.Add(last), nil
	}
	if from, err = date("from", time.Time{}, 0); err != nil {
		return from, to, 0, err
	}
	if to, err = date("to", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 24*time.Hour-time.Second); err != nil {
		return from, to, 0, err
	}
	limit = listedUsually
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > listedMost {
			return from, to, 0, fmt.Errorf("limit is %q, must be 1 to %d", text, listedMost)
		}
	}
	return from, to, limit, nil
}

// serveLatest redirects to the newest product of a dataset.
func (h *handler) serveLatest(w http.ResponseWriter, r *http.Request) {
	var list []Listed
	err := ErrNotFound
	if h.src.Catalogue != nil {
		list, _, err = h.src.Catalogue.Products(r.Context(), r.PathValue("dataset"), time.Time{}, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 1)
	}
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, list[0].File, http.StatusFound)
}

// serveListing answers with the products of a dataset, as a page, or as JSON to a
// program that asks for it.
func (h *handler) serveListing(w http.ResponseWriter, r *http.Request) {
	from, to, limit, err := parseListing(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l := listing{Dataset: r.PathValue("dataset"), From: from, To: to, Products: []Listed{}}
	list, more, err := []Listed(nil), false, ErrNotFound
	if h.src.Catalogue != nil {
		list, more, err = h.src.Catalogue.Products(r.Context(), l.Dataset, from, to, limit)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	l.Products = append(l.Products, list...)
	if to.Year() == 9999 {
		l.To = time.Time{}
	}
	if more {
		query := r.URL.Query()
		query.Set("to", utc(list[len(list)-1].Time.Add(-time.Second)))
		l.Next = ProductURL(l.Dataset) + "/?" + query.Encode()
	}
	if !wantsJSON(r) {
		h.page(func(_ context.Context, _ *http.Request, v *view) error {
			v.Page, v.Title, v.Body = "listing", "Products of "+l.Dataset, l
			return nil
		})(w, r)
		return
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetIndent("", "  ")
	if err := enc.Encode(l); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // fails only where the client has left
}

// wantsJSON reports whether a program asks. A browser takes HTML before all.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return r.URL.Query().Get("format") == "json" || strings.Contains(accept, "json") && !strings.Contains(accept, "html")
}
