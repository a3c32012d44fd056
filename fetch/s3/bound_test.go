package s3

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

// endless is a bucket whose listing never ends: each page has keys keys,
// whatever was asked for, and announces another.
func endless(t *testing.T, keys int, key func(i int) string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := 0
		fmt.Sscan(r.URL.Query().Get("continuation-token"), &first)
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", first+max(keys, 1))
		for i := range keys {
			_, err := fmt.Fprintf(out, "<Contents><Key>%s</Key><Size>5</Size><LastModified>2024-05-17T12:00:00Z</LastModified><ETag>x</ETag></Contents>", key(first+i))
			if err != nil {
				return // nobody reads on
			}
		}
		fmt.Fprint(out, "</ListBucketResult>")
		_ = out.Flush()
	}))
	t.Cleanup(server.Close)
	return server
}

func TestListingOfTenMillionKeysIsBoundedWhileItIsRead(t *testing.T) {
	granule := func(i int) string { return fmt.Sprintf("%d.nc", i) }
	for name, tt := range map[string]struct {
		keys int
		key  func(int) string
	}{
		"a thousand keys a page":     {1000, granule},
		"ten thousand keys a page":   {10_000, granule},
		"ten million keys a page":    {archivetest.Many, granule},
		"keys that are not finished": {1000, func(i int) string { return fmt.Sprintf("%d.nc.tmp", i) }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Endpoint, cfg.Bucket, cfg.MaxObjects = endless(t, tt.keys, tt.key).URL, bucket, 5000
			archivetest.CheckBounded(t, open(t, cfg), "max_objects", cfg.MaxObjects)
		})
	}
}

func TestPageOfMegabytesIsCut(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket = endless(t, archivetest.Many, func(i int) string { return fmt.Sprint(i, strings.Repeat("k", 1<<20)) }).URL, bucket
	if objects, err := open(t, cfg).List(t.Context(), fetch.Scope{}); err == nil {
		t.Errorf("List() = %d objects with keys of a megabyte", len(objects))
	}
}

func TestPagesThatShowNothingDoNotGoOnForEver(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket = endless(t, 0, nil).URL, bucket
	if _, err := open(t, cfg).List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrUnacceptable) {
		t.Errorf("List() = %v, want that pages without keys do not end", err)
	}
}

func TestPageOfElementsWithoutEndInOneAnotherIsRefused(t *testing.T) {
	bound := fetch.Scope{}.Bound("max_objects", 10)
	for _, page := range []string{
		"<ListBucketResult>" + strings.Repeat("<a>", 1_000_000),
		strings.Repeat("<ListBucketResult>", 1_000_000),
	} {
		if _, err := readPage(strings.NewReader(page), bound); !errors.Is(err, fetch.ErrUnacceptable) {
			t.Errorf("readPage() = %v, want a refusal", err)
		}
	}
}
