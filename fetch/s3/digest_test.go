package s3

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/fetch"
)

// sealed is a host of one object in parts, whose tag is no MD5, with the
// SHA-256 that was uploaded with it. It may cut connections and alter bytes.
type sealed struct {
	*httptest.Server
	content []byte
	sum     string
	broken  atomic.Bool // the connection breaks half-way
	altered atomic.Bool // the second half is altered
}

func newSealed(t *testing.T, kind string) *sealed {
	t.Helper()
	s := &sealed{content: bytes.Repeat([]byte("sea "), 50_000)}
	sum := sha256.Sum256(s.content)
	s.sum = base64.StdEncoding.EncodeToString(sum[:])
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := bytes.Clone(s.content)
		if s.altered.Load() {
			copy(content[len(content)/2:], "SEA")
		}
		w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef-2"`)
		if r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
			if w.Header().Set("X-Amz-Checksum-Sha256", s.sum); r.Header.Get("Range") != "" {
				w.Header().Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(make([]byte, 32))) // of the part
			}
			w.Header().Set("X-Amz-Checksum-Type", kind)
		}
		if s.broken.Load() && r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "200000")
			_, _ = w.Write(content[:len(content)/2])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sealed) bring(t *testing.T, dir string) (fetch.Granule, error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket = s.URL, bucket
	politeness := fetch.DefaultPolitenessConfig()
	politeness.Retry.Attempts = 1
	archive, err := fetch.NewPolite(open(t, cfg), politeness, slog.New(slog.DiscardHandler)) // all decorators hand the hash on
	must(t, err)
	return fetch.NewSpool(dir).Bring(t.Context(), fetch.Download{Archive: archive, Object: fetch.Object{
		Name: "a.nc", Size: int64(len(s.content)), ETag: "0123456789abcdef0123456789abcdef-2",
	}})
}

func TestSHA256ThatWasUploadedIsCheckedOverTheWholeFile(t *testing.T) {
	for name, resumed := range map[string]bool{"in one go": false, "resumed": true} {
		t.Run(name, func(t *testing.T) {
			s, dir := newSealed(t, "FULL_OBJECT"), t.TempDir()
			half := func() {
				if s.broken.Store(resumed); resumed {
					if _, err := s.bring(t, dir); err == nil {
						t.Fatal("Bring() over a broken connection came through")
					}
				}
				s.broken.Store(false)
			}
			half()
			s.altered.Store(true)
			if g, err := s.bring(t, dir); !errors.Is(err, fetch.ErrCorrupt) || !strings.Contains(err.Error(), "SHA-256") {
				t.Errorf("Bring() of altered bytes = %+v, %v; want ErrCorrupt", g, err)
			}
			s.altered.Store(false)
			half()
			if g, err := s.bring(t, dir); err != nil || g.Size != int64(len(s.content)) {
				t.Errorf("Bring() of the right bytes = %+v, %v", g, err)
			}
		})
	}
}

func TestHashOfHashesIsNoHashOfTheObject(t *testing.T) {
	s := newSealed(t, "COMPOSITE")
	s.sum = base64.StdEncoding.EncodeToString(make([]byte, 32))
	if _, err := s.bring(t, t.TempDir()); err != nil {
		t.Errorf("Bring() = %v, held against a hash of hashes", err)
	}
	sum := sha256.Sum256([]byte("a"))
	for header, want := range map[string]string{
		base64.StdEncoding.EncodeToString(sum[:]):        hex.EncodeToString(sum[:]),
		base64.StdEncoding.EncodeToString(sum[:]) + "-3": "",
		"":      "",
		"AAAA":  "",
		"<xml>": "",
	} {
		if got := digest(http.Header{"X-Amz-Checksum-Sha256": {header}}); got != want {
			t.Errorf("digest(%q) = %q, want %q", header, got, want)
		}
	}
}
