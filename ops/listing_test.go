package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// shelf is a catalogue of a product a day, from one day back.
type shelf struct {
	newest time.Time
	days   int
}

func (s shelf) Products(_ context.Context, dataset string, from, to time.Time, limit int) (list []Listed, more bool, err error) {
	if dataset != "sea" {
		return nil, false, fmt.Errorf("dataset %s: %w", dataset, ErrNotFound)
	}
	for i := range s.days {
		at := s.newest.AddDate(0, 0, -i)
		if at.Before(from) || at.After(to) {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		name := ProductURL("sea/" + at.Format("2006/01/20060102_<b>"))
		list = append(list, Listed{Time: at, File: name + ".nc", Item: name + ".json", Granule: "<script>", Revision: 2, Mode: "delayed", Bytes: 5e6, SHA256: strings.Repeat("ab", 32)})
	}
	return list, false, nil
}

func listingOf(days int) http.Handler {
	s := shelf{newest: time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC), days: days}
	return newHandler(Sources{Status: exampleStatus, Catalogue: s}, "", slog.New(slog.DiscardHandler)).routes()
}

func listed(t *testing.T, h http.Handler, path string) (times []string, next string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", "application/json")
	r := httptest.NewRecorder()
	h.ServeHTTP(r, request)
	var l listing
	if err := json.Unmarshal(r.Body.Bytes(), &l); err != nil || r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET %s = %d, %v: %s", path, r.Code, err, r.Body)
	}
	for _, p := range l.Products {
		times = append(times, p.Time.Format(time.DateOnly))
	}
	return times, l.Next
}

func TestProductsAreListedByDate(t *testing.T) {
	h := listingOf(40)
	for path, want := range map[string]string{
		"/products/sea/?from=2024-04-28":                                "2024-04-30 2024-04-29 2024-04-28",
		"/products/sea/?to=2024-03-23":                                  "2024-03-23 2024-03-22",
		"/products/sea/?from=2024-04-02&to=2024-04-03":                  "2024-04-03 2024-04-02",
		"/products/sea/?from=2024-04-02T13:00:00Z&to=2024-04-03":        "2024-04-03",
		"/products/sea/?from=2024-04-28&to=2024-04-29T11:00:00%2B00:00": "2024-04-28",
		"/products/sea/?from=2025-01-01":                                "",
	} {
		if got, next := listed(t, h, path); strings.Join(got, " ") != want || next != "" {
			t.Errorf("GET %s lists %v and leads on to %q, want %s", path, got, next, want)
		}
	}
}

func TestPagesOfAListingHaveEveryProductOnce(t *testing.T) {
	h := listingOf(40)
	seen := map[string]int{}
	path, pages := "/products/sea/?limit=7&from=2024-03-25", 0
	for ; path != ""; pages++ {
		var times []string
		times, path = listed(t, h, path)
		for _, day := range times {
			seen[day]++
		}
	}
	if len(seen) != 37 || pages != 6 {
		t.Errorf("%d days on %d pages, want 37 on 6", len(seen), pages)
	}
	for day, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", day, n)
		}
	}
}

func TestAListingIsAPageForPeople(t *testing.T) {
	r := get(t, listingOf(3), "/products/sea/")
	body := r.Body.String()
	for _, want := range []string{"Products of sea", `href="/products/sea/2024/04/20240430_%3Cb%3E.nc"`, "5 MB", "collection.json", "</html>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<b>") || r.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("the page of %s has a name that is not escaped", r.Header().Get("Content-Type"))
	}
}

func TestLatestLeadsToTheNewestProduct(t *testing.T) {
	r := get(t, listingOf(3), "/products/sea/latest")
	if r.Code != http.StatusFound || r.Header().Get("Location") != "/products/sea/2024/04/20240430_%3Cb%3E.nc" {
		t.Errorf("latest = %d, to %q", r.Code, r.Header().Get("Location"))
	}
	for path, want := range map[string]int{
		"/products/lake/latest": http.StatusNotFound, "/products/lake/": http.StatusNotFound, "/products/": http.StatusNotFound,
		"/products/sea/?from=yesterday": http.StatusBadRequest, "/products/sea/?limit=0": http.StatusBadRequest,
	} {
		if r := get(t, listingOf(3), path); r.Code != want {
			t.Errorf("GET %s = %d, want %d", path, r.Code, want)
		}
	}
	if r := get(t, listingOf(0), "/products/sea/latest"); r.Code != http.StatusNotFound {
		t.Errorf("latest of a dataset without a product = %d, want 404", r.Code)
	}
	if r := get(t, handlerOf(t, t.TempDir()), "/products/sea/latest"); r.Code != http.StatusNotFound {
		t.Errorf("latest without a catalogue = %d, want 404", r.Code)
	}
}
